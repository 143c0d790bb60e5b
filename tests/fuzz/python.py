"""Fuzz the Python API: every verb of a store, with good and bad arguments in any mixture.

Only a ByheartError may come out, and the store must pass `doctor` at the end.
"""

from __future__ import annotations

import functools
import inspect
import io
import math
import os
import random
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args, get_type_hints

import byheart
from byheart import ByheartError, MemoryStore
from byheart.system import file_opening
from tests.fuzz.report import Report
from tests.store_verbs import every_verb

# Ends the store, or works for a long time at its best.
LEFT_OUT = {"close", "admin.prepare", "admin.bench"}
# A store that grows makes every call slower.
_CALLS_PER_STORE = 3_000
_TOO_LONG_SECONDS = 60
_WORDS = (
    "tea",
    "deploy",
    "key",
    "Anna",
    "port 8080",
    "北京",
    "naïve",
    "[INST]",
    "mem_",
    "a/b.py:3",
)
_ODD_TEXTS = (
    *("", " ", "\0", "a\0b", "\ud800", "\udfff tail", "x" * 70_000, "\u202e", "\x1b[31m", "%", "'"),
    *(
        '"',
        "*",
        "NEAR(",
        "AND OR NOT",
        '"unclosed',
        "^",
        "-",
        "--",
        "\\",
        "../..",
        "~",
        "~nobody/x",
    ),
    *("mem_", "mem_0", "mem_01m7hr138g6rt3zfd573zyyp6m#99", "mem_01m7hr138g6rt3zfd573zyyp6m@7"),
    *("2024-13-45", "0000-00-00", "9999-12-31T23:59:60Z", "-1d", "1e999", "NaN", "null", "true"),
)
_ODD_NUMBERS = (
    *(0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, math.inf, -math.inf),
    *(math.nan, True, False),
)
_ODD_MOMENTS = (
    *(datetime.min, datetime.max, datetime.min.replace(tzinfo=UTC), date.min, date.max),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    *(datetime(2024, 1, 1), timedelta.max, time.struct_time((0,) * 9), "yesterday", "2024-02-30"),
)


class _Strange:
    """Something that no verb knows."""

    def __repr__(self) -> str:
        raise ValueError("even its name is refused")


