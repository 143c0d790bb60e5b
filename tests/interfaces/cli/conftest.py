"""The real command line in a home of its own, with the hash embedder."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import byheart
from byheart.interfaces.cli.commands import byheart as program
from tests.empty_store import make_empty
from tests.forked_program import PROGRAM, start_program
from tests.waiting import PATIENCE_SECONDS

REPORT = """\
# Performance Report

The **service** was slow in March.

## Database

### Query Times

The order query went from 40 ms to 900 ms after the index was dropped.

### Locks

Migrations held row locks for up to 12 seconds.

## Frontend

The first paint takes 2.1 s on a phone.
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def json(self) -> Any:
        """Read its answer."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder to work in, and keep everything of the user's out of it."""
    for name in list(os.environ):
        if name.startswith("BYHEART_") or name in (
            "OPENAI_API_KEY",
            "VOYAGE_API_KEY",
            "NO_COLOR",
            "FORCE_COLOR",
        ):
            monkeypatch.delenv(name)
    folders = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
    for name, folder in folders.items():
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BYHEART_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("BYHEART_DB_PATH", str(tmp_path / "memory.db"))
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "hash")
    make_empty(tmp_path / "memory.db")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(home: Path) -> Run:
    """Run a command line in this process, as in a pipe."""

    def invoke(*arguments: str, stdin: str | bytes | None = None) -> Ran:
        result = CliRunner().invoke(program, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return Ran(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    return invoke


@pytest.fixture
def process(home: Path) -> Run:
    """Run a command line in a process of its own."""

    def start(*arguments: str, stdin: bytes = b"", **variables: str) -> Ran:
        pipe = subprocess.PIPE
        environment = {**os.environ, **variables}
        running = start_program(*arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        out, err = running.communicate(stdin, timeout=PATIENCE_SECONDS)
        return Ran(running.returncode, out.decode(), err.decode(), out)

    return start


@pytest.fixture
def executed(home: Path) -> Run:
    """Run a command line in a process that Python is started for."""

    def start(*arguments: str, stdin: bytes = b"", **variables: str) -> Ran:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, **variables},
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), done.stdout)

    return start


@pytest.fixture
def terminal(home: Path) -> Run:
    """Run a command line on a terminal of 80 columns, stderr and all."""

    def start(*arguments: str, **variables: str) -> Ran:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", **variables}
        running = start_program(
            *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        shown = b"".join(_read(ours))
        os.close(ours)
        return Ran(running.wait(30), shown.decode().replace("\r\n", "\n"), "")

    return start


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # the last one who held the other end has gone
            return
        if not block:
            return
        yield block


@pytest.fixture
def library(home: Path) -> Iterator[byheart.MemoryStore]:
    """Open the store that the commands use."""
    with byheart.open() as store:
        yield store


@pytest.fixture
def report(home: Path, library: byheart.MemoryStore) -> str:
    """Save a report with headings, and give its id."""
    return library.save(REPORT, kind="report", title="March", session_id="s1").memory_id
