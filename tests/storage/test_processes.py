"""Many processes and threads on one file at once: the normal case."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.memory.erasing import erase
from byheart.store import MemoryStore
from tests.forked_program import start_script

OPEN = """
import json, sys, time
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.store import MemoryStore
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage

def open_store():
    settings = load_settings({"embedding_provider": "hash"})
    return MemoryStore(SqliteStorage(Path(sys.argv[1])), HashEmbedder(32), settings)
"""

# One process is forked into all of them, before any store is open. They save enough for the index
# file to be written meanwhile.
CROWD = (
    OPEN
    + """
import multiprocessing, random

WRITERS, EACH, SHARED = 8, 80, 8
TOTAL = WRITERS * EACH + SHARED

def write(name, all_saved):
    store, chance = open_store(), random.Random(name)
    for number in range(EACH):
        # As different from one another as texts are: to compare those that are alike takes longer.
        words = " ".join("".join(chance.choices("abcdefghijklm", k=6)) for _ in range(12))
        result = store.save(f"Report of writer {name}, number {number}: {words}.")
        assert result.status == "created", result
        if number % (EACH // SHARED) == 0:  # the same text of several writers becomes one memory
            store.save(f"Shared by all of them: {number}.")
    all_saved.wait(600)
    look_for_all(store)

def search(over):
    store, searches, most = open_store(), 0, 0
    while not over.is_set() or searches < 10:
        mode = ("fts", "vector", "hybrid")[searches % 3]
        answer = store.search("report of a writer", mode=mode)
        assert answer.index.memories >= most, "a search went back in time"
        assert answer.degraded is None, answer.degraded
        most, searches = answer.index.memories, searches + 1
        time.sleep(0.1)
    look_for_all(store)

def look_for_all(store):
    assert store.list(limit=1).total == TOTAL, store.list(limit=1).total
    found = set()
    for offset in range(0, TOTAL, 250):
        page = store.search("report writer", mode="fts", limit=250, offset=offset)
        found |= {hit.chunk_content for hit in page.results}
    assert len(found) == WRITERS * EACH, len(found)
    last = store.search("report writer", mode="vector", limit=1, offset=TOTAL - 1)
    assert last.total_results == 1

fork = multiprocessing.get_context("fork")
all_saved, over = fork.Barrier(WRITERS), fork.Event()
searchers = [fork.Process(target=search, args=(over,)) for _ in range(4)]
writers = [fork.Process(target=write, args=(name, all_saved)) for name in range(WRITERS)]
for each in searchers + writers:
    each.start()
for each in writers:
    each.join()
over.set()
for each in searchers:
    each.join()
sys.exit(sum(each.exitcode != 0 for each in searchers + writers))
"""
)

OPEN_AND_SAVE_ONE = (
    OPEN
    + """
print("ready", flush=True)
sys.stdin.readline()
store = open_store()
store.save(f"first words of {sys.argv[2]}")
print(store.list().total)
"""
)

FIFTY_KILLS = (
    OPEN
    + """
import os, signal

def save_until_killed(round_, out):
    store = open_store()
    for number in range(100_000):
        saved = store.save(f"Round {round_} number {number}. " + "More words. " * (number % 40))
        os.write(out, saved.memory_id.encode() + b"\\n")

acknowledged = []
for round_ in range(50):
    into, out = os.pipe()
    child = os.fork()
    if not child:
        save_until_killed(round_, out)
    os.close(out)
    said = os.read(into, 100)  # at least one was acknowledged
    time.sleep(0.001 * (round_ % 17))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(into, 65536):
        said += more
    os.close(into)
    acknowledged += said.decode().split()
    # Looked at by a process of its own: this one must not hold a store when it is forked.
    child = os.fork()
    if not child:
        store = open_store()
        for memory_id in acknowledged:
            assert store.get(memory_id).content.startswith("Round ")
        assert all(finding.ok for finding in store.admin.doctor()), store.admin.doctor()
        words = store.search(f"round {round_} number 0", mode="fts").results
        assert any(hit.memory_id in acknowledged for hit in words)
        store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, round_
print(len(acknowledged))
"""
)

SEARCH_ON_REQUEST = (
    OPEN
    + """
store = open_store()
for line in sys.stdin:
    request = json.loads(line)
    answer = store.search(request["query"], mode=request["mode"], limit=100)
    print(json.dumps([hit.memory_id for hit in answer.results]), flush=True)
"""
)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return start_script(script, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], said: str = "") -> str:
    out, err = process.communicate(said, timeout=600)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_8_processes_save_80_each_while_4_search_and_every_one_finds_all_640(
    open_store: Callable[..., MemoryStore], path: Path, make_watched: Callable[..., Any]
) -> None:
    finish(start(CROWD, path))
    store = open_store(embedder=make_watched(32, "hash-32"))
    texts = [
        memory.content
        for offset in range(0, 3000, 1000)
        for memory in store.list(limit=1000, offset=offset).memories
    ]
    assert len(texts) == len(set(texts)) == 648
    assert all(finding.ok for finding in store.admin.doctor())


def test_8_processes_open_a_store_that_does_not_exist_yet(
    open_store: Callable[..., MemoryStore], path: Path, make_watched: Callable[..., Any]
) -> None:
    processes = [start(OPEN_AND_SAVE_ONE, path, name) for name in range(8)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all at once
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert int(finish(process)) >= 1
    store = open_store(embedder=make_watched(32, "hash-32"))
    assert store.list().total == 8
    assert all(finding.ok for finding in store.admin.doctor())


@pytest.mark.slow
def test_every_acknowledged_save_is_there_after_each_of_50_kills(path: Path) -> None:
    assert int(finish(start(FIFTY_KILLS, path))) >= 50


@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_what_one_process_saved_another_that_is_open_finds_at_the_very_next_search(
    open_store: Callable[..., MemoryStore], path: Path, mode: str, make_watched: Callable[..., Any]
) -> None:
    store = open_store(embedder=make_watched(32, "hash-32"))
    other = start(SEARCH_ON_REQUEST, path)

    def asked(query: str) -> list[str]:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(json.dumps({"query": query, "mode": mode}) + "\n")
        other.stdin.flush()
        return list(json.loads(other.stdout.readline()))

    assert asked("anything") == []
    for number in range(10):
        saved = store.save(f"quokka {number}")
        assert saved.memory_id in asked("quokka")
        if number % 3 == 0:  # and what was removed is gone at the very next search
            erase(store._storage, [saved.memory_id], "default", tombstones=False)
            assert saved.memory_id not in asked("quokka")
    store.admin.doctor(rebuild=True)
    assert len(asked("quokka")) == 6
    store.admin.doctor(optimize=True)
    assert len(asked("quokka")) == 6
    finish(other)


def test_two_stores_in_one_process_see_each_other_at_once(
    open_store: Callable[..., MemoryStore],
) -> None:
    one, other = open_store(), open_store()
    for number in range(20):
        saved = one.save(f"numbat {number}")
        assert other.search("numbat", mode="fts", limit=50).total_results == number + 1
        assert other.save(f"numbat {number}").memory_id == saved.memory_id


INTERRUPTED_SEARCHES = (
    OPEN
    + """
import signal
writer, store = open_store(), open_store()

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

def search_for(seconds):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        store.search("kiwi", mode="fts", limit=1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return True
    except Interrupt:
        return False

signal.signal(signal.SIGALRM, interrupt)
store.search("kiwi")
expected = interrupted = 0
for round_ in range(30):
    writer.save_many({"content": f"kiwi {round_} {n} " + "and more words " * 20} for n in range(40))
    expected += 40
    # Interrupted a little later each time, and then asked to go on.
    interrupted += not search_for(0.0005 + 0.0004 * round_)
    for mode in ("fts", "vector"):
        last = store.search("kiwi", mode=mode, limit=2, offset=expected - 1)
        assert (last.total_results, last.has_more) == (1, False), (round_, mode, expected)
print(interrupted)
"""
)


@pytest.mark.slow
def test_a_search_that_was_interrupted_leaves_nothing_half_known(path: Path) -> None:
    assert int(finish(start(INTERRUPTED_SEARCHES, path))) > 3