class Caller:
    """Make up calls of a store's verbs."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self._chance = chance
        self._folder = folder
        self._ids: list[str] = []
        # By the names that verbs give to what they take.
        self._good: dict[str, Callable[[], Any]] = {
            **dict.fromkeys(("memory_id", "by", "into_id", "old_id", "new_id"), self._id),
            **dict.fromkeys(("content", "query", "title", "text", "name", "new_name"), self._text),
            **dict.fromkeys(("path", "output_path", "path_or_file"), self._path),
            **dict.fromkeys(("memory_ids", "names", "ids"), lambda: [self._id(), self._id()]),
            **dict.fromkeys(
                ("limit", "top_k", "recent", "around", "k"), lambda: chance.randint(0, 9)
            ),
            **dict.fromkeys(("on_progress", "on_indexed", "on_turn"), lambda: lambda *_: None),
            **dict.fromkeys(
                ("created_after", "created_before", "as_of", "created_at", "since"),
                lambda: datetime(2024, 1, chance.randint(1, 28), tzinfo=UTC),
            ),
            "chunk_id": lambda: f"{self._id()}#0",
            "session_id": lambda: chance.choice(("s1", "s2")),
            "space": lambda: chance.choice(("default", "other")),
            "role": lambda: chance.choice(("user", "assistant", "tool")),
            "kind": lambda: chance.choice(("note", "fact", "report")),
            "mode": lambda: chance.choice(("hybrid", "fts", "vector")),
            "group_by": lambda: chance.choice(("chunk", "section", "memory")),
            "format": lambda: chance.choice(("jsonl", "markdown", "claude-code")),
            "max_tokens": lambda: chance.randint(1, 3_000),
            "importance": lambda: chance.uniform(0, 10),
            "metadata": lambda: {"a": [1, {"b": None}]},
            "tags": lambda: ["tea", "infra"],
            "items": lambda: [{"content": self._text(), "session_id": "s1", "role": "user"}],
            "stop": self._stopped,
            "sessions": lambda: ["s1", None],
            "into": self._text,
        }

    def call(self, verb: str, method: Callable[..., Any]) -> Any:
        """Call a verb with arguments of which most are good."""
        given = {}
        bad_share = self._chance.choice((0.0, 0.1, 0.5))
        for name, parameter in inspect.signature(method).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                [keywords] = get_args(get_type_hints(method)[name])  # Unpack[…] of a TypedDict
                for extra in (*get_type_hints(keywords), "odd"):
                    if self._chance.random() < 0.1:
                        given[extra] = self._value(extra, bad_share)
                continue
            wanted = parameter.default is parameter.empty
            if wanted or name == "stop" or self._chance.random() < 0.25:
                given[name] = self._value(name, bad_share if name != "stop" else 0)
        self.last = given
        answer = method(**given)
        found = getattr(answer, "memory_id", None)
        if isinstance(found, str):
            self._ids = [*self._ids[-50:], found]
        return answer

    def _value(self, name: str, bad_share: float) -> Any:
        if self._chance.random() < bad_share or name not in self._good:
            return self._odd()
        return self._good[name]()

    def _odd(self) -> Any:
        chance = self._chance
        return chance.choice(
            (
                lambda: chance.choice(_ODD_TEXTS),
                lambda: chance.choice(_ODD_NUMBERS),
                lambda: chance.choice(_ODD_MOMENTS),
                lambda: chance.choice((None, b"bytes", bytearray(3), 3j, object, _Strange(), ...)),
                lambda: chance.choice(
                    ([], {}, (), set(), [None], [[]], {"a": 1}, {1: 2}, {"": {}})
                ),
                lambda: {"deep": functools.reduce(lambda inner, _: [inner], range(2_000), [])},
                lambda: {"nan": math.nan, "self": _Strange(), b"k": 1},
                lambda: [self._odd() for _ in range(chance.randint(0, 3))],
                lambda: self._path(),
                lambda: chance.choice(
                    (io.BytesIO(b"\xff\xfe\0"), io.StringIO("text"), self._folder)
                ),
                lambda: chance.choice((True, False)),
                self._text,
            )
        )()

    def _text(self) -> str:
        words = self._chance.choices(_WORDS, k=self._chance.randint(1, 12))
        return " ".join(words) + self._chance.choice(
            (".", "\n\n# Head\n\n- item", "\n```py\nx=1\n```")
        )

    def _id(self) -> str:
        return self._chance.choice(self._ids or ["mem_01m7hr138g6rt3zfd573zyyp6m"])

    def _path(self) -> Any:
        name = self._chance.choice(("a.md", "b.jsonl", "c", "d/e.md", "x" * 300, "a\0b", ".", "s"))
        path = self._folder / name
        return self._chance.choice((path, str(path)))

    def _stopped(self) -> threading.Event:
        stop = threading.Event()
        stop.set()
        return stop


@contextmanager
def _confined(folder: Path) -> Iterator[None]:
    """Have every relative path and every home directory lie within a folder.

    Any text may be taken for a path: "../.." must still lead to a place inside.
    """
    inside = folder / "a" / "b" / "c"
    inside.mkdir(parents=True)
    before, kept = Path.cwd(), {name: os.environ.get(name) for name in ("HOME", "USERPROFILE")}
    os.environ.update(dict.fromkeys(kept, str(inside)))
    try:
        os.chdir(inside)
        yield
    finally:
        os.chdir(before)
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run(seconds: float, seed: int) -> Report:
    """Call verbs until the time is up, and say which calls ended in anything but an answer."""
    chance = random.Random(seed)
    report, failures = Report(), dict[str, str]()
    until = time.monotonic() + seconds
    waits, file_opening.PIPE_SECONDS = file_opening.PIPE_SECONDS, 0.05
    try:
        while time.monotonic() < until:
            report.tried += _try_store(chance, until, failures)
    finally:
        file_opening.PIPE_SECONDS = waits
    report.failures = list(failures.values())
    return report


def _try_store(chance: random.Random, until: float, failures: dict[str, str]) -> int:
    """Call verbs of a new store, then have it examined; count the calls."""
    tried, verbs = 0, public_verbs()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, _confined(Path(name)):
        folder = Path(name) / "files"
        (folder / "d").mkdir(parents=True)
        (folder / "a.md").write_text("# Tea\n\nAnna drinks tea.\n")
        (folder / "b.jsonl").write_text('{"content": "tea"}\nno json\n')
        with byheart.open(Path(name) / "memory.db", embedding_provider="hash") as store:
            caller = Caller(chance, folder)
            while tried < _CALLS_PER_STORE and time.monotonic() < until:
                verb = chance.choice(verbs)
                tried += 1
                started = time.monotonic()
                try:
                    caller.call(verb, attrgetter(verb)(store))
                except ByheartError as error:
                    _check_words(verb, error, failures)
                except Exception as error:  # noqa: BLE001 - these are what is looked for
                    _note(verb, error, caller.last, failures)
                if time.monotonic() - started > _TOO_LONG_SECONDS:
                    failures.setdefault(f"{verb} slow", f"{verb}: took too long, {caller.last}")
            _check_health(store, failures)
    return tried


def public_verbs() -> list[str]:
    """Name every verb that is called: a new one is called by itself."""
    return [name for name in every_verb() if name not in LEFT_OUT]


def _check_words(verb: str, error: ByheartError, failures: dict[str, str]) -> None:
    if not error.message.strip():
        failures.setdefault(f"{verb} blank", f"{verb}: an error without a message")


def _note(verb: str, error: Exception, given: object, failures: dict[str, str]) -> None:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    try:
        shown = repr(given)[:300]
    except Exception:  # noqa: BLE001
        shown = "arguments that cannot be shown"
    told = f"{verb}: {type(error).__name__}: {str(error)[:150]} at {place} with {shown}"
    failures.setdefault(f"{verb} {type(error).__name__} {place}", told)


def _check_health(store: MemoryStore, failures: dict[str, str]) -> None:
    store.admin.embed_pending()
    for finding in store.admin.doctor():
        if not finding.ok:
            failures[f"doctor {finding}"] = f"doctor: {finding}"
