"""What `stats` counts: in every process, across restarts, and without ever being in the way."""

from __future__ import annotations

import io
import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from byheart.contracts import Count, Tally
from byheart.embedding import open_embedder
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput
from byheart.storage.sqlite import ledger
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.store import MemoryStore
from byheart.upkeep import usage_stats as observing
from byheart.upkeep.usage_stats import Observer
from tests.forked_program import start_script

OpenStore = Callable[..., MemoryStore]


def ledger_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-stats")


def observed(*elapsed_ms: float, slow_query_ms: float = 500) -> observing.QueryStats:
    """Count queries by hand, without a ledger."""
    observer = Observer(
        None,
        collecting=True,
        slow_query_ms=slow_query_ms,
        embedder=open_embedder("hash", cache_dir=Path()),
    )
    for number, each in enumerate(elapsed_ms):
        observer.searched("s", "fts/fine", f"query {number}", each)
    counts = observer.tally("s").counts
    return observer._query_stats(counts, [])


# --- What a space holds -----------------------------------------------------------------------


def test_stats_count_what_a_space_holds_by_kind(store: MemoryStore) -> None:
    empty = store.admin.stats()
    assert (empty.memories, empty.chunks, empty.vectors, empty.kinds) == (0, 0, 0, {})
    assert empty.coverage_percent == 100
    store.save("a fact", kind="fact")
    store.save("a note")
    store.save("another note")
    store.save("elsewhere", space="other")
    store.forget(store.save("a forgotten note").memory_id)
    stats = store.admin.stats()
    assert stats.kinds == {"fact": 1, "note": 2}
    assert (stats.memories, stats.chunks, stats.vectors, stats.pending_vectors) == (3, 3, 3, 0)
    assert stats.model == store.status().index.model
    assert store.admin.stats(space="other").kinds == {"note": 1}


def test_coverage_never_says_complete_when_it_is_not(
    open_store: OpenStore, watched: object
) -> None:
    store = open_store(embedder=watched)
    store.save("with a vector")
    watched.down = True
    store.save("without one")
    assert store.admin.stats().coverage_percent == 50
    assert observing._coverage(100_000, 1) == 99.99


