"""Save and search in a large space at once: nothing is lost, and every save is found at once.

`BYHEART_TEST_FOLDING=4x4x6000` runs four writers with 6,000 saves each and four searchers; the
default takes some seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore
from tests.forked_program import start_script
from tests.postgres_server import private_server
from tests.storage.postgres.wholeness import check_whole

WRITERS, SEARCHERS, SAVES = map(int, os.environ.get("BYHEART_TEST_FOLDING", "2x2x40").split("x"))
# Above a tenth of all saves, the space is large; a fiftieth of that is enough for a fold.
LOCAL_CHUNKS = max(20, WRITERS * SAVES // 10)

_OPEN = """
import os, random, sys, time
from pathlib import Path
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore

url, folder, name, local_chunks, saves = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])

def open_store(kind):
    settings = load_settings({"embedding_provider": "hash", "notice_similar": False})
    cache = folder / f"cache-{kind}-{name}"
    backend = PostgresBackend(parse_address(url), cache, 60, local_chunks=local_chunks)
    return MemoryStore(SqlStorage(backend), HashEmbedder(32), settings)
"""
_WRITER = """
store = open_store("writer")
with (folder / f"saved-{name}").open("a") as record:
    for number in range(saves):
        filler = " ".join(f"w{(number * 7 + k * k) % 997}" for k in range(number % 30))
        line = f"own{name}x{number} was reported here. {filler}"
        store.save(line)
        record.write(line + "\\n")
        record.flush()
store.close()
print("done")
"""
_SEARCHER = """
store, chance = open_store("searcher"), random.Random(name)
with (folder / f"searched-{name}").open("a") as record:
    while not (folder / "stop").exists():
        saved = sorted(folder.glob("saved-*"))
        lines = chance.choice(saved).read_text().splitlines(keepends=True) if saved else []
        if not lines or not lines[-1].endswith("\\n"):
            time.sleep(0.01)
            continue
        line = (lines[-1] if chance.random() < 0.7 else chance.choice(lines[:-1] or lines)).rstrip()
        word = line.split(" ", 1)[0]
        began = time.perf_counter()
        found = store.search(word, mode=chance.choice(("fts", "hybrid")), limit=5)
        took = (time.perf_counter() - began) * 1000
        assert any(word in hit.chunk_content for hit in found.results), f"not found: {line}"
        record.write(f"{took:.1f} {found.index.kept_in}\\n")
store.close()
print("done")
"""


def start(script: str, url: str, folder: Path, name: int) -> subprocess.Popen[str]:
    given = (url, folder, name, LOCAL_CHUNKS, SAVES)
    pipe = subprocess.PIPE
    return start_script(_OPEN + script, *given, stdout=pipe, stderr=pipe, text=True)


def collect(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        out, err = process.communicate()
        assert (process.returncode, out) == (0, "done\n"), err


def open_store(address: Address, cache: Path, local_chunks: int) -> MemoryStore:
    settings = load_settings({"embedding_provider": "hash", "notice_similar": False})
    backend = PostgresBackend(address, cache, 60, local_chunks=local_chunks)
    return MemoryStore(SqlStorage(backend), HashEmbedder(32), settings)


def read_lines(folder: Path, kind: str) -> list[str]:
    return [line for each in folder.glob(f"{kind}-*") for line in each.read_text().splitlines()]


@pytest.mark.slow
def test_writers_and_searchers_lose_nothing_while_postings_are_folded(tmp_path: Path) -> None:
    began = time.monotonic()
    with private_server() as server:
        url = server.url() + "&parts=2"
        address = parse_address(url)
        with open_store(address, tmp_path / "first", LOCAL_CHUNKS) as store:
            store.save("The first text makes the store.")
        searchers = [start(_SEARCHER, url, tmp_path, name) for name in range(SEARCHERS)]
        collect([start(_WRITER, url, tmp_path, name) for name in range(WRITERS)])
        seconds = time.monotonic() - began
        (tmp_path / "stop").touch()
        collect(searchers)
        searched = [line.split() for line in read_lines(tmp_path, "searched")]
        assert {place for _, place in searched[-20:]} >= {"database"}
        with psycopg.connect(server.url()) as connection:
            row = connection.execute(
                "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'posting_runs' "
                "AND schemaname = 'byheart_01'"
            ).fetchone()
        assert row is not None
        assert row[0] > 1, "postings were folded while texts were saved"
        saved = read_lines(tmp_path, "saved")
        assert len(saved) == WRITERS * SAVES
        check_everything(address, tmp_path, saved)
        times = sorted(float(took) for took, _ in searched)
        sys.stdout.write(
            f"{len(saved)} saves and {len(times)} searches in {seconds:.0f} s, {row[0]} folds; "
            f"a search took {times[len(times) // 2]:.0f} ms (p50), "
            f"{times[len(times) * 95 // 100]:.0f} ms (p95), {times[-1]:.0f} ms at most\n"
        )


def check_everything(address: Address, folder: Path, saved: list[str]) -> None:
    with (
        open_store(address, folder / "large", LOCAL_CHUNKS) as large,
        open_store(address, folder / "local", 10 * len(saved)) as local,
    ):
        large._storage.refresh("default")
        for at in range(0, len(saved), max(1, len(saved) // 100)):
            answers = [store.search(saved[at], limit=20) for store in (large, local)]
            assert saved[at] in [hit.chunk_content for hit in answers[0].results]
            assert answers[0].results == answers[1].results
        assert large.status().index.kept_in == "database"
        assert local.status().index.kept_in == "memory"
        assert large.status().index.memories == len(saved) + 1
        check_whole(large, address)
