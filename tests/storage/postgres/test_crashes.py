"""Kill processes and the server while texts are saved: no acknowledged save is lost or doubled.

`BYHEART_TEST_CRASHES=10x1000x20` runs ten processes with 1,000 saves each and 20 crashes of the
server; the default takes some seconds.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresStorage
from byheart.store import MemoryStore
from tests.forked_program import start_script
from tests.postgres_server import PostgresServer, private_server
from tests.storage.postgres.wholeness import check_whole

PROCESSES, SAVES, CRASHES = map(int, os.environ.get("BYHEART_TEST_CRASHES", "3x40x3").split("x"))
SPACES = ("red", "blue")
# The same text of several processes is one memory.
SHARED_EVERY = 10

_ADDRESS = re.compile(r"[0-9.]+ |postgresql://\S+|/\S+")

SAVER = """
import os, random, sys, time
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import ByheartError, StoreError
from byheart.settings import load_settings
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresStorage
from byheart.store import MemoryStore

url, folder, name, saves, shared_every = sys.argv[1:6]
name, saves, shared_every, folder = int(name), int(saves), int(shared_every), Path(folder)
errors = (folder / f"errors-{name}").open("a")

def again(work):
    until = time.monotonic() + 60
    while True:
        began = time.monotonic()
        try:
            return work()
        except StoreError as error:
            took = time.monotonic() - began
            print(f"{type(error).__name__} {took:.1f} {error}", file=errors, flush=True)
            assert error.hint, error
            assert took < 20, (took, error)
            if time.monotonic() > until:
                raise
            time.sleep(0.02)

def open_store():
    settings = load_settings({"embedding_provider": "hash"})
    storage = PostgresStorage(parse_address(url), folder / f"cache-{name}", busy_timeout_seconds=10)
    return MemoryStore(storage, HashEmbedder(32), settings)

def look_for(line):
    space, word, _ = line.split(" ", 2)
    found = again(lambda: store.search(word, mode="fts", limit=3, space=space)).results
    assert any(word in hit.chunk_content for hit in found), f"stale answer: {line}"

path = folder / f"saved-{name}"
done = path.read_text().splitlines() if path.exists() else []
store = again(open_store)
chance = random.Random()
with path.open("a") as record:
    for number in range(len(done), saves):
        space = ("red", "blue")[number % 2]
        word = f"shared{number}" if number % shared_every == 0 else f"own{name}x{number}"
        filler = " ".join(f"w{(number * 7 + k * k) % 997}" for k in range(number % 30))
        line = f"{space} {word} was reported here. {filler}"
        again(lambda: store.save(line, space=space))
        record.write(line + "\\n")
        record.flush()
        os.fsync(record.fileno())
        if number % 5 == 0:
            other = folder / f"saved-{chance.randrange(100) % (name + 2)}"
            lines = other.read_text().splitlines(keepends=True) if other.exists() else []
            if lines and lines[-1].endswith("\\n"):
                look_for(lines[-1].rstrip("\\n"))
print("done")
"""


class Savers:
    """Run the processes that save, and start them again when they are killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.running = {name: self._start(name) for name in range(PROCESSES)}
        self.kills = 0

    def _start(self, name: int) -> subprocess.Popen[str]:
        given = (self.url, self.folder, name, SAVES, SHARED_EVERY)
        pipe = subprocess.PIPE
        return start_script(SAVER, *given, stdout=pipe, stderr=pipe, text=True)

    def collect(self) -> None:
        """Take note of the processes that have ended."""
        for name, process in list(self.running.items()):
            if process.poll() is not None:
                out, err = process.communicate()
                assert (process.returncode, out) == (0, "done\n"), err
                del self.running[name]

    def kill_one(self) -> None:
        """Kill a process without warning, and start it again."""
        if self.running:
            name = random.choice(sorted(self.running))
            process = self.running[name]
            process.kill()
            process.communicate()
            if process.returncode:
                self.kills += 1
                self.running[name] = self._start(name)
            else:
                del self.running[name]

    def count_saved(self) -> int:
        """Count the saves that were acknowledged."""
        files = self.folder.glob("saved-*")
        return sum(each.read_bytes().count(b"\n") for each in files)


def read_lines(folder: Path, kind: str) -> list[str]:
    return [line for each in folder.glob(f"{kind}-*") for line in each.read_text().splitlines()]


def list_texts(store: MemoryStore, space: str) -> list[str]:
    texts: list[str] = []
    while page := store.list(limit=1000, offset=len(texts), space=space).memories:
        texts += [memory.content for memory in page]
    return texts


def search_texts(store: MemoryStore, space: str) -> set[str]:
    found: list[str] = []
    while True:
        answer = store.search(
            "reported here", mode="fts", limit=1000, offset=len(found), space=space
        )
        if not answer.results:
            return set(found)
        found += [hit.chunk_content for hit in answer.results]


def crash(server: PostgresServer, number: int) -> None:
    if number % 3 == 2:
        server.kill()
        server.start()
    else:
        server.restart("immediate")


@pytest.mark.slow
def test_saves_survive_kills_of_processes_and_crashes_of_the_server(tmp_path: Path) -> None:
    began = time.monotonic()
    with private_server() as server:
        url = server.url() + "&parts=2"
        address = parse_address(url)
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        savers = Savers(url, tmp_path)
        total = PROCESSES * SAVES
        for number in range(CRASHES):
            # Spread the crashes over the whole run.
            while savers.count_saved() < total * (number + 0.5) / (CRASHES + 0.5):
                savers.collect()
                assert savers.running, "all savers ended before the last crash"
                time.sleep(0.02)
                if random.random() < 0.005:
                    savers.kill_one()
            crash(server, number)
            savers.kill_one()
        while savers.running:
            savers.collect()
            time.sleep(0.05)
        saving_seconds = time.monotonic() - began
        check_everything(address, tmp_path)
        errors = read_lines(tmp_path, "errors")
        sys.stdout.write(
            f"{total} saves in {saving_seconds:.0f} s, {CRASHES} crashes, {savers.kills} kills, "
            f"{len(errors)} errors, checked in {time.monotonic() - began - saving_seconds:.0f} s\n"
        )
        for line in sorted({_ADDRESS.sub("…", error) for error in errors}):
            sys.stdout.write(line + "\n")


def check_everything(address: Address, folder: Path) -> None:
    settings = load_settings({"embedding_provider": "hash"})
    storage = PostgresStorage(address, folder / "new-cache")
    with MemoryStore(storage, HashEmbedder(32), settings) as store:
        acknowledged = set(read_lines(folder, "saved"))
        for space in SPACES:
            expected = {line for line in acknowledged if line.startswith(space)}
            texts = list_texts(store, space)
            assert len(texts) == len(set(texts)), "a save was doubled"
            assert set(texts) == expected
            assert search_texts(store, space) == expected
        check_whole(store, address)
