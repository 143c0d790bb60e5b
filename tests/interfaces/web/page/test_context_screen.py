"""The context: a trial within a budget, reasons, and what was given before."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.past import QUESTION, SESSION, SPACE

TRIAL = f"/ui/context?session={quote(SESSION)}&q={quote(QUESTION)}"


def counts_of(site: Site) -> tuple[int, int]:
    """Count the accesses of memories and the receipts of the space."""
    with site.open_store() as store:
        found = store.list(space=SPACE, limit=200).memories
        return sum(each.access_count for each in found), store.receipts.list(space=SPACE).total


def test_a_question_shows_the_budget_by_part_and_a_reason_for_each_item_left_out(
    past: Page,
) -> None:
    past.goto("/ui/context")
    expect(past.locator(".empty")).to_contain_text("Choose a session")
    past.get_by_label("Session").fill(SESSION)
    past.get_by_label("Question").fill(QUESTION)
    past.get_by_label("Budget in tokens").first.fill("150")
    past.get_by_role("button", name="Try").click()
    receipt = past.locator(".receipt")
    expect(receipt.locator(".budget")).to_contain_text("of 150 tokens used")
    expect(receipt.locator(".budget .legend")).to_contain_text("Markup")
    expect(receipt.locator("h4", has_text="No room in the budget")).to_be_visible()
    past.reload()
    expect(receipt.locator(".budget")).to_contain_text("of 150 tokens used")
    before = receipt.locator("ol.parts li").count()
    past.get_by_role("button", name="4,000").click()
    expect(receipt.locator(".budget")).to_contain_text("of 4,000 tokens used")
    assert receipt.locator("ol.parts li").count() > before
    past.get_by_text("The block as text").click()
    expect(past.locator(".block pre")).to_contain_text("<passage")


def test_a_trial_counts_as_no_access_and_keeps_no_receipt(past: Page, site: Site) -> None:
    before = counts_of(site)
    past.goto(TRIAL)
    expect(past.locator(".receipt")).to_contain_text("Went in")
    past.get_by_role("button", name="Compare budgets").click()
    figure = past.get_by_role("figure", name="What fits into other budgets")
    expect(figure.locator(".bar-line")).to_have_count(5)
    figure.get_by_text("Show as a table").click()
    expect(figure.get_by_role("row")).to_have_count(6)
    assert counts_of(site) == before


def test_what_was_really_given_is_listed_and_shown(
    past: Page, site: Site, own_session: str
) -> None:
    with site.open_store() as store:
        store.log(own_session, "user", QUESTION, space=SPACE)
        store.context(own_session, QUESTION, max_tokens=260, space=SPACE)
        # Later changes do not change the receipt.
        store.save("Refunds are approved by nobody.", session_id=own_session, space=SPACE)
    past.goto(f"/ui/context?session={quote(own_session)}")
    past.locator(".receipt-line a").first.click()
    expect(past.get_by_role("region", name="Receipt", exact=True)).to_contain_text(
        "Context given on"
    )
    expect(past.locator(".budget")).to_contain_text("of 260 tokens used")
    expect(past.locator(".receipt")).not_to_contain_text("approved by nobody")
    past.get_by_role("link", name="Try the same now").click()
    expect(past.get_by_label("Question")).to_have_value(QUESTION)
    assert re.search(r"tokens=260", past.url)


def test_a_wrong_budget_is_said_before_it_is_sent(past: Page) -> None:
    past.goto("/ui/context?session=x&tokens=2000000")
    expect(past.locator(".note-bad")).to_contain_text("max_tokens")


def test_a_text_left_out_names_the_one_that_says_the_same(
    past: Page, site: Site, own_session: str
) -> None:
    with site.open_store() as store:
        for end in (".", "!"):
            text = f"The gate of the northern yard closes at nine{end}"
            store.save(text, session_id=own_session, space=SPACE)
    past.goto(f"/ui/context?session={own_session}&q=northern+yard+gate")
    group = past.locator(".left-out", has_text="Says the same as another one")
    line = group.locator(".part-what", has_text="northern yard").first
    expect(line.get_by_role("link")).to_have_count(2)
    expect(line).not_to_contain_text("mem_")
