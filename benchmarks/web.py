"""Measure the web page in Chromium: bytes, first paint, the time from Enter to hits, and the map.

python benchmarks/web.py                            1,000 memories
python benchmarks/web.py --memories 100000 --embedder hash

python benchmarks/web.py --store FILE               a store that is there; it gets a login more

The map has at most 20,000 points. Each zoom draws it anew; a frame has 16 ms for that.

First paint and the list of the newest memories are measured with an empty cache, each time in a
new browser profile. A search is measured inside the page: from the key Enter to the first frame
that shows the verdict.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import byheart
from byheart.settings import load_settings

STATIC = Path(byheart.__file__).parent / "interfaces/web/static"
VOCABULARY = (
    "deploy cache vector index query latency memory session token budget review merge schema "
    "replica invoice gateway release staging secret rotate audit backup queue worker timeout retry "
    "login cookie customer region quota report checkout database migration incident on-call"
)
WORDS = VOCABULARY.split()
SEARCH = """async query => {
  const box = document.querySelector('input[type=search]');
  box.focus();
  box.value = query;
  box.dispatchEvent(new Event('input', {bubbles: true}));
  await new Promise(done => requestAnimationFrame(done));
  const started = performance.now();
  box.form.requestSubmit();
  const wanted = new URLSearchParams({q: query}).toString();
  for (;;) {
    await new Promise(done => requestAnimationFrame(done));
    const isThere = location.search.includes(wanted) && document.querySelector('.verdict');
    if (isThere && document.querySelector('.hit')) return performance.now() - started;
    if (performance.now() - started > 60000) throw new Error('no answer: ' + query);
  }
}"""
ZOOM = """async rounds => {
  const canvas = document.querySelector('.map canvas');
  const {left, top, width, height} = canvas.getBoundingClientRect();
  const taken = [];
  for (let round = 0; round < rounds; round += 1) {
    delete canvas.dataset.paintMs;
    canvas.dispatchEvent(new WheelEvent('wheel', {
      deltaY: round % 6 < 3 ? -1 : 1, ctrlKey: true, cancelable: true, bubbles: true,
      clientX: left + width / 2, clientY: top + height / 2,
    }));
    while (!canvas.dataset.paintMs) await new Promise(done => requestAnimationFrame(done));
    taken.push(Number(canvas.dataset.paintMs));
  }
  return taken;
}"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--embedder", default="auto", help="auto or hash")
    parser.add_argument("--store", type=Path, help="measure this store instead of a new one")
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    print_bytes()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), given) as address:
        measure(address, given.rounds)


def print_bytes() -> None:
    """Print how large the files are, as they are and packed."""
    for name, files in (
        ("own scripts", [each for each in STATIC.rglob("*.js") if each.parent.name != "vendor"]),
        ("libraries", list((STATIC / "vendor").glob("*.js"))),
        ("styles", list(STATIC.rglob("*.css"))),
    ):
        plain = sum(each.stat().st_size for each in files)
        packed = sum(len(gzip.compress(each.read_bytes())) for each in files)
        print(f"{name}: {plain / 1000:.1f} kB in {len(files)} files, {packed / 1000:.1f} kB packed")


def fill(path: Path, given: argparse.Namespace) -> None:
    """Save memories of words that are drawn by chance."""
    chance = random.Random(7)
    settings = load_settings({"db_path": path, "embedding_provider": given.embedder})
    started = time.perf_counter()
    with byheart.open(settings=settings) as store:
        store.save_many(
            {
                "content": " ".join(chance.choices(WORDS, k=25)).capitalize() + f", case {at}.",
                "kind": chance.choice(("note", "fact", "report_observation")),
                "tags": [chance.choice(WORDS)],
            }
            for at in range(given.memories)
        )
    print(f"{given.memories:,} memories saved in {time.perf_counter() - started:.0f} s")


@contextmanager
def serving(folder: Path, given: argparse.Namespace) -> Iterator[list[str]]:
    """Serve a store; give the command that asks for the address of a login."""
    path: Path = given.store or folder / "store.db"
    if given.store is None:
        fill(path, given)
    environment = {
        **os.environ,
        "BYHEART_DB_PATH": str(path),
        "BYHEART_EMBEDDING_PROVIDER": given.embedder,
        "XDG_STATE_HOME": str(folder),
    }
    program = [sys.executable, "-m", "byheart"]
    server = subprocess.Popen(
        [*program, "serve", "--json", "--port", "0", "--quiet"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.environ.update(environment)
    assert server.stdout is not None
    server.stdout.readline()
    try:
        yield [*program, "open", "--no-browser", "--json"]
    finally:
        server.terminate()
        server.wait()


def log_in(browser: Browser, command: list[str]) -> tuple[BrowserContext, str]:
    """Make a browser profile with a login; give it with the address of the page."""
    asked = subprocess.run(command, check=True, capture_output=True, text=True)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(json.loads(asked.stdout)["url"])
    page.wait_for_selector(".hit", timeout=60_000)
    url = page.url
    page.close()
    return context, url


def measure(command: list[str], rounds: int) -> None:
    """Print first paint, the first list, and searches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        context, url = log_in(browser, command)
        cookies = context.storage_state()
        paints, lists, sent = [], [], 0
        for _ in range(min(rounds, 15)):
            fresh = browser.new_context(
                viewport={"width": 1280, "height": 800}, storage_state=cookies
            )
            page = fresh.new_page()
            page.goto(url)
            page.wait_for_selector(".hit")
            shown = page.evaluate(
                """() => ({
                  paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
                  sent: performance.getEntriesByType('resource')
                    .filter(each => each.name.includes('/web/'))
                    .reduce((sum, each) => sum + each.transferSize, 0),
                  list: performance.getEntriesByType('resource')
                    .find(each => each.name.includes('/memories')).responseEnd,
                })"""
            )
            paints.append(shown["paint"])
            lists.append(shown["list"])
            sent = shown["sent"]
            fresh.close()
        # On a busy machine the least is nearer to what an idle one takes.
        print(f"first paint: p50 {median(paints):.0f} ms, least {min(paints):.0f} ms")
        print(f"newest memories received: p50 {median(lists):.0f} ms, least {min(lists):.0f} ms")
        print(f"files sent for the first screen: {sent / 1000:.0f} kB")
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector(".hit")
        chance = random.Random(3)
        page.evaluate(SEARCH, "the first question loads the model and the index")
        taken = [page.evaluate(SEARCH, " ".join(chance.sample(WORDS, 3))) for _ in range(rounds)]
        print(
            f"search to screen: p50 {median(taken):.0f} ms, least {min(taken):.0f} ms, "
            f"p95 {quantiles(taken, n=20)[-1]:.0f} ms"
        )
        measure_map(page, url, rounds)
        browser.close()


def measure_map(page: Page, url: str, rounds: int) -> None:
    """Print how long the first picture of the map takes, and each drawing after it."""
    page.set_default_timeout(120_000)
    started = time.perf_counter()
    page.goto(f"{url}ui/map")
    page.wait_for_selector(".map canvas[data-paint-ms]")
    first = time.perf_counter() - started
    points = page.locator(".lead").inner_text().partition(".")[0]
    taken = page.evaluate(ZOOM, rounds)
    print(
        f"map of {points}: first picture after {first:.1f} s; drawing it again: "
        f"p50 {median(taken):.1f} ms, p95 {quantiles(taken, n=20)[-1]:.1f} ms"
    )


if __name__ == "__main__":
    main()
