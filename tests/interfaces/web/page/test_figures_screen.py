"""The figures: charts with tables behind them, and the slowest searches."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site


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
