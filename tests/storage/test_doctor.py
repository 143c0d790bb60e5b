"""The doctor, check by check: each is shown a store that is really damaged in its way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from byheart.index.file import read as read_index
from byheart.model import Finding
from byheart.settings import default_config_path
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

OpenStore = Callable[..., MemoryStore]
TEXTS = [f"# Title {n}\n\nMemory {n} is about topic {n % 5}." for n in range(30)]


@pytest.fixture
def saved(open_store: OpenStore, path: Path) -> Path:
    """Give the file of a closed store that holds thirty memories."""
    store = open_store()
    store.save_many(
        {"content": text, "title": f"Note {n}", "tags": ["all"], "entities": [f"Entity {n}"]}
        for n, text in enumerate(TEXTS)
    )
    store.close()
    return path


def damage(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def wrong(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings if not finding.ok}


def look(findings: tuple[Finding, ...], check: str) -> Finding:
    [finding] = [each for each in findings if each.check == check]
    return finding


def is_found_and_fixed(store: MemoryStore, *checks: str) -> Finding:
    """See that the checks, and no others, fail with a hint, and that a fix mends all of it."""
    found = wrong(store.admin.doctor())
    assert set(found) == set(checks)
    assert all("store.admin.doctor" in each.hint for each in found.values())
    after = store.admin.doctor(fix=True)
    assert wrong(after) == {}
    for check in checks:
        mended = look(after, check)
        assert mended.fixed
        assert mended.message == f"fixed: {found[check].message}"
    again = store.admin.doctor()
    assert wrong(again) == {}
    assert not any(finding.fixed for finding in again)
    return found[checks[0]]


def test_a_sound_store_has_nothing_to_mend(saved: Path, open_store: OpenStore) -> None:
    findings = open_store().admin.doctor(fix=True)
    assert all(finding.ok and not finding.fixed for finding in findings)
    assert all(finding.message for finding in findings)
    assert len({finding.check for finding in findings}) == len(findings)


# --- The file and what SQLite derives ---------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunk_words_data SET block = zeroblob(length(block)) WHERE id > 10",
        "DELETE FROM chunk_words_data WHERE id > 10",
    ],
)
def test_a_damaged_keyword_index_is_mended_without_a_backup(
    saved: Path, open_store: OpenStore, statement: str
) -> None:
    damage(saved, statement)
    store = open_store()
    finding = wrong(store.admin.doctor())["database file"]
    assert "texts and vectors are not" in finding.message
    assert finding.hint == "run: store.admin.doctor(rebuild=True)"
    assert wrong(store.admin.doctor(rebuild=True)) == {}
    assert store.search("memory", raw=True, limit=50).total_results == 30


def test_a_damaged_keyword_index_is_mended_by_a_fix_too(saved: Path, open_store: OpenStore) -> None:
    damage(saved, "DELETE FROM chunk_words_data WHERE id > 10")
    store = open_store()
    finding = is_found_and_fixed(store, "database file")
    assert "the keyword index is damaged" in finding.message
    assert store.search("memory", raw=True, limit=50).total_results == 30


def test_an_index_that_lost_rows_is_built_anew(saved: Path, open_store: OpenStore) -> None:
    connection = apsw.Connection(str(saved))
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'memories_by_time'").get
    connection.execute("PRAGMA writable_schema = ON")
    # The index goes on being read, but three rows were written without it.
    connection.execute(
        "UPDATE sqlite_schema SET sql = ? WHERE name = 'memories_by_time'",
        (f"{sql} WHERE memory_no > 3",),
    )
    connection.close()
    damage(saved, "REINDEX memories_by_time")
    connection = apsw.Connection(str(saved))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'memories_by_time'", (sql,))
    connection.close()
    store = open_store()
    finding = wrong(store.admin.doctor())["database file"]
    assert "an index of the database does not agree with its table" in finding.message
    assert finding.hint == "run: store.admin.doctor(rebuild=True)"
    assert wrong(store.admin.doctor(rebuild=True)) == {}


# --- The rows ---------------------------------------------------------------------------------


def test_missing_keyword_entries_are_made(saved: Path, open_store: OpenStore) -> None:
    damage(saved, "DELETE FROM chunk_words WHERE rowid <= 3")
    store = open_store()
    finding = is_found_and_fixed(store, "keyword index")
    assert finding.message.startswith("3 chunks are missing")
    assert store.search("memory", raw=True, limit=50).total_results == 30


def test_keyword_entries_of_no_chunk_are_removed(saved: Path, open_store: OpenStore) -> None:
    damage(saved, "INSERT INTO chunk_words (rowid, content) VALUES (999, 'ghost')")
    finding = is_found_and_fixed(open_store(), "keyword index leftovers")
    assert finding.message.startswith("1 keyword entries")
    left = apsw.Connection(str(saved)).execute("SELECT max(rowid) FROM chunk_words").get
    assert left < 999


@pytest.mark.parametrize("column", ["title", "summary"])
def test_keyword_entries_of_another_title_or_summary_show(
    saved: Path, open_store: OpenStore, column: str
) -> None:
    damage(saved, f"UPDATE memories SET {column} = 'Something else' WHERE memory_no = 7")
    finding = is_found_and_fixed(open_store(), "keyword index as saved")
    assert finding.message.startswith("1 of 30 chunks")


def test_keyword_entries_of_other_headings_show(saved: Path, open_store: OpenStore) -> None:
    damage(saved, """UPDATE chunks SET headings = '[[1, "Renamed 4", 0]]' WHERE chunk_no = 5""")
    store = open_store()
    finding = is_found_and_fixed(store, "keyword index as saved")
    assert finding.message.startswith("1 of 30 chunks")
    assert store.search("{headings}: renamed", raw=True).total_results == 1


def test_chunks_that_nobody_would_ever_embed_are_queued_and_embedded(
    saved: Path, open_store: OpenStore
) -> None:
    damage(saved, "DELETE FROM vectors WHERE chunk_no <= 4")
    store = open_store()
    is_found_and_fixed(store, "vectors accounted for")
    assert store.admin.stats().vectors == 30


def test_vectors_of_a_wrong_length_are_made_again(saved: Path, open_store: OpenStore) -> None:
    damage(saved, "UPDATE vectors SET embedding = x'00000000' WHERE chunk_no = 4")
    saved.with_name("memory.db-index").unlink(missing_ok=True)
    store = open_store()
    found = wrong(store.admin.doctor())
    assert {"vector sizes"} <= set(found) <= {"vector sizes", "search index"}
    assert wrong(store.admin.doctor(fix=True)) == {}
    assert store.search("memory 3", mode="vector", limit=50).total_results == 30


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_counts SET memories = memories + 7",
        "DELETE FROM memory_counts",
        "INSERT INTO memory_counts VALUES ('elsewhere', 0, 'fact', 1)",
    ],
)
def test_wrong_counts_of_memories_are_made_again(
    saved: Path, open_store: OpenStore, statement: str
) -> None:
    damage(saved, statement)
    store = open_store()
    is_found_and_fixed(store, "memory counts")
    assert store.list(limit=1).total == 30
    assert store.list(limit=1, space="elsewhere").total == 0


def test_entities_that_nothing_names_are_removed(saved: Path, open_store: OpenStore) -> None:
    damage(saved, "INSERT INTO entities (space, key, name) VALUES ('default', 'x', 'X')")
    store = open_store()
    finding = is_found_and_fixed(store, "entities in use")
    assert finding.message.startswith("1 entities")
    assert "X" not in {each.name for each in store.entities.list().entities}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tags VALUES ('orphan', 999)",
        "INSERT INTO entity_aliases (space, key, name, entity_no) VALUES ('s', 'k', 'K', 999)",
        "INSERT INTO history (memory_no, operation, at, who) VALUES (999, 'update', 0, 'me')",
        "INSERT INTO memory_entities VALUES (999, 1)",
    ],
)
def test_what_belongs_to_nothing_is_removed(
    saved: Path, open_store: OpenStore, statement: str
) -> None:
    damage(saved, "PRAGMA foreign_keys = OFF", statement)
    finding = is_found_and_fixed(open_store(), "foreign keys")
    assert finding.message.startswith("1 rows of ")


def test_a_text_that_lost_its_memory_is_left_for_a_backup(
    saved: Path, open_store: OpenStore
) -> None:
    damage(saved, "PRAGMA foreign_keys = OFF", "DELETE FROM memories WHERE memory_no = 3")
    store = open_store()
    chunks = store._storage.inventory("default").index.chunks
    assert "backup" in wrong(store.admin.doctor(fix=True))["foreign keys"].hint
    assert store._storage.inventory("default").index.chunks <= chunks
    [left] = apsw.Connection(str(saved)).execute("SELECT 1 FROM chunks WHERE memory_no = 3")
    assert left == (1,)


def test_a_memory_without_history_gets_its_beginning_back(
    saved: Path, open_store: OpenStore
) -> None:
    damage(saved, "DELETE FROM history WHERE memory_no = 2")
    store = open_store()
    is_found_and_fixed(store, "history")
    memory_id = (
        apsw.Connection(str(saved))
        .execute("SELECT memory_id FROM memories WHERE memory_no = 2")
        .get
    )
    [entry] = store.history(memory_id)
    assert (entry.operation, entry.at) == ("create", store.get(memory_id).created_at)


def test_an_earlier_text_of_a_memory_that_is_gone_shows(saved: Path, open_store: OpenStore) -> None:
    damage(
        saved,
        "UPDATE memories SET version_of = 'mem_gone', memory_id = 'mem_gone@1', replaced_at = 9 "
        "WHERE memory_no = 4",
    )
    finding = wrong(open_store().admin.doctor())["earlier texts"]
    assert finding.message == "1 earlier texts belong to memories that are gone"
    assert finding.hint == 'read one with: store.get("mem_gone@1")'


def test_a_memory_superseded_by_one_that_is_gone_is_told_of(
    saved: Path, open_store: OpenStore
) -> None:
    damage(saved, "UPDATE memories SET superseded_by = 'mem_gone' WHERE memory_no = 4")
    finding = look(open_store().admin.doctor(), "superseded memories")
    assert finding.ok
    assert finding.message.startswith("1 rank below memories that superseded them")
    assert 'store.supersede("mem_' in finding.hint


def test_a_memory_superseded_by_one_that_is_forgotten_is_told_of(store: MemoryStore) -> None:
    old, new = (store.save(f"The quokka {does}").memory_id for does in ("smiles", "laughs"))
    store.supersede(old, by=new)
    assert look(store.admin.doctor(), "superseded memories").message == "in order"
    store.forget(new)
    assert old in look(store.admin.doctor(), "superseded memories").hint


def test_vectors_of_other_models_are_counted_with_what_they_are_for(
    saved: Path, open_store: OpenStore
) -> None:
    damage(
        saved,
        "INSERT INTO models (model_no, name, dimensions) VALUES (7, 'old', 4), (8, 'odd', 4)",
        "INSERT INTO store VALUES ('previous_model', 'old')",
        "INSERT INTO vectors (chunk_no, model_no, window_index, text_hash, embedding) "
        "SELECT chunk_no, model_no, 0, x'00', zeroblob(16) FROM chunks, models WHERE model_no > 6",
    )
    finding = look(open_store().admin.doctor(), "vectors of other models")
    assert finding.ok
    assert "30 (0.0 MB) of old, which the store can go back to" in finding.message
    assert "30 (0.0 MB) of odd, which is not used" in finding.message
    assert "store.admin.doctor(optimize=True)" in finding.hint


def test_expired_and_forgotten_memories_are_counted(open_store: OpenStore) -> None:
    store = open_store()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    store.save("it ran out", expires_at=yesterday)
    store.forget(store.save("it was forgotten").memory_id)
    findings = store.admin.doctor()
    assert look(findings, "expired memories").message.startswith(
        f"1 have expired, the first on {yesterday:%Y-%m-%d}"
    )
    assert look(findings, "forgotten memories").message == "1 are hidden and can be restored"
    assert wrong(findings) == {}


# --- Beside the file --------------------------------------------------------------------------


def test_a_damaged_index_file_is_written_anew(saved: Path, open_store: OpenStore) -> None:
    store = open_store()
    store.admin.doctor(rebuild=True)
    store.close()
    index = saved.with_name("memory.db-index")
    content = bytearray(index.read_bytes())
    content[-40] ^= 0xFF
    index.write_bytes(bytes(content))
    finding = is_found_and_fixed(open_store(), "search index")
    assert "is damaged" in finding.message
    assert read_index(index, verify=True) is not None


def test_an_index_file_of_another_version_is_in_order_and_written_anew_if_asked(
    saved: Path, open_store: OpenStore
) -> None:
    index = saved.with_name("memory.db-index")
    index.write_bytes(b"BYHEART INDEX 1\n" + bytes(100))
    store = open_store()
    finding = look(store.admin.doctor(), "search index")
    assert finding.ok
    assert "is of another version of Byheart" in finding.message
    assert look(store.admin.doctor(fix=True), "search index").fixed
    assert read_index(index, verify=True) is not None


def test_too_little_space_on_the_disk_shows(
    saved: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    store = open_store()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 5_000_000))
    finding = wrong(store.admin.doctor())["disk space"]
    assert finding.message == "5 MB free, less than 200 MB"
    assert "saves fail when the disk is full" in finding.hint
    size = 300_000_000
    with saved.open("r+b") as file:  # sparse: it takes no room
        file.truncate(size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, size - 1))
    finding = look(store.admin.doctor(), "disk space")
    assert finding.message == "0.3 GB free; compacting the store needs 0.3 GB"


READER = """
import apsw, sys, time
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM memories").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


