"""A filled store, and a real server on it, for the fuzzers that speak HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import byheart

WORDS = ("harbour", "pump", "crane", "tide", "pilot", "night", "shift", "dock")


@dataclass(frozen=True, slots=True)
class Served:
    """A server in a process of its own: where it listens, and keys for it by what they may do."""

    process: subprocess.Popen[bytes]
    host: str
    port: int
    keys: Mapping[str, str]
    ids: list[str]
    log: Path

    @property
    def url(self) -> str:
        """Give its address."""
        return f"http://{self.host}:{self.port}"


def fill(path: Path, memories: int) -> list[str]:
    """Fill a store with short memories and turns, and give the ids of the memories."""
    with byheart.open(path, embedding_provider="hash") as store:
        saved = store.save_many(
            [
                {
                    # Most have words in common: no retriever ranks all of them.
                    "content": f"Fact {number}: the {WORDS[number % 8]} of the harbour stops when "
                    f"the {WORDS[number // 8 % 8]} of dock {number} does.",
                    "session_id": f"s{number % 4}" if number % 3 else None,
                    "kind": ("note", "report")[number % 2],
                    "tags": ["harbour"] if number % 4 else [],
                }
                for number in range(memories)
            ]
        )
        for number in range(20):
            store.log("s1", ("user", "assistant")[number % 2], f"Turn {number} on the harbour.")
        return [each.memory_id for each in saved]


@contextmanager
def serving(memories: int = 300, **variables: str) -> Iterator[Served]:
    """Run `byheart serve` on a new store until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="byheart-fuzz-") as folder:
        path, log = Path(folder) / "memory.db", Path(folder) / "server.log"
        ids = fill(path, memories)
        with byheart.open(path, embedding_provider="hash") as store:
            keys = {
                "write": store.api_keys.create("fuzz-write").secret,
                "read": store.api_keys.create("fuzz-read", access="read").secret,
                "session": store.api_keys.create("fuzz-session", session_id="s1").secret,
                "elsewhere": store.api_keys.create("fuzz-elsewhere", space="other").secret,
                "watch": store.api_keys.create("fuzz-watch").secret,
            }
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BYHEART_")},
            "BYHEART_CONFIG": str(Path(folder) / "none.toml"),
            "BYHEART_DB_PATH": str(path),
            "BYHEART_FILES_DIR": str(Path(folder) / "files"),
            "BYHEART_EMBEDDING_PROVIDER": "hash",
            "BYHEART_MAX_REQUESTS_PER_MINUTE": "0",
            **variables,
        }
        command = [sys.executable, "-m", "byheart", "--json", "serve", "--port", "0", "--quiet"]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors
            )
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Served(process, told["host"], told["port"], keys, ids, log)
        finally:
            process.terminate()
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()


def find_tracebacks(served: Served) -> list[str]:
    """List what the server's log says of exceptions that nobody expected."""
    text = served.log.read_text(encoding="utf-8", errors="replace")
    signs = ("Traceback (most recent call last)", "something unexpected", "exception was never")
    return [f"the server's log: {text[-1500:]}"] if any(each in text for each in signs) else []
