"""Verbs about one space read and write only the tables of the part that the space is in."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.backend import PostgresStorage
from byheart.storage.postgres.values import adapt
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store

# Tables that belong to the whole store.
_SHARED = {"store", "models", "spaces", "tokens"}
# Only these statements have a plan.
_PLANNED = re.compile(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE|DECLARE)\b", re.IGNORECASE)


class _Sent(NamedTuple):
    """A statement, its values, and the settings of its transaction."""

    statement: str
    values: Any
    settings: tuple[str, ...]


class _Log:
    """Record the statements of all connections, and look at their plans."""

    def __init__(self) -> None:
        self.sent: list[_Sent] = []
        self._settings: dict[psycopg.Connection[Any], list[str]] = {}

    def note(self, connection: psycopg.Connection[Any], statement: str, values: Any) -> None:
        if statement.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            self._settings.pop(connection, None)
        elif statement.startswith(("SET LOCAL", "SELECT set_config")):
            self._settings.setdefault(connection, []).append(statement)
        elif _PLANNED.match(statement):
            settings = tuple(self._settings.get(connection, ()))
            self.sent.append(_Sent(statement, values, settings))

    def tables(self, url: str) -> dict[str, set[tuple[str, str]]]:
        """Give the schema and name of each table that the plan of a statement reads or writes."""
        found: dict[str, set[tuple[str, str]]] = {}
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            adapt(connection)
            for statement, values, settings in self.sent:
                connection.execute("BEGIN")
                for each in settings:
                    connection.execute(each)
                explained = connection.execute(
                    f"EXPLAIN (VERBOSE, FORMAT JSON) {statement}", values
                ).fetchone()
                connection.execute("ROLLBACK")
                assert explained is not None
                found.setdefault(statement, set()).update(_relations(explained[0]))
        return found

    def rows_read(self, url: str) -> int:
        """Run all statements again, and count the rows of parts that they read."""
        count = 0
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            adapt(connection)
            for statement, values, settings in self.sent:
                connection.execute("BEGIN")
                # Small tables are read as a whole, large ones by their indexes.
                for each in (*settings, "SET LOCAL enable_seqscan = off"):
                    connection.execute(each)
                explain = f"EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) {statement}"
                explained = connection.execute(explain, values).fetchone()
                connection.execute("ROLLBACK")
                assert explained is not None
                count += _rows(explained[0])
        return count


def _relations(plan: Any) -> Iterator[tuple[str, str]]:
    if isinstance(plan, list):
        for each in plan:
            yield from _relations(each)
    if isinstance(plan, dict):
        if "Relation Name" in plan:
            yield plan["Schema"], plan["Relation Name"]
        for each in plan.values():
            yield from _relations(each)


def _rows(plan: Any) -> int:
    """Add up the rows that scans of the tables of parts gave, and those that they left out."""
    if isinstance(plan, list):
        return sum(map(_rows, plan))
    if not isinstance(plan, dict):
        return 0
    own = 0
    if re.fullmatch(r"byheart_\d\d", plan.get("Schema", "")):
        read = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        own = sum(int(plan.get(each, 0)) for each in read)
    return own + sum(map(_rows, plan.values()))


class _Opened(NamedTuple):
    store: MemoryStore
    url: str


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[_Opened]:
    """Open a store with memories in four spaces, which are in two parts."""
    pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")
    settings = load_settings(
        {"embedding_provider": "hash", "notice_similar": True},
        environ={},
        config_path=tmp_path / "none",
    )
    with (
        postgres_store() as address,
        MemoryStore(PostgresStorage(address, tmp_path), HashEmbedder(), settings) as store,
    ):
        for space in ("a", "b", "c", "d"):
            fill(store, space)
        yield _Opened(store, address.conninfo)


def fill(store: MemoryStore, space: str) -> None:
    texts = (f"The harbour of {space} closes at {hour}." for hour in range(20))
    fields = {"tags": ["red"], "entities": ["Anna"], "space": space, "path": "docs/x.md"}
    store.save_many([{"content": text, **fields} for text in texts])
    store.log("s", "user", f"Which harbour of {space} closes at night?", space=space)
    store.sessions.summarize("s", space=space)


@contextlib.contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Log]:
    log, real = _Log(), psycopg.Connection.execute

    def execute(self: psycopg.Connection[Any], query: Any, params: Any = None, **more: Any) -> Any:
        log.note(self, str(query), params)
        return real(self, query, params, **more)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", execute)
        yield log


def check(log: _Log, url: str, part: str) -> None:
    """Check that no statement reaches a table of another part, or of all parts together."""
    tables = log.tables(url)
    others = {
        statement: other
        for statement, each in tables.items()
        if (
            other := {(s, n) for s, n in each if s != part and (s != "byheart" or n not in _SHARED)}
        )
    }
    assert not others, json.dumps({k: sorted(v) for k, v in others.items()}, indent=1)
    reached = {name for each in tables.values() for schema, name in each if schema == part}
    assert "memories" in reached, "nothing was recorded"


def part_of(url: str, space: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT part FROM byheart.spaces WHERE name = %s", [space])
        return f"byheart_{row.fetchall()[0][0]:02}"


def test_spaces_are_in_different_parts(opened: _Opened) -> None:
    assert len({part_of(opened.url, space) for space in "abcd"}) == 2


@pytest.mark.parametrize("space", ["a", "b"])
def test_a_search_reads_one_part(
    opened: _Opened, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened.store
    with recording(monkeypatch) as log:
        for mode in ("hybrid", "fts", "vector"):
            for granularity in ("fine", "medium", "coarse"):
                store.search("harbour", mode=mode, granularity=granularity, space=space)
        store.search("harb* NOT night", raw=True, space=space)
        store.search("harbour", tags=["red"], entities=["anna"], path="docs/", space=space)
        store.search(granularity="coarse", session_id="s", as_of="2030-01-01", space=space)
        store.recall("harbour", space=space)
        store.context("s", "harbour", space=space)
        store.remind("s", "harbour", space=space)
    check(log, opened.url, part_of(opened.url, space))


def test_a_tag_is_looked_up_in_one_space_of_its_part(
    opened: _Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert part_of(opened.url, "a") == part_of(opened.url, "c")
    with recording(monkeypatch) as log:
        opened.store.search("harbour", tags=["red"], space="a")
    log.sent = [each for each in log.sent if "FROM tags WHERE tag" in each.statement]
    assert log.rows_read(opened.url) == 20


def test_a_space_without_memories_reads_no_rows(
    opened: _Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened.store
    with recording(monkeypatch) as log:
        for mode in ("hybrid", "fts", "vector"):
            assert not store.search("harbour", mode=mode, space="nowhere").results
        store.search("harb* NOT night", raw=True, space="nowhere")
        store.search("harbour", tags=["red"], entities=["anna"], path="docs/", space="nowhere")
        store.context("s", "harbour", space="nowhere")
        assert not store.list(space="nowhere").memories
        assert not store.sessions.list(space="nowhere")
        store.entities.list(space="nowhere")
    check(log, opened.url, "byheart_00")
    assert log.rows_read(opened.url) == 0


@pytest.mark.parametrize("space", ["a", "b"])
def test_the_first_search_reads_one_part(
    opened: _Opened, space: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The index of a space is made from the rows of its part alone."""
    settings = opened.store._engine.settings
    with postgres_again(opened, tmp_path / "other") as storage, recording(monkeypatch) as log:
        MemoryStore(storage, HashEmbedder(), settings).search("harbour", space=space)
    check(log, opened.url, part_of(opened.url, space))


