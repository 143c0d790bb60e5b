"""The review: one queue, worked by keyboard, with a way back from each action.

Each test undoes what it did, so the queue is the same for the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.interfaces.web.page.conftest import Site, log_in, record_problems
from tests.interfaces.web.page.past import days_ago, import_past, memory_of
from tests.interfaces.web.page.test_keys import check_buttons
from tests.memory.test_reviewing import fill

SPACE = "review"


@pytest.fixture(scope="module")
def ids(site: Site) -> dict[str, str]:
    """Fill the queue with one item for each reason."""
    old = memory_of("The old printer is in room 3.", days_ago(200), space=SPACE)
    with site.open_store() as store:
        import_past(store, [old])
        return {**fill(store, SPACE), "unused": old["memory_id"]}


@pytest.fixture(scope="module")
def reviewer(browser: Browser, site: Site, ids: dict[str, str]) -> Iterator[BrowserContext]:
    context = log_in(browser, site, SPACE)
    yield context
    context.close()


@pytest.fixture
def queue(reviewer: BrowserContext) -> Iterator[Page]:
    page = reviewer.new_page()
    problems = record_problems(page)
    page.goto("/ui/review")
    expect(page.locator(".lead")).to_have_text("6 items to look at")
    yield page
    page.close()
    assert problems == []


def item(page: Page, reason: str) -> Locator:
    return page.locator(".review-item", has=page.locator(f'.badge:text-is("{reason}")'))


def move_to(page: Page, reason: str) -> None:
    """Make an item the active one by keyboard."""
    for _ in range(6):
        if page.locator(".row-active .review-head .badge").inner_text() == reason:
            return
        page.keyboard.press("j")
    raise AssertionError(f"there is no {reason}")


def expect_done(page: Page, done: str) -> None:
    """Wait until the server has done it: an item leaves the list at once."""
    expect(page.locator(".toast").last).to_contain_text(f"1 item {done}.")


def undo(page: Page) -> None:
    page.keyboard.press("u")
    expect(page.locator(".toast").last).to_have_text("Undone.")
    expect(page.locator(".lead")).to_have_text("6 items to look at")


@pytest.mark.parametrize("width", [1280, 320])
def test_every_key_of_each_item_has_a_button(queue: Page, width: int) -> None:
    queue.set_viewport_size({"width": width, "height": 640})
    for at in range(6):
        expect(queue.locator(f".row-active[data-index='{at}']")).to_be_visible()
        check_buttons(queue)
        queue.keyboard.press("Escape")
        queue.keyboard.press("j")


def test_every_reason_has_its_items_its_count_and_an_address(queue: Page) -> None:
    expect(queue.locator(".review-head .badge")).to_have_text(
        ["Secret", "Contradiction", "Untrusted", "Expiring", "Near-duplicate", "Unused"]
    )
    tabs = queue.get_by_role("navigation", name="Reasons")
    tabs.get_by_role("link", name="Expiring 1").click()
    expect(queue.locator(".review-item")).to_have_count(1)
    queue.reload()
    expect(queue.locator(".review-item")).to_contain_text("The guest password")
    queue.goto("/ui/review?kind=report")
    expect(queue.locator(".empty h2")).to_have_text("All done")


def test_two_texts_that_contradict_each_other_have_the_difference_marked(queue: Page) -> None:
    pair = item(queue, "Contradiction")
    expect(pair.locator(".review-why")).to_have_text("they differ in a number")
    assert sorted(pair.locator("mark").all_inner_texts()) == ["8080", "8081"]


def test_a_kept_item_leaves_the_queue_and_the_keyboard_goes_on_with_the_next(queue: Page) -> None:
    queue.keyboard.press("a")
    expect(queue.locator(".lead")).to_have_text("5 items to look at")
    expect(item(queue, "Secret")).to_have_count(0)
    expect(queue.locator(".row-active .badge").first).to_have_text("Contradiction")
    expect(queue.locator(".row-active .hit-name").first).to_be_focused()
    queue.reload()
    expect(queue.locator(".lead")).to_have_text("5 items to look at")
    # A reload forgets what could be undone: the queue's own way back is the REST interface.
    kept = queue.evaluate(
        """async () => {
          const ask = (path, body) => fetch(path, {method: 'POST', body: JSON.stringify(body),
            headers: {'Content-Type': 'application/json'}}).then(r => r.json());
          const {memories} = await (await fetch('/memories?limit=100')).json();
          const secret = memories.find(each => each.summary.includes('build server'));
          return ask('/review/unkeep', {item_id: `secret:${secret.memory_id}@${secret.version}`});
        }"""
    )
    assert kept["kept"] is False


def test_keep_is_undone(queue: Page) -> None:
    move_to(queue, "Unused")
    queue.keyboard.press("a")
    expect(item(queue, "Unused")).to_have_count(0)
    undo(queue)
    expect(item(queue, "Unused")).to_have_count(1)


def test_the_memory_that_was_chosen_to_stay_supersedes_the_other(
    queue: Page, site: Site, ids: dict[str, str]
) -> None:
    move_to(queue, "Contradiction")
    pair = item(queue, "Contradiction")
    shown = [each.get_attribute("href") or "" for each in pair.locator(".hit-name").all()]
    place = next(at for at, href in enumerate(shown) if href.endswith(ids["old"])) + 1
    queue.keyboard.press(str(place))
    expect(pair.locator(".review-kept")).to_contain_text("8080")
    queue.keyboard.press("s")
    expect_done(queue, "superseded")
    with site.open_store() as store:
        assert store.get(ids["new"], space=SPACE).superseded_by == ids["old"]
    undo(queue)
    with site.open_store() as store:
        assert store.get(ids["new"], space=SPACE).superseded_by is None


def test_merging_joins_tags_and_undo_takes_them_apart(
    queue: Page, site: Site, ids: dict[str, str]
) -> None:
    with site.open_store() as store:
        for name in ("first", "second"):
            store.update(ids[name], tags=[name], space=SPACE)
    queue.reload()
    move_to(queue, "Near-duplicate")
    queue.keyboard.press("m")
    expect_done(queue, "merged")
    with site.open_store() as store:
        left = store.list(tags=["first", "second"], match="all", space=SPACE).memories
        assert [set(each.tags) for each in left] == [{"first", "second"}]
    undo(queue)
    with site.open_store() as store:
        assert [store.get(ids[name], space=SPACE).tags for name in ("first", "second")] == [
            ("first",),
            ("second",),
        ]


def test_an_expiring_memory_is_extended(queue: Page, site: Site, ids: dict[str, str]) -> None:
    with site.open_store() as store:
        before = store.get(ids["expiring"], space=SPACE).expires_at
    move_to(queue, "Expiring")
    item(queue, "Expiring").get_by_role("button", name="Extend by 90 days").click()
    expect(item(queue, "Expiring")).to_have_count(0)
    expect_done(queue, "extended")
    with site.open_store() as store:
        after = store.get(ids["expiring"], space=SPACE).expires_at
    assert before is not None
    assert after is not None
    assert (after - before).days >= 86
    undo(queue)
    with site.open_store() as store:
        assert store.get(ids["expiring"], space=SPACE).expires_at == before


def test_an_untrusted_memory_is_trusted_and_a_secret_forgotten(
    queue: Page, site: Site, ids: dict[str, str]
) -> None:
    move_to(queue, "Untrusted")
    queue.keyboard.press("y")
    expect(item(queue, "Untrusted")).to_have_count(0)
    expect_done(queue, "trusted")
    with site.open_store() as store:
        assert store.get(ids["untrusted"], space=SPACE).untrusted_at is None
    undo(queue)
    item(queue, "Secret").get_by_role("button", name="Forget").click()
    expect(item(queue, "Secret")).to_have_count(0)
    expect_done(queue, "forgotten")
    with site.open_store() as store:
        assert ids["secret"] not in [
            each.memory_id for each in store.list(space=SPACE, limit=100).memories
        ]
    undo(queue)


def test_several_items_show_a_dry_run_offer_an_export_and_are_undone_together(
    queue: Page, site: Site, ids: dict[str, str]
) -> None:
    for reason in ("Secret", "Expiring"):
        item(queue, reason).get_by_role("checkbox").check()
    bar = queue.get_by_role("region", name="Selected items")
    expect(bar).to_contain_text("2 items selected")
    expect(bar.get_by_role("button", name="Extend")).to_have_count(0)
    queue.keyboard.press("#")
    dialog = queue.locator("dialog")
    expect(dialog).to_contain_text("2 memories would disappear")
    expect(dialog).to_contain_text("The guest password")
    with queue.expect_download() as download:
        dialog.get_by_role("link", name="Export them first").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert sum("guest password" in json.loads(each).get("content", "") for each in lines) == 1
    dialog.get_by_role("button", name="Cancel").click()
    expect(queue.locator(".lead")).to_have_text("6 items to look at")
    queue.keyboard.press("#")
    dialog.get_by_role("button", name="Forget (2)").click()
    expect(queue.locator(".lead")).to_have_text("4 items to look at")
    undo(queue)
    with site.open_store() as store:
        assert store.get(ids["expiring"], space=SPACE).forgotten_at is None


def test_an_item_that_changed_elsewhere_says_so_and_is_listed_anew(
    queue: Page, site: Site, ids: dict[str, str]
) -> None:
    move_to(queue, "Expiring")
    with site.open_store() as store:
        store.update(ids["expiring"], tags=["seen"], space=SPACE)
    queue.keyboard.press("a")
    expect(queue.locator(".toast-bad")).to_contain_text("Somebody else was faster")
    expect(item(queue, "Expiring")).to_contain_text("#seen")


def test_a_login_for_reading_sees_the_queue_without_actions(
    browser: Browser, site: Site, ids: dict[str, str]
) -> None:
    context = log_in(browser, site, SPACE, "--read-only")
    page = context.new_page()
    page.goto("/ui/review")
    expect(page.locator(".review-item").first).to_be_visible()
    assert page.locator(".review-actions, .review-item input").count() == 0
    page.keyboard.press("#")
    expect(page.locator(".lead")).to_have_text("6 items to look at")
    context.close()
