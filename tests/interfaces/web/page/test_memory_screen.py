"""One memory: every view of it and every action on it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site


def show(page: Page, site: Site, memory_id: str, query: str = "") -> None:
    page.goto(f"{site.url}/ui/memory/{memory_id}{query}")
    page.wait_for_selector("h1")


def id_of(site: Site, text: str) -> str:
    with site.open_store() as store:
        return store.search(text, mode="fts", limit=1).results[0].memory_id


def test_the_text_is_shown_rendered_and_as_it_was_saved(page: Page, site: Site) -> None:
    show(page, site, id_of(site, "checkout report"))
    rendered = page.locator(".rendered")
    expect(rendered.locator("strong")).to_have_text("checkout")
    assert rendered.locator("h1, h2, h3, h4").count() == 3
    page.get_by_role("button", name="As saved").click()
    expect(page.locator("pre.saved")).to_contain_text("The **checkout** was slow in March.")
    page.reload()
    expect(page.locator("pre.saved")).to_be_visible()


def test_a_hit_deep_in_a_text_leads_to_its_lines(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?q=unused+chart+library")
    page.locator(".hit-name").first.click()
    expect(page.locator("pre.saved mark")).to_contain_text("One unused chart library")


def test_fields_and_chunks_are_shown(page: Page, site: Site) -> None:
    show(page, site, id_of(site, "checkout report"), "?tab=chunks")
    expect(page.locator(".chunk").first).to_contain_text("Checkout report")
    side = page.locator(".memory-side")
    expect(side).to_contain_text("reports/checkout.md")
    side.get_by_role("link", name="shop").click()
    expect(page.locator(".chip-text")).to_have_text(["Tags: shop"])


def test_an_edit_is_saved_shown_in_the_history_and_undone(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    expect(page.get_by_role("button", name=re.compile("^Edit"))).to_be_visible()
    page.keyboard.press("e")
    page.get_by_label("Text", exact=True).fill("The lamp is red now.")
    page.get_by_label("Tags, with commas").fill("lamp")
    page.get_by_role("button", name=re.compile("^Save")).click()
    expect(page.locator(".toast")).to_contain_text("Saved as version 2.")
    expect(page.locator("h1")).to_contain_text("The lamp is red now.")
    page.get_by_role("link", name="History").click()
    diff = page.locator(".diff").first
    expect(diff.locator("ins").last).to_contain_text("now")
    assert "green" in "".join(diff.locator("del").all_inner_texts())
    expect(page.locator(".history li").first).to_contain_text("web changed it")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_contain_text("is green")


def test_a_conflict_shows_both_texts_and_loses_neither(page: Page, site: Site, memory: str) -> None:
    show(page, site, memory, "?edit=1")
    page.get_by_label("Text", exact=True).fill("My lamp is blue.")
    site.cli("update", memory, "Their lamp is yellow.")
    page.get_by_role("button", name=re.compile("^Save")).click()
    conflict = page.locator(".conflict")
    expect(conflict).to_contain_text("Somebody else changed this memory")
    expect(conflict.locator("pre.saved")).to_have_text("Their lamp is yellow.")
    expect(conflict.locator("ins").first).to_contain_text("My")
    expect(page.get_by_label("Text", exact=True)).to_have_value("My lamp is blue.")
    conflict.get_by_role("button", name="Save mine over version 2").click()
    expect(page.locator("h1")).to_contain_text("My lamp is blue.")
    with site.open_store() as store:
        assert store.get(memory).version == 3


def test_the_stored_text_can_be_taken_after_a_conflict(page: Page, site: Site, memory: str) -> None:
    show(page, site, memory, "?edit=1")
    page.get_by_label("Text", exact=True).fill("My lamp is blue.")
    site.cli("update", memory, "Their lamp is yellow.")
    page.get_by_role("button", name=re.compile("^Save")).click()
    page.get_by_role("button", name="Take the stored text").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Their lamp is yellow.")


def test_a_memory_is_pinned_and_unpinned(page: Page, site: Site, memory: str) -> None:
    show(page, site, memory)
    page.get_by_role("button", name="Pin").click()
    expect(page.locator(".screen-head .badge-accent")).to_have_text("pinned")
    page.get_by_role("button", name="Unpin").click()
    expect(page.locator(".screen-head .badge-accent")).to_have_count(0)


def test_a_memory_is_superseded_by_one_that_is_searched_for(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    page.get_by_role("button", name="Supersede").click()
    page.get_by_label("Find a memory").fill("deploy key vault")
    page.keyboard.press("Enter")
    page.locator(".pick", has_text="The deploy key").click()
    expect(page.locator(".note-warn")).to_contain_text(
        "Superseded by The deploy key is kept in the vault."
    )
    page.get_by_role("button", name="Make valid").click()
    expect(page.locator(".note-warn")).to_have_count(0)


def test_similar_memories_are_listed(page: Page, site: Site) -> None:
    with site.open_store() as store:
        one = store.save("The walrus sleeps on the northern ice shelf all summer.").memory_id
        store.save("The walrus sleeps on the northern ice shelf all winter.")
    show(page, site, one, "?tab=similar")
    expect(page.locator(".similar").first).to_contain_text("all winter")


def test_the_contexts_that_used_a_memory_are_listed(page: Page, site: Site) -> None:
    with site.open_store() as store:
        one = store.save("The pelican carries the release notes.").memory_id
        store.context("chat-9", "who carries the release notes?")
    show(page, site, one, "?tab=used")
    expect(page.locator(".row").first).to_contain_text("who carries the release notes?")
    expect(page.locator(".row").first).to_contain_text("chat-9")


def test_a_forgotten_memory_comes_back_by_undo_and_by_restore(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    page.wait_for_selector(".memory")
    page.keyboard.press("#")
    expect(page.locator(".empty h2")).to_have_text("This memory was forgotten")
    page.keyboard.press("u")
    page.wait_for_selector(".memory")
    site.cli("forget", memory)
    page.reload()
    page.get_by_role("button", name="Restore it").click()
    page.wait_for_selector(".memory")


def test_forgetting_for_good_needs_the_typed_word_and_shows_the_proof(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    page.get_by_role("button", name="Forget for good").click()
    erase = page.get_by_role("button", name="Erase every trace")
    expect(erase).to_be_disabled()
    page.get_by_label("Type forget to go on").fill("forget")
    erase.click()
    expect(page.locator("h1")).to_have_text("Forgotten for good")
    expect(page.locator(".note")).to_contain_text("No trace is left")
    expect(page.locator(".facts")).to_contain_text("1 memory")
    page.goto(f"{site.url}/ui/memory/{memory}")
    expect(page.locator(".note-bad")).to_contain_text("look for it with: the search of this page")


def test_a_change_of_another_process_is_announced_and_not_forced(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    page.wait_for_selector(".live-on")
    site.cli("update", memory, "The lamp was changed elsewhere.")
    page.get_by_role("button", name="Show the change").click()
    expect(page.locator("h1")).to_contain_text("changed elsewhere")


def test_an_own_change_is_not_announced_as_one_of_others(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory)
    page.wait_for_selector(".live-on")
    page.get_by_role("button", name="Pin").click()
    expect(page.locator(".screen-head .badge-accent")).to_have_text("pinned")
    # A later change of another memory is announced behind the own one.
    page.evaluate(
        """() => { window.__later = new Promise((done) => {
          new EventSource('/events').addEventListener('changes', done) }) }"""
    )
    later = site.cli("save", "A change that comes after the own one.")
    assert later
    page.evaluate("window.__later.then(() => null)")
    assert page.get_by_role("button", name="Show the change").count() == 0


def test_unsaved_text_is_not_left_by_accident(page: Page, site: Site, memory: str) -> None:
    show(page, site, memory, "?edit=1")
    page.get_by_label("Text", exact=True).fill("half a thou")
    with page.expect_event("dialog") as question:
        page.get_by_role("link", name="Search").click()
    assert question.value.message == "Your changes are not saved. Leave anyway?"
    expect(page.get_by_label("Text", exact=True)).to_have_value("half a thou")


def test_the_back_button_does_not_lose_unsaved_text(page: Page, site: Site, memory: str) -> None:
    show(page, site, memory)
    page.get_by_role("button", name=re.compile("^Edit")).click()
    page.get_by_label("Text", exact=True).fill("half a thou")
    with page.expect_event("dialog") as question:
        page.evaluate("history.back()")
    assert question.value.message == "Your changes are not saved. Leave anyway?"
    expect(page).to_have_url(re.compile("edit=1$"))
    expect(page.get_by_label("Text", exact=True)).to_have_value("half a thou")


def test_a_conflict_shows_turning_characters_by_their_code(
    page: Page, site: Site, memory: str
) -> None:
    show(page, site, memory, "?edit=1")
    page.get_by_label("Text", exact=True).fill("My lamp is blue.")
    site.cli("update", memory, "Their lamp is \u202ewolley.")
    page.get_by_role("button", name=re.compile("^Save")).click()
    expect(page.locator(".conflict pre.saved")).to_have_text("Their lamp is ⟦U+202E⟧wolley.")


def test_a_wide_table_scrolls_and_breaks_no_word(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, site, id_of(site, "checkout report"))
    frame = page.locator(".table-frame")
    expect(frame).to_be_visible()
    assert frame.evaluate("each => each.scrollWidth > each.clientWidth")
    cell = frame.get_by_role("cell", name="checkout")
    lines = """each => {
      const range = document.createRange();
      range.selectNodeContents(each);
      return new Set([...range.getClientRects()].map(({ top }) => top)).size;
    }"""
    assert cell.evaluate(lines) == 1, "the word is broken"


def test_names_and_shares_fit_a_phone(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    with site.open_store() as store:
        one = store.save("The ostrich runs along the southern fence in the morning.").memory_id
        store.save("The ostrich runs along the southern fence in the evening.")
    show(page, site, one, "?tab=similar")
    outside = "each => each.getBoundingClientRect().right > innerWidth"
    expect(page.locator(".similar").first).to_contain_text("alike")
    assert not page.locator(".similar .badge").first.evaluate(outside)
    page.get_by_role("button", name="Supersede").click()
    expect(page.locator(".pick").first).to_contain_text("in the evening")
    assert page.locator(".picks").evaluate("each => each.scrollWidth <= each.clientWidth")


def test_an_untrusted_and_an_expired_memory_say_so(page: Page, site: Site, memory: str) -> None:
    site.cli("distrust", memory)
    show(page, site, memory)
    expect(page.locator(".screen-head .badge-warn")).to_have_text("untrusted")
    site.cli("trust", memory)
    page.get_by_role("button", name=re.compile("^Edit")).click()
    page.get_by_label("Expires on").fill("2020-05-04")
    page.get_by_role("button", name=re.compile("^Save")).click()
    expect(page.locator(".screen-head .badge-warn")).to_have_text("expired")


def test_texts_without_words_in_common_are_shown_as_one_replaced_by_the_other(
    page: Page, site: Site, memory: str
) -> None:
    site.cli("update", memory, "Deploys wait until Monday morning, whatever anybody says.")
    show(page, site, memory, "?tab=history")
    expect(page.locator(".diff del")).to_have_count(1)
    expect(page.locator(".diff ins")).to_have_count(1)
    expect(page.locator(".diff ins")).to_contain_text("wait until Monday morning, whatever")


def test_a_summary_of_the_earlier_text_is_told_and_made_anew(page: Page, site: Site) -> None:
    with site.open_store() as store:
        one = store.save("The gate closes at six.", summary="Closing time: six.").memory_id
    show(page, site, one, "?edit=1")
    page.get_by_label("Text", exact=True).fill("The gate closes at seven.")
    expect(page.locator(".editor")).to_contain_text("It was written for the earlier text")
    page.get_by_label("Summary").fill("")
    page.get_by_role("button", name=re.compile("^Save")).click()
    expect(page.locator("h1")).to_have_text("The gate closes at seven.")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("Closing time: six.")
