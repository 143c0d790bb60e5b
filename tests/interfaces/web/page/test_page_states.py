"""Logins, and what the page says when one ends, may only read, or when the server is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.interfaces.web.page.conftest import Site, fill


@pytest.fixture
def stranger(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.set_default_timeout(10_000)
    yield context
    context.close()


def test_without_a_login_there_is_only_the_page_that_asks_for_one(
    stranger: BrowserContext, site: Site
) -> None:
    page = stranger.new_page()
    answer = page.goto(f"{site.url}/ui/review")
    assert answer is not None
    assert answer.status == 401
    expect(page.locator("body")).to_contain_text("byheart open")
    assert page.locator(".shell").count() == 0


def test_the_code_leaves_the_address_and_works_once(
    browser: Browser, stranger: BrowserContext, site: Site
) -> None:
    address = site.login_address()
    page = stranger.new_page()
    page.goto(address)
    page.wait_for_selector(".shell")
    assert "code" not in page.url
    assert page.evaluate("document.cookie") == "", "scripts can read the cookie"
    other = browser.new_context()
    again = other.new_page()
    again.goto(address)
    again.wait_for_timeout(300)
    assert again.locator(".shell").count() == 0
    other.close()


def test_an_expired_login_is_told_and_unsaved_text_stays(
    stranger: BrowserContext, site: Site, memory: str
) -> None:
    page = stranger.new_page()
    page.goto(site.login_address())
    page.wait_for_selector(".shell")
    name = page.evaluate("fetch('/login').then(r => r.json()).then(l => l.name)")
    page.goto(f"{site.url}/ui/memory/{memory}?edit=1")
    page.get_by_label("Text", exact=True).fill("not saved yet")
    site.cli("token", "revoke", name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".banner")).to_contain_text("Your login has expired.")
    expect(page.locator(".banner")).to_contain_text("byheart open")
    expect(page.get_by_label("Text", exact=True)).to_have_value("not saved yet")


def test_a_login_for_reading_offers_no_changes(
    stranger: BrowserContext, site: Site, memory: str
) -> None:
    page = stranger.new_page()
    page.goto(site.login_address("--read-only"))
    expect(page.locator(".whoami")).to_contain_text("read-only")
    page.goto(f"{site.url}/ui/memory/{memory}")
    page.wait_for_selector(".memory")
    for name in ("Edit", "Forget", "Pin"):
        assert page.get_by_role("button", name=name).count() == 0
    page.goto(f"{site.url}/ui/memory/{memory}?edit=1")
    page.wait_for_selector(".memory")
    refused = page.evaluate(
        """id => fetch(`/memories/${id}`, {
          method: 'PATCH', headers: {'Content-Type': 'application/json'}, body: '{"tags": []}',
        }).then(r => r.status)""",
        memory,
    )
    assert refused == 403


def test_a_page_goes_on_by_itself_when_the_server_is_back(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = Site(tmp_path_factory.mktemp("gone"))
    with site.open_store() as store:
        fill(store)
    site.start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.login_address())
    page.wait_for_selector(".hit")
    port = site.url.rpartition(":")[2]
    site.stop()
    page.get_by_role("searchbox").fill("deploy key")
    page.keyboard.press("Enter")
    expect(page.locator(".banner")).to_contain_text("The server does not answer.")
    expect(page.locator(".note-bad")).to_contain_text("byheart open")
    site.start(port)
    expect(page.locator(".hit").first).to_contain_text("deploy key")
    expect(page.locator(".banner")).to_have_count(0)
    context.close()
    site.stop()


def test_logging_out_ends_the_login(stranger: BrowserContext, site: Site) -> None:
    page = stranger.new_page()
    page.goto(site.login_address())
    page.get_by_role("button", name="Log out").click()
    page.locator("dialog").get_by_role("button", name="Log out").click()
    expect(page.locator("body")).to_contain_text("byheart open")
    assert page.evaluate("fetch('/login').then(r => r.status)") == 401


def test_the_theme_follows_the_system_until_one_is_chosen(page: Page, site: Site) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    page.goto(site.url)
    page.wait_for_selector(".shell")
    dark = page.evaluate(background)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(background)
    assert dark != light
    page.get_by_role("button", name="Colours: as the system").click()
    page.get_by_role("button", name="Colours: light").click()
    assert page.evaluate(background) == dark
    page.reload()
    page.wait_for_selector(".shell")
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Colours: dark").click()


def test_two_browsers_and_the_command_line_write_at_once(
    browser: Browser, page: Page, site: Site
) -> None:
    context = browser.new_context()
    other = context.new_page()
    other.goto(site.login_address())
    with site.open_store() as store:
        ids = [store.save(f"Shared text {at} of both browsers.").memory_id for at in range(10)]
    page.goto(site.url)
    other.goto(site.url)
    write = """async ([ids, tag]) => Promise.all(ids.map(async (id) => {
      for (let tries = 0; tries < 50; tries += 1) {
        const memory = await (await fetch(`/memories/${id}`)).json();
        const answer = await fetch(`/memories/${id}`, {
          method: 'PATCH', headers: {'Content-Type': 'application/json'},
          body: JSON.stringify({tags: [...memory.tags, tag], expected_version: memory.version}),
        });
        if (answer.ok) return tries;
        if (answer.status !== 409) throw new Error(await answer.text());
      }
      throw new Error('fifty conflicts');
    }))"""
    page.evaluate(f"given => {{ window.__done = ({write})(given) }}", [ids, "one"])
    other.evaluate(f"given => {{ window.__done = ({write})(given) }}", [ids, "two"])
    for memory_id in ids[:3]:
        site.cli("update", memory_id, "--importance", "9")
    page.evaluate("window.__done")
    other.evaluate("window.__done")
    with site.open_store() as store:
        found = [store.get(each) for each in ids]
    assert [set(each.tags) for each in found] == [{"one", "two"}] * 10
    assert [each.importance for each in found[:3]] == [9.0] * 3
    history = json.loads(site.cli("--json", "history", ids[0]))
    assert {each["who"] for each in history} >= {"web"}
    context.close()


def test_a_person_who_only_looks_learns_that_the_server_is_gone(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = Site(tmp_path_factory.mktemp("quiet"))
    site.start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.login_address())
    page.wait_for_selector(".live-on")
    site.stop()
    expect(page.locator(".banner")).to_contain_text("The server does not answer.")
    context.close()


def test_an_empty_store_says_on_every_screen_how_to_begin(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = Site(tmp_path_factory.mktemp("empty"))
    site.start()
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    page.goto(site.login_address())
    page.wait_for_selector(".shell")
    for address, told in {
        "/": "byheart save",
        "/ui/timeline": "No memories yet",
        "/ui/sessions": "byheart log",
        "/ui/context": "Choose a session",
        "/ui/review": "All done",
        "/ui/map": "No map yet",
        "/ui/figures": "No memory was saved yet.",
    }.items():
        page.goto(address)
        expect(page.locator("main")).to_contain_text(told)
    page.goto("/ui/timeline")
    page.wait_for_selector(".live-on")
    site.cli("save", "The first memory.")
    page.get_by_role("button", name="1 new").click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".lead")).to_contain_text("1 memory since")
    context.close()
    site.stop()


def test_times_are_those_of_the_person(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, timezone_id="America/New_York", locale="en-GB")
    page = context.new_page()
    page.goto(site.login_address())
    page.wait_for_selector(".shell")
    page.goto("/?created_after=2026-03-02T15:30:00Z")
    expect(page.locator(".chip-text")).to_have_text("Since: 2 Mar 2026, 10:30")
    context.close()
