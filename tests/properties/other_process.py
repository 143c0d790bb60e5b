"""A store in another process, spoken to as if it were here."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import byheart
from byheart.errors import ByheartError
from byheart.settings import load_settings
from byheart.store import MemoryStore
from tests.forked_program import start_script


def open_here(path: Path, model: str = "hash-32", address: str | None = None) -> MemoryStore:
    """Open a store of small chunks with the `hash` embedder.

    With an `address`, the store is in that database, and the folder of the path has its cache.
    """
    given = {
        "db_path": address or str(path),
        "cache_dir": path.parent / "cache",
        "chunk_tokens": 64,
        "embedding_provider": "hash",
        "embedding_model": model,
    }
    settings = load_settings(given, environ={}, config_path=path.parent / "none")
    return byheart.open(settings=settings)


class RemoteVerb:
    """Call a verb of the other process, or one of the verbs in the group of that name."""

    def __init__(self, ask: Callable[..., Any], name: str) -> None:
        self._ask = ask
        self._name = name

    def __call__(self, *args: Any, **given: Any) -> Any:
        return self._ask(self._name, args, given)

    def __getattr__(self, name: str) -> RemoteVerb:
        return RemoteVerb(self._ask, f"{self._name}.{name}")


class OtherProcess:
    """Call a store's verbs in a process of its own: this file, run as a program."""

    def __init__(self) -> None:
        script = Path(__file__).read_text(encoding="utf-8")
        self._process = start_script(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def open(self, path: Path, address: str | None = None) -> None:
        """Open a store there."""
        self._ask("open", (path,), {"address": address})

    def __getattr__(self, name: str) -> RemoteVerb:
        return RemoteVerb(self._ask, name)

    def _ask(self, name: str, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((name, args, given), self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def leave(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def _serve() -> None:
    store: MemoryStore | None = None
    while True:
        try:
            name, args, given = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if name == "open":
                store, answer = open_here(*args, **given), None
            else:
                answer = attrgetter(name)(store)(*args, **given)
        except ByheartError as error:
            answer = error
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
