"""What a screen reader gets: names, announcements, and a focus that is never lost.

The announcements were compared with the speech of Orca (docs/web.md); here the accessibility tree
of the browser stands for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.test_accessibility import SCREENS, WAIT, address

CONTROLS = {"button", "link", "checkbox", "radio", "textbox", "searchbox", "combobox", "slider"}


def said(page: Page) -> Locator:
    """Find the place whose changes screen readers say."""
    return page.locator("#app > [role=status]")


def accessibility_tree(page: Page) -> list[dict[str, Any]]:
    session = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [each for each in nodes if not each["ignored"]]


@pytest.mark.parametrize("name", SCREENS)
def test_every_control_has_a_name_and_headings_do_not_skip(
    page: Page, site: Site, name: str
) -> None:
    page.goto(address(site, name))
    page.wait_for_selector(WAIT)
    nodes = accessibility_tree(page)
    unnamed = [
        each
        for each in nodes
        if each["role"]["value"] in CONTROLS and not each.get("name", {}).get("value", "").strip()
    ]
    assert unnamed == []
    levels = [
        int(prop["value"]["value"])
        for each in nodes
        if each["role"]["value"] == "heading"
        for prop in each["properties"]
        if prop["name"] == "level"
    ]
    assert levels.count(1) == 1
    for before, after in pairwise(levels):
        assert after <= before + 1, f"{levels} skip a level"


def test_the_place_for_announcements_is_there_before_and_says_only_what_is_new(
    page: Page, site: Site
) -> None:
    page.goto(site.url)
    expect(said(page)).to_contain_text("memories")
    expect(said(page)).to_have_attribute("aria-atomic", "false")
    said(page).evaluate("e => { e.dataset.same = 'yes' }")
    page.get_by_role("searchbox").fill("deploy key")
    page.keyboard.press("Enter")
    expect(said(page).locator("p").last).to_have_text(
        "Answered: The first memory most likely answers this."
    )
    expect(said(page)).to_have_attribute("data-same", "yes")
    expect(page.get_by_role("region", name="Results")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".hit input").first).to_be_focused()


def test_messages_are_said_with_the_way_back_and_the_focus_stays_near(
    page: Page, site: Site, memory: str
) -> None:
    page.goto(f"{site.url}/ui/memory/{memory}?edit=1")
    expect(page.locator("textarea")).to_be_focused()
    page.keyboard.type("Corrected. ")
    page.keyboard.press("Control+Enter")
    expect(said(page).locator("p").last).to_have_text(
        "Saved as version 2. To undo it, press u, or the button at the end of the page."
    )
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    pin = page.get_by_role("button", name="Pin", exact=True)
    pin.focus()
    page.keyboard.press("Enter")
    expect(said(page).locator("p").last).to_contain_text("Pinned: it is part of every context.")
    undo = page.get_by_role("button", name="Undo", exact=True).last
    undo.focus()
    page.keyboard.press("Enter")
    expect(said(page).locator("p").last).to_have_text("Undone.")
    expect(pin).to_be_focused()


def test_the_next_row_gets_the_focus_of_a_row_that_is_forgotten(page: Page, site: Site) -> None:
    with site.open_store() as store:
        for each in ("one", "two", "three"):
            store.save(f"The ibis {each}.", tags=["ibis"])
    page.goto(f"{site.url}/?tags=ibis")
    expect(page.locator(".hit")).to_have_count(3)
    page.get_by_role("button", name="Forget: The ibis two.").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(2)
    expect(page.get_by_role("link", name="The ibis one.", exact=True)).to_be_focused()
    page.get_by_role("button", name="Forget: The ibis one.").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="The ibis three.", exact=True)).to_be_focused()
    page.get_by_role("button", name="Undo").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(2)
    assert page.evaluate("document.activeElement !== document.body")


def test_a_filter_that_is_taken_away_leaves_the_focus_at_the_filters(
    page: Page, site: Site
) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.get_by_role("button", name="Filter", exact=True).focus()
    page.keyboard.press("Enter")
    page.locator(".menu-item", has_text="Kind").first.click()
    page.locator(".choice", has_text="fact").first.click()
    remove = page.get_by_role("button", name="Remove the filter Kind")
    remove.focus()
    page.keyboard.press("Enter")
    expect(remove).to_have_count(0)
    expect(page.get_by_role("button", name="Filter", exact=True)).to_be_focused()
    expect(said(page).locator("p").last).to_contain_text("memories")


def test_keys_are_no_part_of_names(page: Page, site: Site, memory: str) -> None:
    page.goto(f"{site.url}/ui/memory/{memory}")
    for name in ("Edit", "Forget"):
        button = page.get_by_role("button", name=name, exact=True)
        expect(button).to_have_attribute("aria-keyshortcuts", {"Edit": "e", "Forget": "#"}[name])


def test_after_a_dialog_no_message_is_said_again(page: Page, site: Site, memory: str) -> None:
    page.goto(f"{site.url}/ui/memory/{memory}")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(said(page).locator("p")).to_have_count(1)
    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_label("Tags").fill("seen")
    page.keyboard.press("Enter")
    expect(said(page).locator("p")).to_have_count(1)
    expect(said(page)).to_contain_text("1 memory tagged.")


def test_new_memories_are_said_once(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".live-on")
    for number in range(2):
        site.cli("save", f"The stork number {number} arrived.")
        expect(page.locator(".pill")).to_contain_text(f"{number + 1} new")
    expect(said(page).get_by_text("There are new memories")).to_have_count(1)
    page.locator(".pill").click()
    expect(page.locator(".hit-name").first).to_contain_text("The stork")
    assert page.evaluate("document.activeElement !== document.body")


def test_a_row_that_is_scrolled_away_does_not_pull_the_focus(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.locator(".hit-name").nth(2).focus()
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 6000)
    expect(page.locator("[data-index='2']")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator(".row-active .hit-name")).to_be_focused()
    assert page.evaluate("document.activeElement.closest('.list') !== null")
