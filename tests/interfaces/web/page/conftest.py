"""A real server on a real store, and one real Chromium that is logged in to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    expect,
    sync_playwright,
)

import byheart
from byheart.settings import load_settings
from byheart.store import MemoryStore
from tests.forked_program import start_program
from tests.interfaces.web.page import past as past_space
from tests.waiting import PATIENCE_SECONDS

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
AXE = Path(__file__).parent / "vendor/axe.min.js"
# Long enough for a machine that is busy with other tests; nothing waits longer than it has to.
SOON_MS = 30_000
expect.set_options(timeout=SOON_MS)

REPORT = """\
# Checkout report

The **checkout** was slow in March.

## Database

The index on orders.customer_id was dropped in release 4.2.

## Frontend

One unused chart library takes two thirds of the first paint.

| screen | script | style | image | font | total | before | after |
|---|--:|--:|--:|--:|--:|--:|--:|
| checkout | 1200 kB | 80 kB | 310 kB | 90 kB | 1680 kB | 4100 ms | 900 ms |
"""


@dataclass(slots=True)
class Site:
    """A server on a store of its own; `cli` runs the command line on the same store."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    url: str = ""

    @property
    def path(self) -> Path:
        return self.folder / "store.db"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("BYHEART")},
            "BYHEART_CONFIG": str(self.folder / "config.toml"),
            "BYHEART_DB_PATH": str(self.path),
            "BYHEART_CACHE_DIR": str(self.folder / "cache"),
            "BYHEART_EMBEDDING_PROVIDER": "hash",
            # Several processes learn of one another's searches after seconds: figures could be old.
            "BYHEART_SERVE_WORKERS": "1",
            # The server announces itself here; every test has other folders in its environment.
            **{f"XDG_{name}_HOME": str(self.folder / name) for name in ("DATA", "CONFIG", "STATE")},
        }

    def open_store(self) -> MemoryStore:
        return byheart.open(
            settings=load_settings({"db_path": self.path, "embedding_provider": "hash"})
        )

    def start(self, port: str = "0") -> subprocess.Popen[str]:
        """Start the server."""
        running = start_program(
            *("serve", "--json", "--port", port, "--quiet"),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(running)
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line, running.stderr and running.stderr.read()
        self.url = json.loads(line)["url"]
        return running

    def cli(self, *arguments: str) -> str:
        """Run the command line on the store of the server."""
        running = start_program(
            *arguments,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = running.communicate(timeout=PATIENCE_SECONDS)
        finally:
            running.kill()
        assert running.returncode == 0, err
        return str(out)

    def login_address(self, *options: str, space: str = "default") -> str:
        """Ask for the address with a code that logs a browser in."""
        answer: str = json.loads(
            self.cli("--space", space, "open", "--no-browser", "--json", *options)
        )["url"]
        return answer

    def stop(self) -> None:
        """End every server."""
        for each in self.started:
            each.terminate()
            each.wait(20)
        self.started.clear()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    with site.open_store() as store:
        fill(store)
    site.start()
    yield site
    site.stop()


def fill(store: MemoryStore) -> None:
    """Save what the tests look for."""
    store.save(
        REPORT, kind="report", title="Checkout report", path="reports/checkout.md", tags=["shop"]
    )
    store.save("Deploys are frozen from Friday noon until Monday.", kind="fact", tags=["deploy"])
    store.save(
        "The deploy key is kept in the vault.", kind="fact", agent_id="claude", tags=["deploy"]
    )
    store.save("Marie writes **bold** words and `code`.", session_id="chat-7")
    store.log("chat-7", "user", "When may we deploy again?")
    store.log("chat-7", "assistant", "Deploys are frozen until Monday.")
    store.save_many({"content": f"Note number {at} about topic {at % 7}."} for at in range(120))


@pytest.fixture(scope="session")
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    context = log_in(browser, site)
    yield context
    context.close()


def log_in(browser: Browser, site: Site, space: str = "default", *options: str) -> BrowserContext:
    """Give a browser of its own that is logged in to a space."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, reduced_motion="reduce", base_url=site.url
    )
    context.set_default_timeout(SOON_MS)
    page = context.new_page()
    page.goto(site.login_address(*options, space=space))
    page.wait_for_selector(".shell")
    page.close()
    return context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    problems = record_problems(page)
    yield page
    page.close()
    assert problems == []


@pytest.fixture(scope="session")
def past_context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """Log in to a space with memories of the last months."""
    with site.open_store() as store:
        past_space.fill_past(store)
    context = log_in(browser, site, past_space.SPACE)
    yield context
    context.close()


@pytest.fixture
def past(past_context: BrowserContext) -> Iterator[Page]:
    page = past_context.new_page()
    problems = record_problems(page)
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def own_session(site: Site) -> Iterator[str]:
    """Name a session that one test may write to; other tests count what the space holds."""
    name = "live-1"
    yield name
    with site.open_store() as store:
        store.sessions.forget(name, hard=True, dry_run=False, space=past_space.SPACE)


def record_problems(page: Page) -> list[str]:
    """Collect errors of scripts, dialogs, and violations of the content security policy."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))

    def dismiss(dialog: Dialog) -> None:
        if not dialog.message.startswith("Your changes are not saved."):
            found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def look(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            found.append(message.text)

    page.on("dialog", dismiss)
    page.on("console", look)
    return found


@pytest.fixture
def memory(site: Site, request: pytest.FixtureRequest) -> str:
    """Save a memory that only this test uses, and give its id."""
    with site.open_store() as store:
        return store.save(f"The lamp of {request.node.name} is green.", kind="fact").memory_id


def visit(page: Page, address: str) -> None:
    """Show another address of the page without loading the page again, as a link does."""
    page.evaluate(
        "to => { history.pushState({}, '', to); dispatchEvent(new PopStateEvent('popstate')) }",
        address,
    )


def check_axe(page: Page, name: str, rules: tuple[str, ...] = ()) -> None:
    """Fail if axe-core finds a violation of WCAG 2.2 AA; `rules` limits what it looks for."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": tags}
    # Only violations are needed: descriptions of passed checks take most of the time.
    asked = {"runOnly": only, "resultTypes": ["violations"]}
    found = page.evaluate("asked => axe.run(document, asked)", asked)
    told = [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
    assert told == [], f"{name}: " + "\n".join(told)
