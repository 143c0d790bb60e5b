"""Benching: the store is asked what it holds, and what is wrong with it is named in one line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from byheart.contracts import Count, Tally
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import InvalidInput
from byheart.model import Bench, BenchFigures, BenchRun
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.storage.sqlite.ledger import SqliteLedger
from byheart.store import MemoryStore
from byheart.upkeep.bench import UNRELATED, compare
from tests.conftest import OpenStore, WatchedEmbedder

SUBJECTS = ("garden", "harbour", "library", "workshop", "kitchen", "station", "museum", "orchard")
DEEDS = ("opened", "painted", "measured", "repaired", "visited")


@pytest.fixture
def filled(open_store: OpenStore) -> MemoryStore:
    store = open_store()
    store.save_many(
        {"content": f"Clerk {number} of the {subject} {deed} gate {number * 7} on day {number}."}
        for number, (subject, deed) in enumerate(
            (subject, deed) for subject in SUBJECTS for deed in DEEDS
        )
    )
    return store


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def run_of(**changed: float) -> BenchRun:
    figures = BenchFigures("hybrid", 50, 0.96, 0.9, 0, 16, 0, 10.0, 20.0)
    return BenchRun(
        datetime(2026, 1, 1, tzinfo=UTC),
        "default",
        1000,
        "m",
        0,
        10,
        (replace(figures, **changed),),
    )


# --- A sound store ----------------------------------------------------------------------------


def test_a_sound_store_finds_what_it_holds_in_every_mode(filled: MemoryStore) -> None:
    bench = filled.admin.bench(questions=20)
    assert bench.ok
    assert bench.message == "Nothing is wrong."
    assert [each.mode for each in bench.run.figures] == ["hybrid", "vector", "fts"]
    for figures in bench.run.figures:
        assert figures.questions == 20
        assert figures.recall >= 0.9
        assert 0 < figures.mrr <= figures.recall
        assert figures.unrelated == len(UNRELATED)
        assert figures.called_answered == 0
        assert 0 < figures.p50_ms <= figures.p95_ms


def test_the_same_seed_asks_the_same(filled: MemoryStore) -> None:
    def found(seed: int) -> list[tuple[float, float, int]]:
        figures = filled.admin.bench(questions=12, seed=seed).run.figures
        return [(each.recall, each.mrr, each.called_none) for each in figures]

    assert found(3) == found(3)


def test_an_empty_space_has_nothing_to_be_asked(store: MemoryStore) -> None:
    bench = store.admin.bench()
    assert bench.ok
    assert bench.run.figures == ()
    assert "nothing to ask" in bench.message
    assert bench.runs_kept == 0


@pytest.mark.parametrize("given", [{"questions": 0}, {"questions": 1001}, {"k": 0}, {"seed": -1}])
def test_numbers_out_of_range_are_refused(store: MemoryStore, given: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        store.admin.bench(**given)


def test_nothing_is_counted_remembered_or_noted(filled: MemoryStore, path: Path) -> None:
    filled.search("harbour", session_id="s1")
    filled._storage.settle()
    before = filled.admin.stats()
    notes = "SELECT count(*), max(chunk_no), group_concat(session_id) FROM emitted"
    accesses = "SELECT sum(access_count) FROM memories"
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    held = connection.execute(notes).get, connection.execute(accesses).get
    filled.admin.bench(questions=10)
    assert (connection.execute(notes).get, connection.execute(accesses).get) == held
    connection.close()
    after = filled.admin.stats()
    assert after.queries.total.count == before.queries.total.count
    assert after.caches == before.caches


# --- The history ------------------------------------------------------------------------------


def test_a_run_is_compared_with_the_one_before(filled: MemoryStore, open_store: OpenStore) -> None:
    first = filled.admin.bench(questions=5)
    assert (first.before, first.runs_kept) == (None, 1)
    second = open_store().admin.bench(questions=5)  # as another process would
    assert second.before == first.run
    assert second.runs_kept == 2


def test_spaces_have_histories_of_their_own(filled: MemoryStore) -> None:
    filled.save("The lighthouse keeper of the other space counted eleven ships.", space="other")
    filled.admin.bench(questions=5)
    assert filled.admin.bench(questions=5, space="other").before is None


def test_no_history_is_kept_where_nothing_is_to_be_counted(open_store: OpenStore) -> None:
    store = open_store(collect_stats=False)
    store.save("The harbour master of the old town counted eleven ships.")
    assert store.admin.bench(questions=1).runs_kept == 0
    assert store.admin.bench(questions=1).before is None


def test_a_reset_of_stats_leaves_the_history(filled: MemoryStore) -> None:
    first = filled.admin.bench(questions=5)
    filled.admin.stats(reset=True)
    assert filled.admin.bench(questions=5).before == first.run


# --- What is wrong ----------------------------------------------------------------------------


def test_missing_vectors_are_named(filled: MemoryStore, path: Path) -> None:
    change(path, "DELETE FROM vectors WHERE vector_no % 2 = 0")
    bench = filled.admin.bench(questions=5)
    assert not bench.ok
    assert bench.message.startswith("Wrong: ")
    assert "20 chunks have neither vectors" in bench.message
    assert "\n" not in bench.message


def test_vectors_that_wait_are_named(open_store: OpenStore) -> None:
    embedder = WatchedEmbedder()
    store = open_store(embedder=embedder)
    embedder.down = True
    store.save("The harbour master of the old town counted eleven ships.")
    embedder.down = False
    bench = store.admin.bench(questions=1)
    assert not bench.ok
    assert "vectors are missing for 1 chunk" in bench.message
    assert "1 chunks" not in bench.message


def test_a_stale_keyword_entry_is_named(filled: MemoryStore, path: Path) -> None:
    change(
        path,
        "UPDATE chunk_words SET title = '', summary = '', headings = '', content = 'quite other' "
        "WHERE rowid = (SELECT min(chunk_no) FROM chunks)",
    )
    bench = filled.admin.bench(questions=5)
    assert not bench.ok
    assert "keyword index as saved" in bench.message


def test_a_missing_keyword_entry_is_named(filled: MemoryStore, path: Path) -> None:
    change(path, "DELETE FROM chunk_words WHERE rowid = (SELECT min(chunk_no) FROM chunks)")
    bench = filled.admin.bench(questions=5)
    assert not bench.ok
    assert "1 chunks are missing from the keyword index" in bench.message


def test_another_model_is_named_and_words_are_still_tried(
    filled: MemoryStore, open_store: OpenStore
) -> None:
    other = open_store(embedder=WatchedEmbedder(name="another"))
    bench = other.admin.bench(questions=5)
    assert not bench.ok
    assert "another" in bench.message
    assert [each.mode for each in bench.run.figures] == ["fts"]


def bench_with_index_file(path: Path, content: bytes) -> Bench:
    path.with_name(path.name + "-index").write_bytes(content)
    # Opened here, so that nothing has replaced the file before.
    with MemoryStore(SqliteStorage(path), HashEmbedder(), load_settings()) as store:
        return store.admin.bench(questions=5)


def test_a_damaged_index_file_is_named(filled: MemoryStore, path: Path) -> None:
    filled.close()
    bench = bench_with_index_file(path, b"not an index")
    assert not bench.ok
    assert "search index" in bench.message


def test_an_index_file_of_another_version_is_no_reason_for_alarm(
    filled: MemoryStore, path: Path
) -> None:
    filled.close()
    bench = bench_with_index_file(path, b"BYHEART INDEX 1\n" + bytes(100))
    assert bench.message == "Nothing is wrong."
    said = {each.check: each.message for each in bench.findings}
    assert "is of another version of Byheart" in said["search index"]


def test_a_much_slower_run_is_named_unless_the_store_has_grown() -> None:
    [finding] = compare(run_of(p50_ms=100.0), run_of())
    assert not finding.ok
    assert "100.0 ms" in finding.message
    assert list(compare(run_of(p50_ms=25.0), run_of())) == []
    assert list(compare(replace(run_of(p50_ms=100.0), chunks=5000), run_of())) == []


def test_a_run_that_finds_much_less_is_named() -> None:
    [finding] = compare(run_of(recall=0.7), run_of())
    assert "70%" in finding.message
    assert list(compare(run_of(recall=0.9), run_of())) == []
    [hardly] = compare(run_of(recall=0.3), None)
    assert not hardly.ok


@pytest.mark.parametrize("run", ["{}", "[]", '{"figures": [{"other": 1}]}', "no JSON"])
def test_runs_that_cannot_be_read_leave_the_counts_beside_them(path: Path, run: str) -> None:
    path.touch()
    ledger = SqliteLedger(path.with_name("stats"), path)
    assert ledger.read("s").runs == ()
    kept = BenchRun(datetime(2026, 1, 1, tzinfo=UTC), "s", 1, None, 0, 5, ())
    counted = {Count("s", "saves", "created"): 1.0}
    assert ledger.add(Tally(counted, runs=(kept, replace(kept, space="t"))))
    assert (ledger.read("s").runs, ledger.read("s").counts) == ((kept,), counted)
    change(path.with_name("stats"), f"UPDATE benches SET run = '{run}'")
    assert (ledger.read("s").runs, ledger.read("s").counts) == ((), counted)