def test_sizes_are_those_of_the_files(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    store.save_many({"content": f"text {n}"} for n in range(500))
    store.search("text")
    path.with_name("memory.db.backup-schema-1").write_bytes(b"x" * 1234)
    store.close()
    sizes = open_store().admin.stats().sizes
    assert sizes.store_bytes == path.stat().st_size
    assert sizes.index_bytes == path.with_name("memory.db-index").stat().st_size > 0
    assert sizes.stats_bytes == ledger_of(path).stat().st_size > 0
    assert sizes.backup_bytes == 1234


# --- Counting ---------------------------------------------------------------------------------


def test_queries_are_counted_by_kind_of_search_and_recall_is_one(store: MemoryStore) -> None:
    store.save("apples and pears")
    store.search("apples")
    store.search("apples", mode="fts")
    store.search("apples", mode="fts", granularity="coarse")
    store.search(granularity="coarse")
    store.recall("apples")
    queries = store.admin.stats().queries
    assert {kind: each.count for kind, each in queries.kinds.items()} == {
        "fts/coarse": 1,
        "fts/fine": 1,
        "hybrid/fine": 1,
        "listing/coarse": 1,
        "recall": 1,
    }
    assert queries.total.count == 5
    assert {each.query for each in queries.slowest} == {"apples", ""}
    assert queries.total.p50_ms is not None


def test_verdicts_of_all_kinds_of_searches_are_counted(open_store: OpenStore) -> None:
    store = open_store()
    store.save("Deploys are frozen from Friday noon until Monday.")
    said = [store.search("deploys frozen Friday").verdict, store.recall("deploys frozen").verdict]
    said.append(store.search("deploys", mode="fts").verdict)
    said.append(store.context("chat", query="deploys frozen until Monday").verdict or "none")
    store.search("", granularity="coarse")  # a listing answers no question
    store.search("deploys", space="other")
    store.close()
    counted = open_store().admin.stats().queries.verdicts
    assert counted == {name: said.count(name) for name in ("answered", "weak", "none")}
    assert sum(counted.values()) == 4


def test_a_refused_query_is_not_counted(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        store.search("")
    assert store.admin.stats().queries.total.count == 0


@pytest.mark.parametrize("scale", [0.02, 1, 50, 4000])
def test_percentiles_are_right_within_five_percent(scale: float) -> None:
    times = [scale * (1 + number / 100) for number in range(1000)]
    total = observed(*times).total
    for found, share in ((total.p50_ms, 0.5), (total.p95_ms, 0.95), (total.p99_ms, 0.99)):
        exact = times[int(share * len(times)) - 1]
        assert found == pytest.approx(exact, rel=0.05)
    assert total.mean_ms == pytest.approx(sum(times) / len(times), rel=0.001)


def test_queries_of_any_length_fall_into_some_bucket() -> None:
    total = observed(0.0, 1e-9, 1e12).total
    assert total.count == 3
    assert observed().total.p50_ms is None


def test_the_first_query_of_a_kind_may_be_a_cold_start_and_is_not_slow_then() -> None:
    stats = observed(2000, 100, 900, slow_query_ms=500)
    assert (stats.total.count, stats.total.slow, stats.cold_starts) == (3, 1, 1)
    assert observed(100, 900, slow_query_ms=500).cold_starts == 0, "the first one was quick"


def test_slow_queries_are_those_over_the_setting() -> None:
    stats = observed(499, 500, 501, 900, slow_query_ms=500)
    assert (stats.total.slow, stats.total.slow_rate) == (2, 0.5)


def test_the_slowest_queries_of_each_kind_are_kept_with_their_beginning(path: Path) -> None:
    path.touch()
    ledger = SqliteLedger(ledger_of(path), path)
    observer = Observer(
        ledger, collecting=True, slow_query_ms=1, embedder=open_embedder("hash", cache_dir=path)
    )
    for number in range(300):
        observer.searched("s", "fts/fine", f"{number} " + "x" * 500, float(number))
        if number % 7 == 0:
            observer.flush()
    observer.searched("s", "recall", "quick", 0.1)
    observer.searched("other", "recall", "of another space", 1e6)
    slowest = observing.slowest_of(observer.tally("s").slowest["s"])
    assert [each.elapsed_ms for each in slowest] == [*range(299, 289, -1), 0.1]
    assert len(slowest[0].query) == 200
    assert slowest[-1].query == "quick"


def test_saves_are_counted_by_what_became_of_them(store: MemoryStore) -> None:
    saved = store.save("one")
    store.save("one")
    store.save_many([{"content": "two"}, {"content": "one"}, {"content": "x", "space": "other"}])
    store.update(saved.memory_id, title="First")
    saves = store.admin.stats().saves
    assert (saves.created, saves.unchanged, saves.updated) == (2, 2, 1)
    assert store.admin.stats(space="other").saves.created == 1
    store.import_(io.BytesIO(b'{"content": "one more"}\n{"content": "and another"}\n'))
    assert store.admin.stats().saves.created == 4


def test_index_work_is_timed(open_store: OpenStore) -> None:
    store = open_store()
    store.save_many({"content": f"text {n}"} for n in range(500))
    store.search("text")
    store.save("one more")
    store.search("text")
    work = store.admin.stats().index_work
    assert set(work) == {"catch_up", "publish", "rebuild"}
    assert all(0 < each.last_seconds <= each.total_seconds for each in work.values())
    before = work["catch_up"].count
    store.search("text")  # nothing is new: no work
    assert store.admin.stats().index_work["catch_up"].count == before


def test_cache_hits_are_counted(path: Path) -> None:
    import byheart

    with byheart.open(path, embedding_provider="hash") as store:
        store.save("the same text", session_id="a")
        store.save("the same text", session_id="b")
        for _ in range(4):
            store.search("same question")
        caches = store.admin.stats().caches
    assert (caches["text_vectors"].hits, caches["text_vectors"].misses) == (1, 1)
    assert (caches["query_vectors"].hits, caches["query_vectors"].misses) == (3, 1)
    assert caches["query_vectors"].hit_rate == 0.75
    with byheart.open(path, embedding_provider="hash") as store:
        assert store.admin.stats().caches == caches


# --- Processes, restarts, forks ---------------------------------------------------------------


def test_counts_survive_a_restart_and_never_go_down(open_store: OpenStore) -> None:
    seen = 0
    for _ in range(3):
        with open_store() as store:
            for _ in range(5):
                store.search("anything")
                counted = store.admin.stats().queries.total.count
                assert counted == seen + 1
                seen = counted
    assert open_store().admin.stats().since is not None


PROCESS = """
import sys
import byheart
store = byheart.open(sys.argv[1], embedding_provider="hash")
for number in range(20):
    store.search(f"question {number}")
if sys.argv[2] == "close":
    store.close()
"""


@pytest.mark.parametrize("how", ["close", "exit"])
def test_several_processes_count_together_whether_they_close_or_just_end(
    open_store: OpenStore, path: Path, how: str
) -> None:
    store = open_store()
    store.save("an answer")
    running = [start_script(PROCESS, path, how) for _ in range(3)]
    for _ in range(10):
        store.search("mine")
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert store.admin.stats().queries.total.count == 70


def test_a_flush_happens_by_itself(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "_FLUSH_SECONDS", 0.05)
    # Who looks so often may hold the ledger at every one of a few attempts.
    monkeypatch.setattr(observing, "_FLUSH_ATTEMPTS", 1000)
    store, other = open_store(), open_store()
    store.search("anything")
    deadline = time.monotonic() + 20
    while other.admin.stats().queries.total.count != 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_forked_child_neither_writes_the_counts_nor_waits_for_a_thread_that_does(
    open_store: OpenStore,
) -> None:
    store = open_store()
    store.search("counted by the parent")
    within, done = threading.Event(), threading.Event()

    def flush() -> None:
        with store._engine.observer._flushing:
            within.set()
            done.wait(60)

    flushing = threading.Thread(target=flush)
    flushing.start()
    assert within.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        observing._flush_all()  # as at the end of any process
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    flushing.join()
    store.close()
    assert open_store().admin.stats().queries.total.count == 1


def test_sixteen_threads_lose_no_count(store: MemoryStore) -> None:
    observer = store._engine.observer

    def work() -> None:
        for number in range(500):
            observer.searched("default", "fts/fine", "q", 1.0)
            if number % 100 == 0:
                observer.flush()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert store.admin.stats().queries.total.count == 8000


# --- Never in the way -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"no database at all" * 300, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_damaged_ledger_starts_anew(open_store: OpenStore, path: Path, content: bytes) -> None:
    with open_store() as store:
        store.search("counted and lost")
    ledger_of(path).write_bytes(content)
    with open_store() as store:
        assert store.admin.stats().queries.total.count == 0
        store.search("counted")
    assert open_store().admin.stats().queries.total.count == 1


def test_a_ledger_of_another_version_starts_anew(open_store: OpenStore, path: Path) -> None:
    connection = apsw.Connection(str(ledger_of(path)))
    connection.execute("CREATE TABLE counts (x); PRAGMA user_version = 99")
    connection.close()
    with open_store() as store:
        store.search("counted")
    assert open_store().admin.stats().queries.total.count == 1


def test_where_no_ledger_can_be_written_counts_stay_in_memory(
    open_store: OpenStore, path: Path
) -> None:
    ledger_of(path).mkdir()
    with open_store() as store:
        store.search("counted")
        store._engine.observer.flush()
        assert store.admin.stats().queries.total.count == 1
    assert open_store().admin.stats().queries.total.count == 0


def test_a_locked_ledger_holds_nobody_up_and_is_caught_up_later(
    open_store: OpenStore, path: Path
) -> None:
    with open_store() as store:
        store.search("first")
        store._engine.observer.flush()
        locker = apsw.Connection(str(ledger_of(path)))
        locker.execute("BEGIN EXCLUSIVE")
        assert store.search("second").degraded is None
        assert store.save("meanwhile").status == "created"
        store._engine.observer.flush()
        locker.close()
        assert store.admin.stats().queries.total.count == 2


def test_a_store_that_can_only_be_read_counts_in_memory(open_store: OpenStore, path: Path) -> None:
    open_store().close()
    store = open_store()
    store._storage._backend.database.writable = False
    reading = MemoryStore(store._storage, HashEmbedder(), store._engine.settings)
    reading.search("anything")
    assert reading.admin.stats().queries.total.count == 1
    reading.admin.stats(reset=True)
    assert reading.admin.stats().queries.total.count == 0
    reading.close()
    store._storage._backend.database.writable = True
    assert not ledger_of(path).exists()


def test_nothing_is_counted_when_that_is_switched_off(open_store: OpenStore, path: Path) -> None:
    with open_store(collect_stats=False) as store:
        store.save("text")
        store.search("text")
        stats = store.admin.stats()
    assert not stats.collecting
    assert stats.memories == 1
    assert (stats.queries.total.count, stats.saves.created) == (0, 0)
    assert not ledger_of(path).exists()


def test_whoever_may_not_read_the_store_may_not_read_what_was_asked(
    open_store: OpenStore, path: Path
) -> None:
    open_store().close()
    path.chmod(0o600)
    with open_store() as store:
        store.search("a private question")
    assert stat.S_IMODE(ledger_of(path).stat().st_mode) == 0o600


# --- Spaces, reset, forgetting ----------------------------------------------------------------


def test_no_space_sees_what_was_asked_in_another(open_store: OpenStore) -> None:
    with open_store() as store:
        store.search("a secret", space="theirs")
        store.search("mine")
        assert store.admin.stats().queries.total.count == 1
    with open_store() as store:
        stats = store.admin.stats()
        assert [each.query for each in stats.queries.slowest] == ["mine"]
        assert store.admin.stats(space="theirs").queries.total.count == 1


def test_reset_tells_the_last_state_and_starts_anew_for_the_space(open_store: OpenStore) -> None:
    store = open_store()
    store.save("text")
    store.search("text")
    store.search("text", space="other")
    last = store.admin.stats(reset=True)
    assert last.queries.total.count == 1
    stats = store.admin.stats()
    assert (stats.queries.total.count, stats.saves.created) == (0, 0)
    assert stats.queries.slowest == ()
    assert stats.memories == 1
    assert last.since is None or (stats.since is not None and stats.since > last.since)
    assert store.admin.stats(space="other").queries.total.count == 1


def test_clearing_queries_leaves_no_byte_of_them_and_keeps_the_counts(
    open_store: OpenStore, path: Path
) -> None:
    store, other = open_store(), open_store()
    other.search("the launch code is 4711")  # still in the memory of another process
    store.search("where is the launch code 4711?")
    store._engine.observer.flush()
    assert b"4711" in ledger_of(path).read_bytes()
    store._engine.observer.clear_queries()
    assert b"4711" not in ledger_of(path).read_bytes()
    other._engine.observer.flush()
    assert b"4711" not in ledger_of(path).read_bytes()
    stats = store.admin.stats()
    assert stats.queries.total.count == 2
    assert stats.queries.slowest == ()
    store.search("asked later")
    assert [each.query for each in store.admin.stats().queries.slowest] == ["asked later"]


def test_a_hard_forget_leaves_no_query_about_it(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    text = "The vault opens with the word Zebrafink."
    memory_id = store.save(text).memory_id
    store.search(text)
    store._engine.observer.flush()
    store.forget(memory_id, hard=True)
    store.close()
    for file in path.parent.glob("memory.db*"):
        assert b"Zebrafink" not in file.read_bytes(), file.name


def test_queries_that_cannot_be_cleared_take_the_ledger_with_them(path: Path) -> None:
    path.touch()
    ledger = SqliteLedger(ledger_of(path), path)
    assert ledger.add(Tally(counts={Count("s", "saves", "created"): 1}))
    content = bytearray(ledger_of(path).read_bytes())
    content[100:] = b"4711" * ((len(content) - 100) // 4)
    ledger_of(path).write_bytes(bytes(content))
    ledger.clear_queries()
    assert b"4711" not in ledger_of(path).read_bytes()


def test_a_flush_that_finds_the_ledger_held_is_tried_again(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "_FLUSH_SECONDS", 0.1)
    monkeypatch.setattr(observing, "_FLUSH_ATTEMPTS", 1000)
    monkeypatch.setattr(ledger, "_BUSY_MILLISECONDS", 1)
    store, other = open_store(), open_store()
    store.admin.stats(reset=True)
    holder = apsw.Connection(f"{path}-stats")
    holder.execute("BEGIN EXCLUSIVE")
    store.search("anything")
    time.sleep(0.25)  # the first attempt, which must fail
    holder.execute("ROLLBACK")
    holder.close()
    deadline = time.monotonic() + 20
    while other.admin.stats().queries.total.count != 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
