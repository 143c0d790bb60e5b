"""Saved texts are hostile: none of them runs, breaks the page or misleads its reader."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.interfaces.web.page.conftest import Site, record_problems, visit
from tests.interfaces.web.page.hostile_texts import hostile_texts

ACTIVE = "script, iframe, object, embed, base, meta, style, form[action]"
CLEAN = """active => {
  const all = (selector) => [...document.querySelectorAll('#app ' + selector)];
  const isEvent = (attribute) => /^on/i.test(attribute.name);
  const isForeign = (image) =>
    !image.src.startsWith(location.origin) && !/^(data|blob):/.test(image.src);
  return {
    owned: window.__owned ?? null,
    active: active.split(', ').flatMap(all).length,
    handlers: all('*').filter(each => [...each.attributes].some(isEvent)).length,
    links: all('a[href]').filter(a => !/^(https?|mailto):$/.test(a.protocol)).length,
    images: all('img').filter(isForeign).length,
  };
}"""


def check_clean(page: Page, text: str) -> None:
    found = page.evaluate(CLEAN, ACTIVE)
    assert found == {"owned": None, "active": 0, "handlers": 0, "links": 0, "images": 0}, (
        text,
        found,
    )


@pytest.fixture(scope="module")
def ids(site: Site) -> list[str]:
    texts = hostile_texts()
    assert len(texts) >= 200
    with site.open_store() as store:
        saved = store.save_many(
            {
                "content": text,
                "title": text.replace("\n", " ")[:200],
                "tags": ["evil", "".join(filter(str.isprintable, text[:60])).strip()],
                "session_id": f"<img src=x onerror=window.__owned=1>{at % 3}",
                "path": f"<svg onload=window.__owned=1>/{at}.md",
                "space": "hostile",
            }
            for at, text in enumerate(texts)
        )
    return [each.memory_id for each in saved]


@pytest.fixture(scope="module")
def victim(browser: Browser, site: Site, ids: list[str]) -> Page:
    context = browser.new_context(viewport={"width": 1280, "height": 2000})
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.goto(site.login_address(space="hostile"))
    page.wait_for_selector(".hit")
    return page


def test_no_text_runs_in_lists_and_searches(victim: Page, site: Site, ids: list[str]) -> None:
    problems = record_problems(victim)
    requests: list[str] = []
    victim.on("request", lambda request: requests.append(request.url))
    victim.goto(site.url)
    victim.wait_for_selector(".hit")
    for _ in range(12):
        check_clean(victim, "the list")
        victim.mouse.wheel(0, 3000)
        victim.wait_for_timeout(40)
    for query in ("script window owned", "javascript", "img onerror", "<script>", "svg onload x"):
        victim.goto(f"{site.url}/?q={query.replace('<', '%3C').replace(' ', '+')}")
        victim.wait_for_selector(".verdict")
        if victim.get_by_role("button", name="Why").count():
            victim.get_by_role("button", name="Why").first.click()
        check_clean(victim, query)
    assert [each for each in requests if not each.startswith(site.url)] == []
    assert problems == []


def test_no_text_runs_on_the_screen_of_its_memory(victim: Page, site: Site, ids: list[str]) -> None:
    problems = record_problems(victim)
    requests: list[str] = []
    victim.on("request", lambda request: requests.append(request.url))
    # Half of them: each attack in two of its four frames.
    for memory_id, text in list(zip(ids, hostile_texts(), strict=True))[::2]:
        visit(victim, f"/ui/memory/{memory_id}")
        victim.wait_for_selector(f".fact-id:has-text('{memory_id}')")
        victim.wait_for_selector(".rendered")
        check_clean(victim, text)
    victim.wait_for_timeout(100)
    check_clean(victim, "all")
    assert [each for each in requests if not each.startswith(site.url)] == []
    assert problems == []


def test_no_text_runs_on_the_other_screens(victim: Page, site: Site, ids: list[str]) -> None:
    problems = record_problems(victim)
    requests: list[str] = []
    victim.on("request", lambda request: requests.append(request.url))
    evil = quote("<img src=x onerror=window.__owned=1>0", safe="")
    for address, shown in (
        ("/ui/timeline", ".lane"),
        ("/ui/sessions", ".session"),
        (f"/ui/sessions/{evil}", ".turn"),
        (f"/ui/context?session={evil}&q={evil}&tokens=4000", ".receipt .part-what a"),
        ("/ui/review", ".review-item"),
        ("/ui/map?region=0", ".map-list .hit"),
        ("/ui/figures", ".figure"),
    ):
        victim.goto(site.url + address)
        victim.wait_for_selector(shown)
        for _ in range(4):
            check_clean(victim, address)
            victim.mouse.wheel(0, 3000)
            victim.wait_for_timeout(40)
    assert [each for each in requests if not each.startswith(site.url)] == []
    assert problems == []


def test_unseen_and_turning_characters_are_shown_by_their_code(
    victim: Page, site: Site, ids: list[str]
) -> None:
    at = next(n for n, text in enumerate(hostile_texts()) if "gnp.exe" in text)
    victim.goto(f"{site.url}/ui/memory/{ids[at]}?view=saved")
    expect(victim.locator("pre.saved")).to_have_text("⟦U+202E⟧⟦U+2066⟧gnp.exe⟦U+2069⟧")
    expect(victim.locator("h1")).to_contain_text("⟦U+202E⟧")


def test_long_words_do_not_make_a_phone_scroll_sideways(page: Page, site: Site) -> None:
    tag, session = "t" * 120, "s" * 200
    with site.open_store() as store:
        long = store.save("W" * 2000, title="T" * 400, tags=[tag], session_id=session).memory_id
        store.log(session, "user", "u" * 500)
    page.set_viewport_size({"width": 390, "height": 844})
    for address, shown in (
        (f"/?tags={tag}", ".hit"),
        (f"/ui/memory/{long}", ".rendered"),
        (f"/ui/sessions/{session}", ".turn-save"),
        (f"/ui/context?session={session}&q=W", ".receipt"),
    ):
        page.goto(site.url + address)
        page.wait_for_selector(shown)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, address
    site.cli("forget", "--session-id", session, "--yes")


@pytest.mark.slow
def test_ten_megabytes_in_one_line_do_not_stop_the_page(page: Page, site: Site) -> None:
    with site.open_store() as store:
        long = store.save("mammoth " + "x" * 9_999_992, title="A mammoth line").memory_id
    page.set_default_timeout(90_000)
    page.goto(f"{site.url}/ui/memory/{long}?view=saved")
    expect(page.locator("pre.saved")).to_contain_text("mammoth", timeout=90_000)
    page.get_by_role("button", name="Show what is after").click()
    expect(page.locator(".list-foot")).to_contain_text("of 10,000,000", timeout=90_000)
    page.get_by_role("button", name="Rendered").click()
    page.wait_for_selector(".rendered")
    page.goto(site.url)
    expect(page.locator(".hit").first).to_contain_text("A mammoth line", timeout=90_000)
    site.cli("forget", long)
