import ast
import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import pytest

from byheart.errors import StoreError, StoreTooNew
from byheart.model import GRANULARITIES, MODES, to_wire
from byheart.storage.sqlite import SqliteStorage, migrations
from byheart.storage.sqlite.database import Database
from byheart.storage.sqlite.schema import steps_in_python as steps
from byheart.store import MemoryStore

ADD_COLUMN = "ALTER TABLE memories ADD COLUMN mood TEXT; CREATE TABLE moods (mood TEXT);"
FAILS_HALFWAY = "CREATE TABLE moods (mood TEXT); INSERT INTO no_such_table VALUES (1);"


def version(path: Path) -> int:
    return int(apsw.Connection(str(path)).execute("PRAGMA user_version").get)


def tables(path: Path) -> set[str]:
    return {row[0] for row in apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema")}


def later_version(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Be a later version of Byheart, with one more schema change."""
    known = migrations.known_migrations()
    file = Path(tempfile.mkdtemp()) / "following.sql"
    file.write_text(script, encoding="utf-8")
    following = (known[-1][0] + 1, file)
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known, following])


def test_schema_changes_are_numbered_without_gaps() -> None:
    numbers = [number for number, _ in migrations.known_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_new_store_has_the_latest_schema(path: Path) -> None:
    storage = SqliteStorage(path)
    assert storage._backend.schema_version == version(path) == migrations.known_migrations()[-1][0]


def test_a_new_store_needs_no_backup(path: Path) -> None:
    SqliteStorage(path).close()
    assert not list(path.parent.glob("*backup*"))


def test_an_older_store_is_brought_up_after_a_backup(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStorage(path).close()
    before = version(path)
    later_version(monkeypatch, ADD_COLUMN)
    SqliteStorage(path).close()
    assert version(path) == before + 1
    assert "moods" in tables(path)
    [backup] = path.parent.glob("*backup*")
    assert version(backup) == before
    assert "moods" not in tables(backup)


def test_a_program_that_has_the_store_open_writes_nothing_once_a_newer_one_changed_it(
    open_store: Callable[..., MemoryStore], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    saved = store.save("said before the upgrade")
    later_version(monkeypatch, ADD_COLUMN)
    SqliteStorage(path).close()
    for write in (
        lambda: store.save("said by the old program"),
        lambda: store.forget(saved.memory_id),
    ):
        with pytest.raises(StoreTooNew, match="while it was open"):
            write()
    store.recall("upgrade")
    accesses = apsw.Connection(str(path)).execute("SELECT sum(access_count) FROM memories").get
    assert store.list().total == 1
    assert accesses == 0, "what was given out is not counted either"


def test_a_schema_change_that_fails_leaves_the_store_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStorage(path).close()
    before, held = version(path), tables(path)
    with monkeypatch.context() as later:
        later_version(later, FAILS_HALFWAY)
        with pytest.raises(StoreError):
            SqliteStorage(path)
    assert (version(path), tables(path)) == (before, held)
    SqliteStorage(path).close()


def test_a_store_keeps_its_journal_and_its_identity(path: Path) -> None:
    SqliteStorage(path).close()
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA journal_mode").get == "wal"
    identity = connection.execute("SELECT value FROM store WHERE key = 'store_id'").get
    connection.close()
    SqliteStorage(path).close()
    again = apsw.Connection(str(path)).execute("SELECT value FROM store WHERE key = 'store_id'").get
    assert again == identity


def test_every_connection_enforces_foreign_keys_and_texts_wait_for_the_disk(path: Path) -> None:
    storage = SqliteStorage(path)
    with (
        storage._backend.database.writing() as writer,
        storage._backend.database.reading() as reader,
    ):
        assert writer.execute("PRAGMA foreign_keys").get == 1
        assert reader.execute("PRAGMA foreign_keys").get == 1
        assert writer.execute("PRAGMA synchronous").get == 2  # FULL
        assert writer.execute("PRAGMA fullfsync").get == 1  # which only macOS asks for
        assert reader.execute("PRAGMA synchronous").get == 1  # NORMAL: it writes notes alone


# --- A store that the first version of Byheart wrote, and what that version read from it ---------

COMPAT = Path(__file__).parents[1] / "compat"


@pytest.fixture
def first(path: Path) -> list[dict[str, Any]]:
    """Put a store of schema 1 in place; give its memories as they were."""
    path.write_bytes(gzip.decompress((COMPAT / "schema-1.db.gz").read_bytes()))
    memories: list[dict[str, Any]] = json.loads((COMPAT / "schema-1.json").read_text("utf-8"))
    return memories


@pytest.fixture
def opened(
    open_store: Callable[..., MemoryStore], first: list[dict[str, Any]], make_watched: Any
) -> MemoryStore:
    return open_store(embedder=make_watched(16, "hash-16"))


def test_a_store_of_schema_1_keeps_every_memory(
    opened: MemoryStore, first: list[dict[str, Any]], path: Path
) -> None:
    assert version(path) == migrations.known_migrations()[-1][0]
    for memory in first:
        held = to_wire(opened.get(memory["memory_id"], space=memory["space"]))
        for name, value in memory.items():
            if name.endswith("_at") and value is not None:  # shown in milliseconds then
                assert held[name].startswith(value.removesuffix("Z"))
            else:
                assert held[name] == value, name
        assert (held["version"], held["replaced_at"], held["superseded_by"]) == (1, None, None)
        [entry] = opened.history(memory["memory_id"], space=memory["space"])
        assert (entry.operation, entry.version, entry.changes) == ("create", 1, {})


def test_a_store_of_schema_1_is_backed_up_as_it_was(opened: MemoryStore, path: Path) -> None:
    [backup] = path.parent.glob("*backup*")
    assert backup.name == f"{path.name}.backup-schema-1"
    assert version(backup) == 1
    held = apsw.Connection(str(backup)).execute("SELECT memory_id FROM memories").fetchall()
    assert len(held) == 7


def test_a_store_of_schema_1_is_searched_in_every_way(
    opened: MemoryStore, first: list[dict[str, Any]]
) -> None:
    report = next(each for each in first if each["kind"] == "report")
    for mode in MODES:
        for granularity in GRANULARITIES:
            found = opened.search("quokka seen", 10, mode, granularity).results
            assert report["memory_id"] in {hit.memory_id for hit in found}
            for filters in ({"session_id": "s1"}, {"agent_id": "coder"}, {"path": "notes/*"}):
                assert opened.search("quokka", 1, mode, granularity, **filters).results
    assert opened.search("anna", mode="fts", entities=["anna keller"], tags=["people"]).results
    assert opened.list().total == 5
    assert opened.list(include_expired=True).total == 6
    assert opened.status().index.pending_vectors == 1


def test_a_store_of_schema_1_lives_on(
    opened: MemoryStore, first: list[dict[str, Any]], path: Path
) -> None:
    anna = next(each for each in first if each["kind"] == "fact")
    name = anna["memory_id"]
    then = opened.get(name).created_at
    assert [hit.text_id for hit in opened.search("tea", mode="fts", as_of=then).results] == [name]
    assert opened.save(anna["content"], kind="fact").status == "unchanged"
    assert opened.admin.count_pending() == 1
    opened.update(name, content="Anna prefers coffee.")
    past = opened.search("tea", mode="fts", as_of=then).results
    assert [hit.text_id for hit in past] == [f"{name}@1"]
    assert opened.get(name).entities == ("Anna Keller",)
    opened.forget(name)
    opened.restore(name)
    assert opened.admin.count_pending() == 0
    assert all(finding.ok for finding in opened.admin.doctor() if finding.check != "disk space")
    done = opened.forget(name, hard=True)
    assert done.removal is not None
    assert done.removal.traces == ()
    assert [Path(each).name for each in done.removal.files_removed] == [
        f"{path.name}.backup-schema-1"
    ]


def test_two_who_open_a_store_of_schema_1_at_once_bring_it_up_once(
    first: list[dict[str, Any]], path: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        storages = list(pool.map(lambda _: SqliteStorage(path), range(4)))
    assert len({storage._backend.schema_version for storage in storages}) == 1
    assert len(list(path.parent.glob("*backup*"))) == 1
    for storage in storages:
        storage.close()


def test_a_store_of_schema_1_that_cannot_be_brought_up_stays_as_it_was(
    first: list[dict[str, Any]], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    with monkeypatch.context() as later:
        later_version(later, FAILS_HALFWAY)
        with pytest.raises(StoreError):
            SqliteStorage(path)
    assert version(path) == 1
    assert "tombstones" not in tables(path)
    assert len(path.read_bytes()) == len(before)
    SqliteStorage(path).close()
    assert "tombstones" in tables(path)


# --- A store from before memories had origins and folders were memories --------------------------


def test_a_store_of_schema_4_goes_on(
    open_store: Callable[..., MemoryStore], path: Path, make_watched: Any, tmp_path: Path
) -> None:
    path.write_bytes(gzip.decompress((COMPAT / "schema-4.db.gz").read_bytes()))
    before = json.loads((COMPAT / "schema-4.json").read_text("utf-8"))
    store = open_store(embedder=make_watched(16, "hash-16"))
    assert version(path) == migrations.known_migrations()[-1][0]
    for memory in before["memories"]:
        held = to_wire(store.get(memory["memory_id"]))
        # The language of a text counts as derived, and is not known yet.
        memory["derived"].append("language")
        assert {name: held[name] for name in memory} == memory
        assert held["language"] == "und"
    origins = {store.get(each["memory_id"]).origin for each in before["memories"]}
    assert origins == {"user", "agent", "tool", "file"}
    assert [turn.role for turn in store.sessions.transcript("s1").turns] == [
        "user",
        "assistant",
        "tool",
    ]
    assert store.context("s1", query="kestrel").receipt.items
    assert store.api_keys.check(before["token"]) is not None
    store.restore(before["forgotten"])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.md").write_text("The osprey fishes.\n")
    assert store.index(tmp_path / "folder").files_indexed == 1
    assert all(finding.ok for finding in store.admin.doctor() if finding.check != "disk space")


def test_words_beside_an_emoji_are_found_in_a_store_from_before_it_ended_them(
    open_store: Callable[..., MemoryStore], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        store.save("Release🧠done")
    # Later changes are in the file already: they are not applied a second time.
    known = [each for each in migrations.known_migrations() if each[0] <= 8]
    monkeypatch.setattr(migrations, "known_migrations", lambda: known)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM chunk_words")
    connection.execute("INSERT INTO chunk_words (rowid, content) VALUES (1, 'Release🧠done')")
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with open_store() as store:
        assert store.search("done", raw=True).total_results == 1
        assert all(finding.ok for finding in store.admin.doctor())


def words_outdated(path: Path) -> bool:
    found = "SELECT 1 FROM store WHERE key = 'words_outdated'"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        return connection.execute(found).get is not None


@pytest.fixture
def with_emoji(path: Path) -> Path:
    """Put a store of schema 4 in place whose words beside an emoji are written the old way."""
    path.write_bytes(gzip.decompress((COMPAT / "schema-4.db.gz").read_bytes()))
    text = "Release🧠done"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "UPDATE chunks SET content = ?, end_char = ? WHERE chunk_no = 7", (text, len(text))
        )
        connection.execute(
            "UPDATE memories SET summary = ?, content_hash = ? WHERE memory_no = 7",
            (text, sha256(text.encode()).digest()),
        )
        connection.execute("DELETE FROM chunk_words WHERE rowid = 7")
        words = "INSERT INTO chunk_words (rowid, summary, content) VALUES (7, ?, ?)"
        connection.execute(words, (text, text))
    return path


def test_a_schema_change_only_records_that_words_beside_an_emoji_are_outdated(
    with_emoji: Path,
) -> None:
    database = Database(with_emoji, 1)
    migrations.migrate(database, lambda _: None)
    found = "SELECT count(*) FROM chunk_words WHERE chunk_words MATCH 'done'"
    with database.reading() as connection:
        assert connection.get(found) == 0
    database.close()
    assert words_outdated(with_emoji)


def test_opening_an_old_store_rebuilds_the_words_that_a_schema_change_recorded(
    open_store: Callable[..., MemoryStore], with_emoji: Path, make_watched: Any
) -> None:
    with open_store(embedder=make_watched(16, "hash-16")) as store:
        assert store.search("done", raw=True).total_results == 1
        assert all(finding.ok for finding in store.admin.doctor() if finding.check != "disk space")
    assert not words_outdated(with_emoji)


def test_a_schema_change_records_nothing_in_a_store_without_emoji(path: Path) -> None:
    path.write_bytes(gzip.decompress((COMPAT / "schema-4.db.gz").read_bytes()))
    database = Database(path, 1)
    migrations.migrate(database, lambda _: None)
    database.close()
    assert not words_outdated(path)


def imports_of(module: ModuleType) -> set[str]:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    return {
        name or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }


def test_schema_steps_import_nothing_of_byheart() -> None:
    assert imports_of(steps)
    assert not any(name.startswith("byheart") for name in imports_of(steps))


def test_migrations_import_no_code_that_reads_or_writes_rows() -> None:
    own = {name for name in imports_of(migrations) if name.startswith("byheart")}
    assert own == {
        "byheart.errors",
        "byheart.startup.late_patterns",
        "byheart.storage.sqlite.change_mark",
        "byheart.storage.sqlite.connection",
        "byheart.storage.sqlite.copying",
        "byheart.storage.sqlite.database",
        "byheart.storage.sqlite.files",
        "byheart.storage.sqlite.schema",
    }
