"""`byheart open`: it finds the server of its own store, or starts one, and logs a browser in."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import byheart
from byheart.interfaces.web.running_server import Announcement, find_server
from tests.forked_program import start_program
from tests.interfaces.rest.conftest import make_client
from tests.interfaces.web.conftest import Browser
from tests.waiting import PATIENCE_SECONDS

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start commands on one store; those that are left are killed."""
    started: list[subprocess.Popen[str]] = []
    kept = {key: each for key, each in os.environ.items() if not key.startswith("BYHEART_")}
    own = {
        "BYHEART_EMBEDDING_PROVIDER": "hash",
        "BYHEART_DB_PATH": str(tmp_path / "memory.db"),
        "BYHEART_SERVE_PORT": "0",
        "BYHEART_CONFIG": os.environ["BYHEART_CONFIG"],
    }

    def launch(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(start_program(*arguments, env={**kept, **own, **variables}, **piped))
        return started[-1]

    yield launch
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()


def address_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Read the address that a command prints: the server's and the code."""
    assert process.stdout is not None
    url, _, code = process.stdout.readline().strip().partition("/#code=")
    return url, code


def test_open_starts_a_server_that_the_next_open_finds(start: Start, tmp_path: Path) -> None:
    with byheart.open(tmp_path / "memory.db", embedding_provider="hash") as store:
        store.save("Anna likes tea.", space="work")
    first = start("open", "--no-browser", "--space", "work")
    url, code = address_of(first)
    second = start("open", "--no-browser", "--read-only", "--json")
    output, _ = second.communicate(timeout=PATIENCE_SECONDS)
    answered = json.loads(output)
    assert second.returncode == 0
    assert answered["started"] is False
    assert answered["opened"] is False
    assert answered["url"].startswith(f"{url}/#code=bhc_")
    with make_client(url) as client:
        browser = Browser(client, url)
        assert browser.log_in(code).json()["access"] == "write"
        assert browser.get("/memories").json()["total"] == 1
        entered = browser.log_in(answered["url"].partition("code=")[2]).json()
        assert (entered["access"], entered["space"]) == ("read", "default")
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=PATIENCE_SECONDS)
    assert first.returncode == 0
    assert "Ctrl-C" in said
    assert find_server(str(tmp_path / "memory.db")) is None


def test_serve_says_how_to_open_the_page(start: Start, tmp_path: Path) -> None:
    serving = start("serve")
    assert serving.stderr is not None
    lines = [serving.stderr.readline() for _ in range(2)]
    assert "byheart open" in lines[1]
    url, _ = address_of(start("open", "--no-browser"))
    assert url in lines[0]


def test_open_takes_another_port_if_the_usual_one_is_in_use(start: Start) -> None:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler
    ) as (taken):
        url, _ = address_of(
            start("open", "--no-browser", BYHEART_SERVE_PORT=str(taken.server_port))
        )
        assert int(url.rpartition(":")[2]) not in (0, taken.server_port)


def test_open_starts_no_server_for_a_store_that_cannot_be_opened(start: Start) -> None:
    process = start("open", "--no-browser", BYHEART_DB_PATH="/proc/none/memory.db")
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    assert "Traceback" not in said


# --- Stale announcements --------------------------------------------------------------------------


class Impostor(http.server.BaseHTTPRequestHandler):
    """A program on the port of a server that has ended."""

    def do_GET(self) -> None:
        """Answer everything."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_program_that_took_over_the_port_is_not_believed() -> None:
    announcement = Announcement("memory.db")
    with http.server.HTTPServer(("127.0.0.1", 0), Impostor) as impostor:
        threading.Thread(target=impostor.serve_forever, daemon=True).start()
        announcement.publish(f"http://127.0.0.1:{impostor.server_port}")
        assert find_server("memory.db") is None
        impostor.shutdown()


def test_a_server_that_is_gone_is_not_found() -> None:
    announcement = Announcement("memory.db")
    announcement.publish("http://127.0.0.1:9")
    assert find_server("memory.db") is None


@pytest.mark.parametrize("written", ["", "[]", '{"url": 7, "key": "x"}', '{"url": "file:///etc"}'])
def test_a_broken_announcement_is_ignored(written: str) -> None:
    Announcement("memory.db").publish("http://127.0.0.1:9")
    [file] = Path(os.environ["XDG_STATE_HOME"]).rglob("*.json")
    assert file.stat().st_mode & 0o077 == 0
    file.write_text(written)
    assert find_server("memory.db") is None


def test_a_server_withdraws_only_its_own_announcement() -> None:
    first, second = Announcement("memory.db"), Announcement("memory.db")
    first.publish("http://127.0.0.1:9")
    second.publish("http://127.0.0.1:10")
    first.withdraw()
    [file] = Path(os.environ["XDG_STATE_HOME"]).rglob("*.json")
    assert "127.0.0.1:10" in file.read_text()
    second.withdraw()
    assert not file.exists()
