"""A long run saves the same with helper processes and without, and leaves none behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from byheart import MemoryStore
from byheart.errors import TooManyChunks
from byheart.memory.deriving import Derived
from byheart.memory.helper_pool import HelperPool
from byheart.memory.save_requests import SaveRequest
from tests.conftest import OpenStore
from tests.waiting import PATIENCE_SECONDS

Answers = list[Sequence[Derived | None] | None]
TEXTS = [
    *(f"Marie Curie met number {number} in Paris. It was a long day. " * 9 for number in range(90)),
    "# Herons\n\nThey wait.\n\n## Food\n\n- eels\n- frogs\n",
    "Η Αθήνα είναι μεγάλη πόλη. 北京大学的图书馆。 Größe und Straße.",
    "Marie Curie met number 7 in Paris. It was a long day. " * 9,  # for the second time
]
TOO_LONG = "Plain words fill this passage up to the brim. " * 9_000


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Start helpers at once, and give the list of what they answer."""
    found: Answers = []
    derive_all = HelperPool.derive_all

    def noting(self: HelperPool, requests: Sequence[SaveRequest], *given: Any) -> Any:
        found.append(derive_all(self, requests, *given))
        return found[-1]

    monkeypatch.setattr(HelperPool, "derive_all", noting)
    monkeypatch.setattr("byheart.memory.long_run._LEAST_SECONDS", 0.0)
    monkeypatch.setattr("byheart.memory.long_run._LEAST_SHARE", 0.0)
    monkeypatch.setattr("byheart.memory.helper_pool.count_cores", lambda: 3)
    return found


def derived_in(answers: Answers) -> int:
    """Count the texts that helpers derived."""
    return sum(each is not None for part in answers for each in part or ())


