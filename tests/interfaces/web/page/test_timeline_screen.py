"""The timeline: days, sessions as lanes, memories below, and the store at an earlier time."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.interfaces.web.page.past import OTHER_SESSION, SESSION, day_of


def test_a_day_of_the_heat_map_limits_lanes_and_memories(past: Page) -> None:
    past.goto("/ui/timeline")
    expect(past.locator(".lead")).to_contain_text("81 memories since")
    expect(past.locator(".lane")).to_have_count(2)
    past.locator(f'.heat:has(title:text("{day_of(20)}: 6"))').click()
    expect(past.locator(".lane")).to_have_count(1)
    expect(past.locator(".lane a")).to_have_text(SESSION)
    expect(past.get_by_role("list", name="Memories").locator(".hit")).to_have_count(6)
    past.reload()
    expect(past.locator(".lane a")).to_have_text(SESSION)
    past.get_by_role("button", name="All days").click()
    expect(past.locator(".lane")).to_have_count(2)


def test_the_keyboard_walks_through_days_and_the_table_has_the_figures(past: Page) -> None:
    past.goto(f"/ui/timeline?day={day_of(59)}")
    expect(past.locator(".empty")).to_contain_text("Nothing was saved then")
    past.keyboard.press("[")
    expect(past.locator(".lane a")).to_have_text(OTHER_SESSION)
    assert past.url.endswith(f"?day={day_of(60)}")
    past.get_by_text("Show as a table").click()
    row = past.get_by_role("row", name=re.compile(day_of(60)))
    expect(row).to_contain_text("45 message")


def test_the_slider_shows_the_store_at_that_time(past: Page) -> None:
    past.goto("/ui/timeline")
    slider = past.get_by_label("Show the store as of")
    slider.focus()
    past.keyboard.press("Home")
    expect(past.get_by_role("note")).to_contain_text("This is what the store held then")
    expect(past.locator(".lead")).to_contain_text("1 memory since")
    expect(past.get_by_role("list", name="Memories").locator(".hit")).to_have_count(1)
    past.keyboard.press("PageUp")
    expect(past.locator(".lead")).not_to_contain_text("1 memory since")
    past.reload()
    expect(past.get_by_role("note")).to_be_visible()
    past.get_by_role("button", name="Now", exact=True).click()
    expect(past.locator(".lead")).to_contain_text("81 memories")


def test_the_slider_keeps_its_length_before_the_first_memory(past: Page) -> None:
    past.goto("/ui/timeline?as_of=2020-01-01T00:00:00Z")
    expect(past.locator(".lead")).to_have_text("No memories")
    slider = past.get_by_label("Show the store as of")
    expect(slider).to_have_attribute("max", re.compile(r"^1[23]\d$"))
    slider.focus()
    past.keyboard.press("End")
    expect(past.locator(".lead")).to_contain_text("81 memories")


def test_filters_narrow_the_whole_timeline(past: Page) -> None:
    past.goto("/ui/timeline?kind=fact")
    expect(past.locator(".lead")).to_contain_text("30 memories")
    expect(past.locator(".lane")).to_have_count(0)


def test_a_lane_leads_to_the_replay_of_its_session(past: Page) -> None:
    past.goto("/ui/timeline")
    past.locator(".lane a", has_text=SESSION).click()
    expect(past.locator("h1")).to_have_text(SESSION)
    assert past.url.endswith(f"/ui/sessions/{quote(SESSION, safe='')}")
