"""Every key of the help has a labelled button that is in view and does the same."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.test_memory_screen import id_of
from tests.interfaces.web.test_page_files import own_scripts

# The browser and the dialogs themselves do these: each link and button, and each button "Close".
WITHOUT_A_BUTTON = {"Enter", "Esc"}
# This button is there while an action can be undone.
AFTER_AN_ACTION = {"u"}
SCREENS = {
    "search": ("page", "/?q=deploy+key"),
    "newest": ("page", "/"),
    "memory": ("page", "/ui/memory/{id}"),
    "timeline": ("past", "/ui/timeline"),
    "sessions": ("past", "/ui/sessions"),
    "replay": ("past", "/ui/sessions/infra-1"),
    "review": ("past", "/ui/review"),  # empty: test_review_screen.py has a queue
    "map": ("past", "/ui/map?region=0"),
    "context": ("past", "/ui/context"),
    "figures": ("past", "/ui/figures"),
}


def keys_of_the_help(page: Page) -> dict[str, str]:
    """Read the table of keys that the screen shows: each key with its action."""
    page.keyboard.press("?")
    rows = page.locator("dialog .keys tbody tr")
    expect(rows.first).to_be_visible()
    table = dict(each.inner_text().split("\t", 1) for each in rows.all())
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    return {key.strip(): action.strip() for key, action in table.items()}


def buttons_of(page: Page, key: str) -> Locator:
    return page.locator(f"[aria-keyshortcuts='{key}']:visible")


@pytest.mark.parametrize("width", [1280, 320])
@pytest.mark.parametrize("name", SCREENS)
def test_every_key_of_a_screen_has_a_button(
    request: pytest.FixtureRequest, site: Site, name: str, width: int
) -> None:
    space, address = SCREENS[name]
    page: Page = request.getfixturevalue(space)
    page.set_viewport_size({"width": width, "height": 640})
    page.goto(site.url + address.replace("{id}", id_of(site, "checkout report")))
    page.wait_for_load_state("networkidle")
    expect(page.locator(".skeleton")).to_have_count(0)
    check_buttons(page)


def check_buttons(page: Page) -> None:
    """Compare the keys that the screen offers with its buttons."""
    keys = keys_of_the_help(page)
    assert {"/", "?", "u"} <= set(keys)
    if page.locator(".list .row").count():
        assert {"j", "k"} <= set(keys), "a list without keys"
    else:  # there is nothing to move through
        keys = {key: action for key, action in keys.items() if key not in ("j", "k", "x")}
    menu = page.get_by_role("button", name="Menu")
    if menu.is_visible():
        menu.click()
    lacking = {
        key: action
        for key, action in keys.items()
        if key not in WITHOUT_A_BUTTON | AFTER_AN_ACTION and not buttons_of(page, key).count()
    }
    assert lacking == {}, "these keys have no button"
    for key in keys:
        for each in buttons_of(page, key).all()[:3]:
            named = each.evaluate("e => e.ariaLabel || e.labels?.[0]?.innerText || e.innerText")
            assert named.strip(), f"the button of {key} has no name"
    if menu.is_visible():
        menu.click()


def test_the_button_that_undoes_has_a_key(page: Page, site: Site, memory: str) -> None:
    page.goto(f"{site.url}/ui/memory/{memory}")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(buttons_of(page, "u")).to_be_visible()
    page.keyboard.press("u")
    expect(buttons_of(page, "u")).to_have_count(0)


def test_the_buttons_move_through_a_list_as_the_keys_do(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    active = page.locator(".row-active")
    back, on = (page.get_by_role("button", name=each, exact=True) for each in ("Previous", "Next"))
    expect(back).to_be_disabled()
    on.click()
    expect(active).to_have_attribute("data-index", "0")
    expect(active.locator(".hit-name")).to_be_focused()
    for _ in range(20):
        on.click()
    expect(active).to_have_attribute("data-index", "20")
    expect(on).to_be_in_viewport()
    back.click()
    expect(active).to_have_attribute("data-index", "19")
    page.keyboard.press("j")
    expect(active).to_have_attribute("data-index", "20")


def test_single_keys_can_be_switched_off_and_the_browser_remembers_it(
    page: Page, site: Site
) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.keyboard.press("?")
    choice = page.get_by_role("checkbox", name="Use single keys")
    choice.uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_selector(".hit")
    for key in ("j", "x", "?"):
        page.keyboard.press(key)
    expect(page.locator(".row-active, .bulk, dialog")).to_have_count(0)
    page.get_by_role("button", name="Keys and help").click()
    choice.check()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".row-active")).to_have_count(1)


def test_the_buttons_cover_neither_selection_nor_messages(page: Page, site: Site) -> None:
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 640})
        page.goto(site.url)
        page.wait_for_selector(".hit")
        page.locator(".hit input").first.check()
        page.keyboard.press("u")
        boxes = [page.locator(each).bounding_box() for each in (".steps", ".bulk", ".toast")]
        for at, one in enumerate(boxes):
            for other in boxes[at + 1 :]:
                assert one is not None
                assert other is not None
                apart = (
                    one["y"] + one["height"] <= other["y"]
                    or other["y"] + other["height"] <= one["y"]
                    or one["x"] + one["width"] <= other["x"]
                    or other["x"] + other["width"] <= one["x"]
                )
                assert apart, f"{one} covers {other} at {width} pixels"


def test_the_code_names_no_key_without_a_button() -> None:
    """A key that only some state offers is not seen by the screens above."""
    text = "\n".join(each.read_text(encoding="utf-8") for each in own_scripts())
    maps = set(re.findall(r'(?<!\w)"?([a-z#?/\[\]]|[A-Z]\w+)"?: \{ label: "[A-Z]', text))
    of_review = set(re.findall(r'^    key: "(.)", label: ', text, re.M))
    # review.js makes a button of each of its actions, with the key that the table of actions names.
    buttons = set(re.findall(r'(?:aria-keyshortcuts|hint)="(.)"', text)) | of_review
    assert {"j", "k", "x", "e", "w", "#", "[", "?", "u"} <= maps
    assert {"a", "m", "s", "t", "y", "#"} == of_review
    assert maps - WITHOUT_A_BUTTON <= buttons