def children() -> set[str]:
    """Name the processes that this one has started and that still run, and those it must reap."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    return {line for line in found.stdout.splitlines() if "helper_process" in line}


def described(store: MemoryStore, tmp_path: Path) -> list[dict[str, Any]]:
    """Give the lines of an export without what differs between any two stores: ids and times."""
    path = tmp_path / "export.jsonl"
    store.export(path, overwrite=True, vectors=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()][1:]
    for line in lines:
        for name in ("memory_id", "created_at", "updated_at", "since_at", "history"):
            line.pop(name, None)
    return lines


def test_save_many_saves_the_same_with_helpers(
    open_store: OpenStore, tmp_path: Path, answers: Answers
) -> None:
    alone = open_store(tmp_path / "alone.db", helper_processes=0)
    expected = alone.save_many({"content": text} for text in TEXTS)
    assert answers == []
    helped = open_store(tmp_path / "helped.db")
    results = helped.save_many({"content": text} for text in TEXTS)
    assert derived_in(answers) > 0
    assert [each.content_hash for each in results] == [each.content_hash for each in expected]
    assert [each.chunks for each in results] == [each.chunks for each in expected]
    assert described(helped, tmp_path) == described(alone, tmp_path)
    assert children() == set()


def test_an_import_has_helpers(open_store: OpenStore, tmp_path: Path, answers: Answers) -> None:
    lines = tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"content": text}) + "\n" for text in TEXTS))
    alone = open_store(tmp_path / "alone.db", helper_processes=0)
    alone.import_(lines)
    helped = open_store(tmp_path / "helped.db")
    assert helped.import_(lines).imported == len(set(TEXTS))
    assert derived_in(answers) > 0
    assert described(helped, tmp_path) == described(alone, tmp_path)
    assert children() == set()


def test_an_import_of_another_program_has_helpers(
    open_store: OpenStore, tmp_path: Path, answers: Answers
) -> None:
    path = tmp_path / "mem0.json"
    memories = [{"id": str(at), "memory": text} for at, text in enumerate(TEXTS)]
    path.write_text(json.dumps({"results": memories}))
    alone = open_store(tmp_path / "alone.db", helper_processes=0)
    expected = alone.import_(path)
    helped = open_store(tmp_path / "helped.db")
    assert helped.import_(path) == expected
    assert (expected.format, expected.memories) == ("mem0", len(TEXTS))
    assert derived_in(answers) > 0
    assert described(helped, tmp_path) == described(alone, tmp_path)


def test_turns_have_helpers(open_store: OpenStore, tmp_path: Path, answers: Answers) -> None:
    turns = [{"session_id": "s1", "role": "user", "content": text} for text in TEXTS]
    alone = open_store(tmp_path / "alone.db", helper_processes=0)
    alone.log_many(turns)
    helped = open_store(tmp_path / "helped.db")
    helped.log_many(turns)
    assert derived_in(answers) > 0
    assert described(helped, tmp_path) == described(alone, tmp_path)


@pytest.mark.parametrize("at", [3, 60, 92])
def test_the_first_text_that_is_too_long_stops_the_run_as_without_helpers(
    open_store: OpenStore, answers: Answers, at: int
) -> None:
    store = open_store(max_chunks=100)
    texts = [*TEXTS[:at], TOO_LONG, *TEXTS[at:], TOO_LONG + "again"]
    with pytest.raises(TooManyChunks, match=f"^item {at}: "):
        store.save_many({"content": text} for text in texts)
    assert derived_in(answers) > 0
    assert store.list(limit=1).total == len(set(TEXTS[:at]))
    assert children() == set()


def test_a_run_goes_on_without_helpers_that_were_killed(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    derive_all = HelperPool.derive_all

    def kill_first(self: HelperPool, *given: Any) -> Any:
        for each in self._helpers:
            if each._process.poll() is None:
                os.kill(each._process.pid, signal.SIGKILL)
                each._process.wait(PATIENCE_SECONDS)
        return derive_all(self, *given)

    monkeypatch.setattr(HelperPool, "derive_all", kill_first)
    store = open_store()
    results = store.save_many({"content": text} for text in TEXTS)
    assert answers
    assert derived_in(answers) == 0
    assert [each.status for each in results].count("created") == len(set(TEXTS))


def test_a_run_goes_on_if_no_process_can_be_started(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    results = open_store().save_many({"content": text} for text in TEXTS)
    assert answers == []
    assert [each.status for each in results].count("created") == len(set(TEXTS))


def test_texts_that_cannot_be_sent_to_a_helper_are_saved(
    open_store: OpenStore, answers: Answers
) -> None:
    class LocalText(str):
        """A class that no other process finds."""

        __slots__ = ()

    store = open_store()
    store.save_many({"content": LocalText(text)} for text in TEXTS)
    assert None in answers
    assert store.list(limit=1).total == len(set(TEXTS))


def test_an_interrupt_at_the_end_of_a_run_leaves_no_helper_behind(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    store = open_store()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(ThreadPoolExecutor, "shutdown", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.save_many({"content": text} for text in TEXTS)
    assert derived_in(answers) > 0
    assert children() == set()
    answers.clear()
    store.save_many({"content": f"again {text}"} for text in TEXTS)
    assert derived_in(answers) > 0


def test_a_short_run_has_no_helpers(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    monkeypatch.setattr("byheart.memory.long_run._LEAST_SECONDS", 60.0)
    open_store().save_many({"content": text} for text in TEXTS)
    assert answers == []


def test_a_run_that_spends_its_time_otherwise_has_no_helpers(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, answers: Answers
) -> None:
    monkeypatch.setattr("byheart.memory.long_run._LEAST_SHARE", 1.0)
    open_store().save_many({"content": text} for text in TEXTS)
    assert answers == []


def test_only_one_run_of_a_process_has_helpers_at_a_time(
    open_store: OpenStore, answers: Answers
) -> None:
    store = open_store()
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], len(children()))

    def save(name: str) -> Callable[[], object]:
        items = [{"content": f"{name} {text}"} for text in TEXTS * 3]
        return lambda: store.save_many(items)

    watching = threading.Thread(target=watch)
    saving = [threading.Thread(target=save(name)) for name in ("one", "two", "three")]
    watching.start()
    for each in saving:
        each.start()
    for each in saving:
        each.join()
    done.set()
    watching.join()
    assert 0 < most[0] <= 2  # the cores but one
    assert derived_in(answers) > 0
    assert children() == set()
    assert store.list(limit=1).total == 3 * len(set(TEXTS))


PROGRAM = """
import sys, threading
import byheart
from byheart.memory import helper_pool, long_run
long_run._LEAST_SECONDS = long_run._LEAST_SHARE = 0.0
helper_pool.count_cores = lambda: 2
pools = []
class Pool(helper_pool.HelperPool):
    def __init__(self, *given):
        super().__init__(*given)
        pools.append(self)
helper_pool.HelperPool = Pool
items = [{"content": f"text {number} about Marie Curie"} for number in range(200)]
def load():
    with byheart.open(sys.argv[-1], embedding_provider="hash") as store:
        print(len(store.save_many(items)), store.list(limit=1).total)
THREAD
[pool] = pools
print([each._process.returncode for each in pool._helpers])
"""


@pytest.mark.parametrize("way", ["-c", "file", "standard input"])
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_program_needs_no_guard_for_its_main_module(
    tmp_path: Path, way: str, in_thread: bool
) -> None:
    begin = "t = threading.Thread(target=load); t.start(); t.join()" if in_thread else "load()"
    program = PROGRAM.replace("THREAD", begin)
    (tmp_path / "program.py").write_text(program)
    arguments = {"-c": ["-c", program], "file": [str(tmp_path / "program.py")]}.get(way, ["-"])
    ran = subprocess.run(
        [sys.executable, *arguments, str(tmp_path / "memory.db")],
        input=program if way == "standard input" else "",
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (ran.stdout, ran.stderr) == ("200 200\n[0]\n", "")