def test_a_log_that_a_reader_keeps_large_names_the_reader_and_is_cut_when_it_ends(
    saved: Path, open_store: OpenStore
) -> None:
    store = open_store()
    store.save("something new")
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(saved)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    damage(saved, "INSERT INTO store VALUES ('large', printf('%.*c', 70000000, 'x'))")
    try:
        finding = wrong(store.admin.doctor())["write-ahead log"]
        assert "kept from being written back" in finding.message
        if sys.platform == "linux":
            assert f"(process {reader.pid})" in finding.message
        assert finding.hint == "end that process, then run: store.admin.doctor(fix=True)"
    finally:
        reader.communicate("")
    assert wrong(store.admin.doctor(fix=True)) == {}
    assert saved.with_name("memory.db-wal").stat().st_size < 1_000_000


def test_backups_that_are_no_longer_needed_are_told_of_and_kept(
    saved: Path, open_store: OpenStore
) -> None:
    schema = SqliteStorage(saved)._backend.schema_version
    old, present, recent = (
        saved.with_name(f"memory.db.backup-schema-{version}") for version in (0, schema, schema - 1)
    )
    for copy in (old, present, recent):
        copy.write_bytes(b"x" * 1000)
    month_ago = time.time() - 31 * 24 * 3600
    os.utime(old, (month_ago, month_ago))
    finding = look(open_store().admin.doctor(fix=True), "backups")
    assert finding.ok
    assert old.name in finding.message
    assert present.name in finding.message
    assert recent.name + "," not in finding.message + ","
    assert old.exists()


