"""The first screen: newest memories, searches, filters, why, and several memories at once."""

from __future__ import annotations

import io

from playwright.sync_api import Browser, Page, expect

from tests.interfaces.web.page.conftest import Site, visit


def search(page: Page, site: Site, query: str) -> None:
    page.goto(site.url)
    box = page.locator("input[type=search]")
    expect(box).to_be_visible()
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict")


def test_without_a_question_the_newest_memories_are_listed(page: Page, site: Site) -> None:
    page.goto(site.url)
    expect(page.locator(".list-title")).to_contain_text("Newest")
    expect(page.locator(".hit").first).to_be_visible()


def test_the_first_list_is_asked_for_once_and_before_the_scripts_ran(
    page: Page, site: Site
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.url)
    expect(page.locator(".hit").first).to_be_visible()
    asked_first = [each for each in asked if "/memories" in each]
    assert len(asked_first) == 1, asked_first
    started_by = page.evaluate(
        "url => performance.getEntriesByName(url).map(each => each.initiatorType)", asked_first[0]
    )
    assert started_by == ["link"]


def test_forgotten_memories_are_listed_and_restored_in_groups(page: Page, site: Site) -> None:
    with site.open_store() as store:
        ids = [store.save(f"A lamp that went out {at}.").memory_id for at in range(3)]
        store.forget(ids)
    page.goto(site.url)
    page.get_by_role("button", name="Forgotten ones").click()
    expect(page.locator(".list-title")).to_contain_text("Forgotten")
    rows = page.locator(".row", has_text="A lamp that went out")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Restore: A lamp that went out 1.").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(3)
    for row in rows.all():
        row.get_by_role("checkbox").check()
    page.get_by_role("region", name="Selected memories").get_by_role(
        "button", name="Restore"
    ).click()
    expect(rows).to_have_count(0)
    page.reload()  # the list has an address of its own
    expect(page.locator(".list-title")).to_contain_text("Forgotten")
    page.get_by_role("button", name="Back to the newest").click()
    expect(rows).to_have_count(3)


