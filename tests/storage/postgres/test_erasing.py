"""A hard forget leaves nothing in the tables, and says what it cannot prove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.interfaces.mcp.answer_text import _forgotten
from byheart.model import Removal
from byheart.settings import load_settings
from byheart.storage.postgres import erasing, repairs
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore

SETTINGS = load_settings({"embedding_provider": "hash"})
TEXT = "The vermilion zeppelin lands on Thursday at the quarry behind Oakley."


def erase(store: MemoryStore, memory_id: str) -> Removal:
    removal = store.forget(memory_id, hard=True).removal
    assert removal is not None
    return removal


def tables_with(backend: PostgresBackend, word: str) -> list[str]:
    """Name the tables of the store, and the planner's samples, that have a word in any column."""
    named = []
    with backend.database.connected() as raw:
        rows = raw.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = ANY($1)",
            (backend.database.schemas,),
        ).fetchall()
        for (table,) in [*rows, ("pg_stats",)]:
            row = raw.execute(
                f"SELECT count(*) FROM {table} t WHERE t::text ILIKE $1", (f"%{word}%",)
            ).fetchone()
            named += [table] if row != (0,) else []
    return named


def test_no_table_has_a_word_of_an_erased_text(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    saved = store.save(TEXT, tags=["vermilion"], title="Vermilion", session_id="vermilion-session")
    store.save("Something else about the quarry.")
    with backend.database.connected() as raw:
        raw.execute("ANALYZE")
    held = {each.rpartition(".")[2] for each in tables_with(backend, "vermilion")}
    assert held >= {"chunks", "memories", "tags", "vocabulary"}
    assert "pg_stats" not in held, "statistics of texts are off"
    removal = erase(store, saved.memory_id)
    assert removal.traces == ()
    assert (removal.memories, removal.texts, removal.chunks) == (1, 1, 1)
    assert tables_with(backend, "vermilion") == []
    assert tables_with(backend, "quarry") != [], "another memory has this word"


def test_the_answer_names_the_places_searched_and_the_places_out_of_reach(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    removal = erase(store, store.save(TEXT).memory_id)
    schema, index = backend.database.schema, backend.index_path("default")
    assert {f"table {schema}_01.chunks", f"table {schema}.store", str(index)} <= set(
        removal.files_searched
    )
    assert "statistics of the planner" in removal.files_searched
    assert removal.unproved is not None
    assert "write-ahead log" in removal.unproved
    said = _forgotten(
        {
            "count": 1,
            "hard": True,
            "dry_run": False,
            "removal": {"unproved": str(removal.unproved)},
        }
    )
    assert "write-ahead log" in said


def test_a_copy_of_the_text_that_nobody_removed_is_a_trace(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    saved = store.save(TEXT)
    with backend.writing("default") as connection:
        connection.run("INSERT INTO store (key, value) VALUES ('copy', ?)", (TEXT.upper(),))
    assert erase(store, saved.memory_id).traces == (f"table {backend.database.schema}.store",)
    [finding] = [each for each in store.admin.doctor() if each.check == "forgetting"]
    assert not finding.ok


def test_the_bytes_of_slow_queries_are_searched(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    saved = store.save(TEXT)
    slowest = f"{backend.database.schema}.ledger_slowest"
    with backend.database.connected() as raw:
        raw.execute(
            f"INSERT INTO {slowest} (space, kind, elapsed_ms, at, query) "
            "VALUES ('other', 'search', 1, 1, $1)",
            (TEXT.encode(),),
        )
    with backend.database.reading(None) as connection:
        assert erasing._find(connection, slowest, [TEXT[:20], "absent"]) == {TEXT[:20]}
    named = {each.rpartition(".")[2] for each in erase(store, saved.memory_id).files_searched}
    assert "ledger_slowest" in named
    assert not named & {"chunk_words", "vocabulary", "vectors", "published_index_parts"}


def test_a_text_that_another_memory_has_is_no_trace(store: MemoryStore) -> None:
    saved = store.save(TEXT)
    store.save(f"{TEXT} And so on.")
    assert erase(store, saved.memory_id).traces == ()


def test_an_erasure_that_others_kept_from_its_end_is_finished_by_the_doctor(
    store: MemoryStore, backend: PostgresBackend, tmp_path: Path
) -> None:
    saved = store.save(TEXT)
    hurried = PostgresBackend(backend.database.address, tmp_path, busy_timeout_seconds=0.3)
    with backend.database.connected() as other:
        other.execute("BEGIN")
        table = f"{backend.database.schema}_01.chunk_words"
        other.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
        removal = erase(MemoryStore(SqlStorage(hurried), HashEmbedder(), SETTINGS), saved.memory_id)
    assert (removal.memories, removal.traces) == (1, ())
    assert "chunk_words locked" in str(removal.unfinished)
    hurried.close()
    [finding] = [each for each in store.admin.doctor() if each.check == "forgetting"]
    assert not finding.ok
    fixed = store.admin.doctor(fix=True)
    assert [each.fixed for each in fixed if each.check == "forgetting"] == [True]
    assert all(each.ok for each in store.admin.doctor())


def test_a_vacuum_that_the_role_may_not_run_is_not_done(backend: PostgresBackend) -> None:
    database = backend.database
    tables = [f"{database.schema}.store"]
    assert repairs.vacuum(database, tables) is None
    with database.connected() as raw:
        raw.execute(f"GRANT USAGE ON SCHEMA {database.schema} TO pg_monitor")
        raw.execute("SET ROLE pg_monitor")
    assert "only their owner" in str(repairs.vacuum(database, tables))
    with database.connected() as raw:
        raw.execute("RESET ROLE")


def test_a_large_keyword_index_is_said_to_keep_words(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.save(TEXT)
    monkeypatch.setattr(erasing, "_LARGE_INDEX_BYTES", 0)
    assert "REINDEX INDEX CONCURRENTLY" in str(erase(store, saved.memory_id).unproved)


def test_a_backup_is_an_export_of_all_spaces_with_vectors(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.save(TEXT)
    store.save("In another space.", space="other")
    backup = store.admin.backup(tmp_path / "copy.jsonl")
    assert backup.kind == "export"
    lines = [json.loads(line) for line in (tmp_path / "copy.jsonl").read_bytes().splitlines()]
    assert {each["space"] for each in lines if "content" in each} == {"default", "other"}
    assert backup.size_bytes == (tmp_path / "copy.jsonl").stat().st_size