def test_files_left_half_written_are_removed_unless_somebody_may_be_at_them(
    saved: Path, open_store: OpenStore
) -> None:
    left = [
        saved.with_name("memory.db.backup-schema-1.partial"),
        saved.with_name("memory.db-index.abcdefgh"),
    ]
    for file in left:
        file.write_bytes(b"half")
        os.utime(file, (time.time() - 7200, time.time() - 7200))
    being_written = saved.with_name("memory.db-index.ijklmnop")
    being_written.write_bytes(b"half")
    other = saved.with_name("memory.db-index.notes.txt")
    other.write_text("not ours")
    os.utime(other, (0, 0))
    finding = is_found_and_fixed(open_store(), "leftover files")
    assert finding.message.startswith("2 were left")
    assert not any(file.exists() for file in left)
    assert being_written.exists()
    assert other.exists()


# --- Settings and model -----------------------------------------------------------------------


def test_a_variable_that_overrules_the_config_file_shows(
    saved: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    default_config_path().write_text('[memory]\nspace = "file"\nsnippet_chars = 300\n')
    assert look(store.admin.doctor(), "settings").message == "in order"
    monkeypatch.setenv("BYHEART_SPACE", "env")
    monkeypatch.setenv("BYHEART_SNIPPET_CHARS", "300")  # the same: nothing to tell
    monkeypatch.setenv("BYHEART_CHUNK_TOKEN", "300")
    finding = look(store.admin.doctor(), "settings")
    assert finding.ok
    assert finding.message == (
        f"BYHEART_SPACE wins over space in {default_config_path()}; "
        "the variable BYHEART_CHUNK_TOKEN is no setting: did you mean BYHEART_CHUNK_TOKENS?"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[memory", "is not valid TOML"),
        ('[memory]\nspaec = "x"\n', "there is no setting 'spaec'"),
        ("[memory]\nchunk_tokens = 1\n", "chunk_tokens = 1 is not allowed"),
    ],
)
def test_a_config_file_that_cannot_be_used_shows(
    saved: Path, open_store: OpenStore, content: str, said: str
) -> None:
    store = open_store()
    default_config_path().write_text(content)
    finding = wrong(store.admin.doctor())["settings"]
    assert said in finding.message
    assert finding.hint


@pytest.mark.model
def test_model_files_are_read_and_compared(
    saved: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    from byheart.settings import load_settings

    cache = tmp_path / "cache"
    shutil.copytree(load_settings().cache_dir / "models", cache / "models")
    store = open_store(embedding_provider="onnx", cache_dir=cache)
    finding = look(store.admin.doctor(), "model files")
    assert finding.ok
    assert finding.message.startswith("all-MiniLM-L6-v2-int8, ")
    [tokenizer] = cache.glob("models/*all-MiniLM-L6-v2/tokenizer.json")
    content = bytearray(tokenizer.read_bytes())
    content[-10] ^= 1
    tokenizer.write_bytes(bytes(content))
    finding = wrong(store.admin.doctor())["model files"]
    assert finding.message.endswith("damaged: tokenizer.json")
    assert finding.hint == "get it again with: store.admin.doctor(fix=True)"


def test_a_model_that_is_not_there_is_told_of(
    saved: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store(embedding_provider="onnx", cache_dir=tmp_path / "empty")
    finding = look(store.admin.doctor(), "model files")
    assert "it is not in the cache" in finding.message
    assert finding.hint == "get it with: byheart model download"


def test_optimizing_gives_free_pages_back(open_store: OpenStore, saved: Path) -> None:
    damage(saved, "CREATE TABLE room AS SELECT randomblob(1000000)", "DROP TABLE room")
    size = saved.stat().st_size
    assert free_pages(saved) > 200
    store = open_store()
    store.admin.doctor(optimize=True)
    store.close()
    assert free_pages(saved) == 0
    assert saved.stat().st_size < size - 900_000


def free_pages(path: Path) -> int:
    connection = apsw.Connection(str(path))
    [(count,)] = connection.execute("PRAGMA freelist_count")
    connection.close()
    return int(count)
