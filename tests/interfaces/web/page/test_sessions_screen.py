"""Sessions: the list, and the replay with the context of each turn."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.past import OTHER_SESSION, SESSION, SPACE

REPLAY = f"/ui/sessions/{quote(SESSION, safe='')}"


def test_the_list_shows_turns_and_opens_a_session_with_the_keyboard(past: Page) -> None:
    past.goto("/ui/sessions")
    first = past.locator(".session").first
    expect(first).to_contain_text(SESSION)
    expect(first).to_contain_text("5 turns, 6 memories")
    expect(first).to_contain_text("claude")
    past.keyboard.press("j")
    past.keyboard.press("j")
    expect(past.get_by_role("link", name=OTHER_SESSION, exact=True)).to_be_focused()
    past.keyboard.press("Enter")
    expect(past.locator("h1")).to_have_text(OTHER_SESSION)


def test_a_replay_has_messages_tool_outputs_and_saves_in_their_order(past: Page) -> None:
    past.goto(REPLAY)
    turns = past.locator(".turn")
    expect(turns).to_have_count(6)
    heads = [each.split("\n")[0] for each in turns.locator(".hit-head > span").all_inner_texts()]
    assert [each.split()[0] for each in heads] == [
        *("User", "Tool", "Assistant", "Saved", "User", "Assistant")
    ]
    past.get_by_text("40 lines").click()
    expect(turns.nth(1)).to_contain_text("policy.md:39: refund")
    turns.nth(3).get_by_role("link").first.click()
    expect(past.locator("h1")).to_contain_text("Refunds above 500 euros")


def test_a_turn_without_a_receipt_shows_a_reconstructed_context(past: Page) -> None:
    past.goto(REPLAY)
    past.get_by_role("button", name="Context at this turn (reconstructed)").last.click()
    expect(past.locator(".turn-context .note")).to_contain_text("Reconstructed.")
    expect(past.locator(".receipt")).to_contain_text("Went in")
    expect(past.locator(".receipt")).to_contain_text("Who may approve a refund")
    # The answer to the question came later: a context at that time cannot contain it.
    expect(past.locator(".receipt")).not_to_contain_text("Every agent of support")
    # The question does not answer itself.
    expect(past.locator(".receipt")).not_to_contain_text("And below that?")


def test_a_turn_with_a_receipt_shows_what_was_really_given(
    past: Page, site: Site, own_session: str
) -> None:
    with site.open_store() as store:
        asked = "Where are the parcels of row 70?"
        store.log(own_session, "user", asked, space=SPACE)
        store.context(own_session, asked, max_tokens=300, space=SPACE)
    past.goto(f"/ui/sessions/{own_session}")
    past.get_by_role("button", name="Context given:").click()
    receipt = past.locator(".receipt")
    expect(receipt).to_contain_text("of 300 tokens used")
    expect(receipt).to_contain_text("Shelf 10 holds parcels")
    expect(past.locator(".turn-context .note")).to_have_count(0)


def test_a_turn_shows_its_context_and_its_reminder_and_not_those_of_the_same_words_later(
    past: Page, site: Site, own_session: str
) -> None:
    asked = "Where are the parcels of row 77?"
    with site.open_store() as store:
        for _ in range(2):
            store.log(own_session, "user", asked, space=SPACE)
            store.context(own_session, asked, max_tokens=300, space=SPACE)
            store.remind(own_session, asked, space=SPACE)
    past.goto(f"/ui/sessions/{own_session}")
    turns = past.locator(".turn-user")
    expect(turns).to_have_count(2)
    for turn in turns.all():
        given = turn.locator(".turn-context")
        expect(given).to_have_text([re.compile("^Context given"), re.compile("^Reminder given")])


def test_a_long_session_continues_page_by_page_and_from_its_end(past: Page) -> None:
    past.goto(f"/ui/sessions/{OTHER_SESSION}")
    expect(past.locator(".lead")).to_have_text("45 turns")
    past.get_by_role("button", name="Latest").click()
    expect(past.locator(".lead")).to_contain_text("from turn 6 on")
    expect(past.locator(".turn").first).to_contain_text("Step 5 of the move")
    past.reload()
    expect(past.locator(".turn").first).to_contain_text("Step 5 of the move")
    past.get_by_role("button", name="From the start").click()
    expect(past.locator(".turn").first).to_contain_text("Step 0 of the move")
    past.mouse.wheel(0, 20_000)
    expect(past.get_by_text("Step 44 of the move")).to_be_attached()


def test_a_session_that_is_not_there_says_so(past: Page) -> None:
    past.goto("/ui/sessions/nothing")
    expect(past.locator(".empty")).to_contain_text("Nothing is left of this session")