def test_a_long_list_keeps_only_the_rows_near_the_window(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    total = int(page.locator(".row").first.get_attribute("aria-setsize") or 0)
    assert total > 120
    for _ in range(12):
        page.mouse.wheel(0, 2000)
        page.wait_for_timeout(40)
    expect(page.locator(f".row[aria-posinset='{total}']")).to_be_visible()
    assert page.locator(".row").count() < 60


def test_a_search_tells_the_verdict_first_and_marks_words(page: Page, site: Site) -> None:
    search(page, site, "where is the deploy key")
    assert page.locator(".verdict-word").inner_text() in ("Answered", "Unsure", "No answer")
    first = page.locator(".hit").first
    expect(first).to_contain_text("The deploy key is kept in the vault.")
    assert "deploy" in [each.lower() for each in first.locator("mark").all_inner_texts()]
    assert "q=where" in page.url


def test_the_address_of_a_search_can_be_reloaded(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?q=deploy&kind=fact&mode=fts")
    page.wait_for_selector(".hit")
    page.reload()
    expect(page.locator("input[type=search]")).to_have_value("deploy")
    expect(page.locator(".chip-text")).to_have_text(["Kind: fact"])
    expect(page.get_by_role("button", name="Keywords")).to_have_attribute("aria-pressed", "true")


def test_markdown_stars_of_a_saved_text_are_not_marks(page: Page, site: Site) -> None:
    search(page, site, "Marie writes bold words")
    first = page.locator(".hit").first
    expect(first).to_contain_text("Marie writes **bold** words and `code`.")
    assert first.locator("mark").all_inner_texts() == ["Marie", "writes", "bold", "words"]


def test_a_filter_is_added_changed_and_taken_away(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.locator(".menu-item", has_text="Kind").click()
    page.locator(".choice", has_text="fact").first.click()
    expect(page.locator(".chip-text")).to_have_text(["Kind: fact"])
    expect(page.locator(".hit .badges > :first-child:not(:text-is('fact'))")).to_have_count(0)
    page.get_by_role("button", name="Filter", exact=True).click()
    page.locator(".menu-item", has_text="Tags").first.click()
    page.get_by_label("Tags", exact=True).last.fill("deploy")
    page.keyboard.press("Enter")
    expect(page.locator(".chip-text")).to_have_text(["Kind: fact", "Tags: deploy"])
    page.get_by_role("button", name="Remove the filter Kind").click()
    expect(page.locator(".chip-text")).to_have_text(["Tags: deploy"])
    assert "kind" not in page.url


def test_every_filter_is_offered_and_the_server_accepts_it(page: Page, site: Site) -> None:
    values = {
        "kind": "fact",
        "session_id": "chat-7",
        "include_global": "false",
        "agent_id": "claude",
        "tags": "deploy",
        "entities": "Marie",
        "match": "all",
        "path": "reports/*",
        "created_after": "2020-01-01T00:00:00Z",
        "created_before": "2120-01-01T00:00:00Z",
        "origin": "user",
        "language": "en",
        "as_of": "2120-01-01T00:00:00Z",
        "min_importance": "1",
        "task_code": "t",
        "session_iter": "2",
        "include_expired": "true",
    }
    page.goto(site.url)
    page.wait_for_selector(".hit")
    for name, value in values.items():
        with page.expect_response("**/search") as answer:
            visit(page, f"/?q=deploy&{name}={value}")
        assert answer.value.status == 200, name
        expect(page.locator(".chip-text")).to_have_count(1)


def test_why_shows_the_shares_with_terms_and_ranks(page: Page, site: Site) -> None:
    search(page, site, "deploy key vault")
    page.get_by_role("button", name="Why").first.click()
    why = page.locator(".why").first
    expect(why.locator(".score-bar svg")).to_be_visible()
    expect(why).to_contain_text("Keywords")
    expect(why).to_contain_text("Meaning")
    expect(why.locator(".term", has_text="vault")).to_be_visible()
    expect(why).to_contain_text("1.")
    page.keyboard.press("j")
    page.keyboard.press("w")
    expect(page.locator(".why")).to_have_count(0)


def test_three_ways_to_search_stand_side_by_side(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?q=deploy+key")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".compare-column h2")).to_have_text(["Both", "Keywords", "Meaning"])
    assert page.locator(".compare-column li").count() > 3


def test_the_keyboard_moves_opens_and_goes_back(page: Page, site: Site) -> None:
    search(page, site, "deploy key vault")
    page.keyboard.press("j")
    expect(page.locator(".row-active")).to_have_attribute("data-index", "0")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_selector(".memory")
    assert "/ui/memory/mem_" in page.url
    expect(page.locator("h1")).to_be_focused()
    page.go_back()
    expect(page.locator("input[type=search]")).to_have_value("deploy key vault")


def test_the_help_names_the_keys(page: Page, site: Site) -> None:
    search(page, site, "deploy")
    page.keyboard.press("j")
    page.keyboard.press("?")
    keys = page.locator("dialog .keys kbd").all_inner_texts()
    assert {"/", "j", "k", "Enter", "e", "x", "#", "u", "?"} <= set(keys)
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def select_two(page: Page, site: Site, word: str) -> list[str]:
    with site.open_store() as store:
        ids = [store.save(f"{word} {each}", kind="fact").memory_id for each in ("one", "two")]
    page.goto(f"{site.url}/?q={word}&mode=fts")
    page.wait_for_selector(".hit")
    for _ in ids:
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.locator(".bulk")).to_contain_text("2 memories selected")
    return ids


def test_all_rows_that_are_shown_are_selected_at_once(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?kind=fact&tags=deploy")
    page.wait_for_selector(".hit")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_role("button", name="Select all shown").click()
    expect(page.locator(".bulk")).to_contain_text("2 memories selected")
    page.locator(".bulk").get_by_role("button", name="Clear").click()
    expect(page.locator(".bulk")).to_have_count(0)


def test_several_memories_are_tagged_at_once_and_untagged_by_undo(page: Page, site: Site) -> None:
    ids = select_two(page, site, "zebra")
    page.locator(".bulk").get_by_role("button", name="Tag").click()
    page.get_by_label("Tags").last.fill("striped, animal")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".toast")).to_contain_text("2 memories tagged.")
    with site.open_store() as store:
        assert [set(store.get(each).tags) for each in ids] == [{"striped", "animal"}] * 2
    page.keyboard.press("u")
    expect(page.locator(".toast").last).to_contain_text("Undone.")
    with site.open_store() as store:
        assert [store.get(each).tags for each in ids] == [()] * 2


def test_a_message_does_not_cover_the_actions_on_a_selection(page: Page, site: Site) -> None:
    top = "each => each.getBoundingClientRect().top"
    bottom = "each => each.getBoundingClientRect().bottom"
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(site.url)
        page.locator(".hit input").first.check()
        page.keyboard.press("u")
        expect(page.locator(".toast")).to_be_visible()
        assert page.locator(".toast").evaluate(bottom) <= page.locator(".bulk").evaluate(top)


def test_forgetting_several_shows_a_dry_run_offers_an_export_and_can_be_undone(
    page: Page, site: Site
) -> None:
    ids = select_two(page, site, "quokka")
    page.keyboard.press("#")
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("Forget 2 memories?")
    expect(dialog).to_contain_text("quokka one")
    with page.expect_download() as download:
        dialog.get_by_role("link", name="Export them first").click()
    with site.open_store() as store:
        written = io.BytesIO()
        store.export(written, memory_id=ids)
    assert download.value.path().read_bytes() == written.getvalue()
    assert download.value.suggested_filename.endswith(".jsonl")
    expect(page.locator(".toast", has_text="The export is being written")).to_be_visible()
    dialog.get_by_role("button", name="Forget 2").click()
    expect(page.locator(".toast").last).to_contain_text("2 memories forgotten.")
    expect(page.locator(".hit")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".hit")).to_have_count(2)
    with site.open_store() as store:
        assert [store.get(each).memory_id for each in ids] == ids


def test_a_memory_that_another_process_saves_is_announced(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".live-on")
    first = page.locator(".hit-name").first.inner_text()
    site.cli("save", "The heron arrived from another process.")
    pill = page.locator(".pill")
    expect(pill).to_contain_text("new")
    assert page.locator(".hit-name").first.inner_text() == first, "the list jumped"
    pill.click()
    expect(page.locator(".hit-name").first).to_contain_text("The heron arrived")
    expect(pill).to_have_count(0)


def test_two_browsers_and_the_command_line_see_each_other_live(
    browser: Browser, page: Page, site: Site
) -> None:
    context = browser.new_context()
    other = context.new_page()
    other.goto(site.login_address())
    page.goto(site.url)
    for each in (page, other):
        each.wait_for_selector(".live-on")
    for number in range(2):
        site.cli("save", f"The plover number {number} came over the command line.")
    other.evaluate(
        """() => fetch('/memories', {
          method: 'POST', headers: {'Content-Type': 'application/json'},
          body: JSON.stringify({content: 'The plover number 2 came from a browser.'}),
        })"""
    )
    for each in (page, other):
        first = each.locator(".hit-name").first.inner_text()
        expect(each.locator(".pill")).to_contain_text("3 new")
        assert each.locator(".hit-name").first.inner_text() == first, "the list jumped"
        each.locator(".pill").click()
        expect(each.locator(".hit-name").nth(2)).to_contain_text("The plover number 0")
    context.close()


def test_a_page_that_was_hidden_is_told_what_it_missed(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".live-on")
    show = """state => {
      Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(show, "hidden")
    expect(page.locator(".live-on")).to_have_count(0)
    site.cli("save", "The dunlin came while nobody looked.")
    page.evaluate(show, "visible")
    expect(page.locator(".pill")).to_contain_text("1 new")


def test_an_empty_store_tells_how_to_begin(browser: Browser, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.login_address(space="empty"))
    expect(page.locator(".empty h2")).to_have_text("No memories yet")
    expect(page.locator(".empty")).to_contain_text("byheart save")
    expect(page.locator(".whoami")).to_contain_text("empty")
    context.close()


def test_a_query_that_cannot_be_read_says_what_to_do(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?q=deploy&as_of=yesterday-ish")
    note = page.locator(".note-bad")
    expect(note).to_contain_text("This value does not work")
    expect(note).to_contain_text("as_of")