@contextlib.contextmanager
def postgres_again(opened: _Opened, cache: Path) -> Iterator[PostgresStorage]:
    with contextlib.closing(PostgresStorage(_address(opened), cache)) as storage:
        yield storage


def _address(opened: _Opened) -> Any:
    storage: Any = opened.store._storage
    return storage._backend.database.address


@pytest.mark.parametrize("space", ["a", "b"])
def test_reading_reads_one_part(
    opened: _Opened, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened.store
    memory_id = store.list(space=space).memories[0].memory_id
    with recording(monkeypatch) as log:
        store.get(memory_id, space=space)
        store.get("docs/x.md", space=space)
        store.expand(f"{memory_id}#0", space=space)
        store.history(memory_id, space=space)
        store.list(space=space, tags=["red"])
        store.entities.list(space=space)
        store.sessions.list(space=space)
        store.sessions.stats("s", space=space)
        store.sessions.transcript("s", space=space)
        store.sessions.resume("s", space=space)
        store.sessions.of([memory_id], space=space)
    check(log, opened.url, part_of(opened.url, space))


@pytest.mark.parametrize("space", ["a", "b"])
def test_writing_reaches_one_part(
    opened: _Opened, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened.store
    first, second = (each.memory_id for each in store.list(space=space).memories[:2])
    with recording(monkeypatch) as log:
        saved = store.save("The ferry leaves at noon.", tags=["blue"], space=space)
        store.save("The ferry leaves at noon.", space=space)
        store.save("word " * 40_000, space=space)
        store.save_many([{"content": f"Ferry number {n}.", "space": space} for n in range(3)])
        store.log("s", "assistant", "It closes at eight, as far as I know.", space=space)
        store.update(saved.memory_id, content="The ferry leaves at one.", space=space)
        store.update(saved.memory_id, title="Ferry", space=space)
        store.supersede(first, second, space=space)
        store.pin(second, space=space)
        store.unpin(second, space=space)
        store.forget(saved.memory_id, space=space)
        store.restore(saved.memory_id, space=space)
        store.forget(tags=["blue"], dry_run=False, space=space)
        store.entities.rename("Anna", "Anna Miller", space=space)
        store.sessions.summarize("s", space=space)
        store.sessions.promote("s", kind="message", space=space)
    check(log, opened.url, part_of(opened.url, space))
