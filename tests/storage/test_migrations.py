from pathlib import Path

import apsw
import pytest

from byheart.errors import StoreError
from byheart.storage.sqlite import SqliteStorage, migrations

ADD_COLUMN = "ALTER TABLE memories ADD COLUMN mood TEXT; CREATE TABLE moods (mood TEXT);"
FAILS_HALFWAY = "CREATE TABLE moods (mood TEXT); INSERT INTO no_such_table VALUES (1);"


def version(path: Path) -> int:
    return int(apsw.Connection(str(path)).execute("PRAGMA user_version").get)


def tables(path: Path) -> set[str]:
    return {row[0] for row in apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema")}


def later_version(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Be a later version of Byheart, with one more schema change."""
    known = migrations.known_migrations()
    following = (known[-1][0] + 1, script)
    monkeypatch.setattr(migrations, "known_migrations", lambda: [*known, following])


def test_schema_changes_are_numbered_without_gaps() -> None:
    numbers = [number for number, _ in migrations.known_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_new_store_has_the_latest_schema(path: Path) -> None:
    storage = SqliteStorage(path)
    assert storage.schema_version == version(path) == migrations.known_migrations()[-1][0]


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


def test_every_connection_is_durable_and_enforces_foreign_keys(path: Path) -> None:
    storage = SqliteStorage(path)
    with storage._database.writing() as writer, storage._database.reading() as reader:
        for connection in (writer, reader):
            assert connection.execute("PRAGMA foreign_keys").get == 1
            assert connection.execute("PRAGMA synchronous").get == 2  # FULL
