"""The map: points of a space, telling terms of regions, and a lasso that selects into a list."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.interfaces.web.page.conftest import Site
from tests.interfaces.web.page.past import SPACE


def open_map(page: Page, query: str = "") -> None:
    page.goto(f"/ui/map{query}")
    page.wait_for_selector(".map canvas[data-paint-ms]")


def drag_around_everything(page: Page) -> None:
    box = page.locator(".map canvas").bounding_box()
    assert box is not None
    left, top = box["x"] + 2, box["y"] + 2
    right, bottom = box["x"] + box["width"] - 2, box["y"] + box["height"] - 2
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()


def is_painted(page: Page) -> bool:
    """Say whether the canvas has a point in one of the colours of the legend."""
    return bool(
        page.evaluate(
            """() => {
              const canvas = document.querySelector('.map canvas');
              const {width, height} = canvas;
              const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
              const colours = [...document.querySelectorAll('[data-tone]')]
                .map(each => getComputedStyle(each).backgroundColor.match(/\\d+/g).map(Number));
              const near = (at, [r, g, b]) => Math.abs(data[at] - r) < 6
                && Math.abs(data[at + 1] - g) < 6 && Math.abs(data[at + 2] - b) < 6;
              for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] > 150 && colours.some(each => near(at, each))) return true;
              return false;
            }"""
        )
    )


def test_the_map_is_marked_as_a_hint_and_has_a_table_behind_it(past: Page) -> None:
    open_map(past)
    expect(past.locator(".lead")).to_contain_text("81 memories")
    expect(past.locator(".lead")).to_contain_text("a hint")
    assert is_painted(past)
    expect(past.get_by_role("img", name=re.compile("Map of 81 memories"))).to_be_visible()
    figure = past.get_by_role("figure", name="Regions")
    figure.get_by_text("Show as a table").click()
    rows = figure.get_by_role("row")
    sizes = [int(each) for each in figure.locator("td:nth-child(2)").all_inner_texts()]
    assert sum(sizes) == 81
    assert rows.count() == len(sizes) + 1
    rows.nth(1).get_by_role("link", name="Show").click()
    heading = past.get_by_role("region", name="Chosen on the map").get_by_role("heading")
    expect(heading).to_contain_text(str(sizes[0]))


def test_a_lasso_selects_into_a_list_that_can_be_reloaded_and_worked_on(past: Page) -> None:
    open_map(past)
    drag_around_everything(past)
    chosen = past.get_by_role("region", name="Chosen on the map")
    expect(chosen.get_by_role("heading")).to_have_text("Chosen 81")
    past.reload()
    expect(chosen.get_by_role("heading")).to_have_text("Chosen 81")
    expect(chosen.locator(".hit").first).to_be_visible()
    past.keyboard.press("j")
    past.keyboard.press("x")
    expect(past.locator(".bulk")).to_contain_text("1 memory selected")
    chosen.get_by_role("button", name="Clear the choice").click()
    expect(chosen).to_have_count(0)


def test_a_point_leads_to_its_memory(past: Page) -> None:
    open_map(past)
    box = past.locator(".map canvas").bounding_box()
    assert box is not None
    place = past.evaluate(
        """async () => {
          const map = await (await fetch('/map?limit=20000')).json();
          return [map.x[0], map.y[0]];
        }"""
    )
    x, y = ((each - 0.5) * 0.92 + 0.5 for each in place)
    past.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    chosen = past.get_by_role("region", name="Chosen on the map")
    expect(chosen.get_by_role("heading")).to_have_text("Chosen 1")
    expect(chosen.locator(".hit")).to_have_count(1)
    assert "memory=mem_" in past.url


def test_buttons_zoom_and_go_back_to_the_whole_map(past: Page) -> None:
    open_map(past)
    past.get_by_role("button", name="Zoom in").click()
    past.get_by_role("button", name="Move").click()
    past.get_by_role("button", name="Whole map").click()
    expect(past.get_by_role("button", name="Zoom out")).to_be_disabled()


def test_filters_narrow_the_map(past: Page) -> None:
    open_map(past, "?kind=fact")
    expect(past.locator(".lead")).to_contain_text("30 memories")
    past.goto("/ui/map?kind=report")
    expect(past.locator(".empty h2")).to_have_text("No map yet")


def test_the_way_back_to_the_map_does_not_draw_it_again_unless_something_changed(
    past: Page, site: Site, own_session: str
) -> None:
    asked: list[str] = []
    past.on(
        "request", lambda request: asked.append(request.url) if "/map?" in request.url else None
    )

    def go(name: str, shown: str) -> None:
        past.get_by_role("navigation", name="Screens").get_by_role("link", name=name).click()
        past.wait_for_selector(shown)

    past.goto("/ui/sessions")
    past.wait_for_selector(".live-on")
    for _ in range(2):
        go("Map", ".map canvas[data-paint-ms]")
        go("Sessions", ".session")
    assert len(asked) == 1
    with site.open_store() as store:
        store.log(own_session, "user", "Where is the map?", space=SPACE)
    past.get_by_role("button", name="1 new").wait_for()
    go("Map", ".map canvas[data-paint-ms]")
    assert len(asked) == 2
    with past.expect_request(lambda request: "/map?" in request.url):
        past.get_by_role("button", name="Draw again").click()
