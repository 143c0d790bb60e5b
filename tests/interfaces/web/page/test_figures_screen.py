"""The figures: charts with tables behind them, and the slowest searches."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import byheart
from byheart.settings import load_settings
from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.past import SPACE
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Growth", r"20\d\d-"),
        ("Kinds", "message"),
        ("Speed of searches", "Both"),
        ("Verdicts of searches", r"[1-9]\d*[\s\S]*%"),
        ("Vectors", "pending"),
    ],
)
def test_every_figure_has_a_table_with_the_same_numbers(past: Page, name: str, told: str) -> None:
    past.goto("/?q=refund")
    past.wait_for_selector(".verdict")
    past.goto("/ui/figures")
    figure = past.get_by_role("figure", name=name)
    figure.get_by_text("Show as a table").click()
    expect(figure.get_by_role("table")).to_contain_text(re.compile(told))


def test_the_growth_ends_with_the_number_of_memories(past: Page) -> None:
    past.goto("/ui/figures")
    figure = past.get_by_role("figure", name="Growth")
    figure.get_by_text("Show as a table").click()
    total = past.locator(".lead").inner_text().split()[0]
    expect(figure.get_by_role("row").nth(1)).to_contain_text(total)


def test_the_slowest_searches_lead_to_their_questions(past: Page) -> None:
    for question in ("refund", "refund+approval"):  # the first may be slow as a cold start
        past.goto(f"/?q={question}")
        past.wait_for_selector(".verdict")
    past.goto("/ui/figures")
    slowest = past.get_by_role("region", name="Slowest searches", exact=True).get_by_role("link")
    asked = slowest.first.inner_text()  # which one is slowest depends on the machine
    slowest.first.click()
    expect(past.get_by_role("searchbox")).to_have_value(asked)


def test_the_doctor_tells_what_it_found_and_looks_again_when_asked(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/ui/figures")
    doctor = page.get_by_role("region", name="Doctor")
    expect(doctor.locator(".findings li").first).to_be_visible()
    shown = doctor.locator(".findings strong").all_inner_texts()
    checked = json.loads(site.cli("doctor", "--json"))
    own = {each["check"] for each in checked if not each["check"].startswith("setup")}
    assert set(shown) <= own
    assert "vectors complete" in shown
    with page.expect_response(lambda each: "/doctor?again=true" in each.url):
        doctor.get_by_role("button", name="Check again").click()
    expect(doctor.locator(".findings li")).to_have_count(len(shown))


def test_a_login_to_another_space_is_told_where_the_doctor_is(past: Page) -> None:
    past.goto("/ui/figures")
    doctor = past.get_by_role("region", name="Doctor")
    expect(doctor).to_contain_text("run byheart doctor")


def test_the_figures_follow_searches_while_they_are_shown(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/ui/figures")
    figure = page.get_by_role("figure", name="Speed of searches")
    figure.get_by_text("Show as a table").click()
    row = figure.get_by_role("row", name=re.compile("^Keywords, whole memories"))
    expect(row).to_have_count(0)
    site.cli("search", "deploy", "--mode", "fts", "--granularity", "coarse")
    expect(row).to_contain_text("1")


def test_all_memories_are_exported_and_imported_as_the_same_store(
    past: Page, tmp_path: Path, site: Site
) -> None:
    with site.open_store() as store:
        [pinned, changed] = store.list(limit=2, space=SPACE).memories
        store.pin(pinned.memory_id, space=SPACE)
        store.update(changed.memory_id, metadata={"year": 2026}, space=SPACE)
    past.goto(f"{site.url}/ui/figures")
    with past.expect_download() as download:
        past.get_by_role("link", name="Export all memories").click()
    file = download.value.path()
    settings = load_settings({"db_path": tmp_path / "other.db", "embedding_provider": "hash"})
    exported, again = io.BytesIO(), io.BytesIO()
    with byheart.open(settings=settings) as other, site.open_store() as store:
        assert other.import_(file).imported > 2
        other.export(again, space=SPACE)
        store.export(exported, space=SPACE)
        store.unpin(pinned.memory_id, space=SPACE)  # other tests look at contexts
    assert file.read_bytes() == exported.getvalue() == again.getvalue()


def test_a_long_list_of_memories_is_exported_too(page: Page, site: Site) -> None:
    page.goto(site.url)
    page.wait_for_selector(".hit")
    page.locator(".hit input[type=checkbox]").first.check()
    chosen = page.locator(".bulk strong")

    def choose_more() -> bool:
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(100)
        page.get_by_role("button", name="Select all shown").click()
        return int(chosen.inner_text().split()[0]) > 100

    wait_until(choose_more)
    with page.expect_download() as download:
        page.locator(".bulk").get_by_role("link", name="Export").click()
    records = [json.loads(each) for each in download.value.path().read_bytes().splitlines()]
    assert records[-1] == {"type": "end", "memories": int(chosen.inner_text().split()[0])}
