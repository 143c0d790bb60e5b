"""WCAG 2.2 AA on every screen, in light and dark, down to 320 pixels."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site, check_axe
from tests.interfaces.web.page.test_memory_screen import id_of

SCREENS = {
    "search": "/",
    "forgotten": "/?forgotten=true",
    "hits": "/?q=deploy+key&kind=fact",
    "compare": "/?q=deploy+key&mode=compare",
    "missing": "/ui/nothing",
    "text": "/ui/memory/{id}",
    "saved": "/ui/memory/{id}?view=saved",
    "chunks": "/ui/memory/{id}?tab=chunks",
    "history": "/ui/memory/{id}?tab=history",
    "similar": "/ui/memory/{id}?tab=similar",
    "used": "/ui/memory/{id}?tab=used",
    "edit": "/ui/memory/{id}?edit=1",
    "no memory": "/ui/memory/mem_nothing",
    "timeline": "/ui/timeline",
    "sessions": "/ui/sessions",
    "replay": "/ui/sessions/chat-7",
    "context": "/ui/context?session=chat-7&q=deploy",
    "review": "/ui/review",
    "map": "/ui/map?region=0",
    "figures": "/ui/figures",
}
WAIT = (
    ".hit, .compare-column, .empty, .rendered, pre.saved, .chunk, .history, .similar, .editor, "
    ".note-bad, .figure, .session, .turn, .receipt, .review-item, .map-list .hit"
)


def address(site: Site, name: str) -> str:
    return site.url + SCREENS[name].replace("{id}", id_of(site, "checkout report"))


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_has_no_violation_in_light_and_dark_and_fits_320_pixels(
    page: Page, site: Site, name: str
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(address(site, name))
    page.wait_for_selector(WAIT)
    check_axe(page, f"{name}, light")
    page.emulate_media(color_scheme="dark")
    check_axe(page, f"{name}, dark", ("color-contrast",))
    page.set_viewport_size({"width": 320, "height": 640})
    page.wait_for_timeout(60)
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{name} scrolls sideways by {wide} pixels"


def test_menus_dialogs_and_messages_have_no_violation(page: Page, site: Site) -> None:
    page.goto(address(site, "hits"))
    page.get_by_role("button", name="Why").first.click()
    check_axe(page, "why")
    page.locator(".chip-add").click()
    check_axe(page, "menu of filters")
    page.locator(".menu-item", has_text="Since").click()
    check_axe(page, "form of a filter")
    page.keyboard.press("Escape")
    expect(page.locator(".chip-add")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    check_axe(page, "selection")
    page.keyboard.press("?")
    check_axe(page, "help")
    page.keyboard.press("Escape")
    page.goto(address(site, "text"))
    page.get_by_role("button", name="Forget for good").click()
    check_axe(page, "typed confirmation")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector(".toast")
    check_axe(page, "message")
    page.set_viewport_size({"width": 320, "height": 640})
    page.get_by_role("button", name="Menu").click()
    check_axe(page, "menu on a phone")


def test_the_keyboard_alone_reaches_the_content_first(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_dialog_keeps_the_focus_and_gives_it_back(page: Page, site: Site) -> None:
    page.goto(address(site, "text"))
    opener = page.get_by_role("button", name="Tag", exact=True)
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
