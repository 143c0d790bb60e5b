"""A transaction that the server undid runs again, and a change is never made twice."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import byheart
from byheart.errors import StoreBusy
from byheart.storage.postgres.backend import PostgresBackend
from byheart.store import MemoryStore

WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
SOURCE = Path(byheart.__file__).parent
# An import or a copy that failed is run again by its user, and goes on.
_NOT_RETRIED = ("transfer", "storage")


def connect(backend: PostgresBackend) -> psycopg.Connection:
    return psycopg.connect(backend.database.address.conninfo)


@contextmanager
def in_the_way(backend: PostgresBackend, table: str) -> Iterator[psycopg.Connection]:
    """Keep others from writing to a table, and never be the one that ends a deadlock."""
    with connect(backend) as other:
        other.execute("SET deadlock_timeout = '60s'")
        other.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE".encode())
        yield other


def wait_for_lock(backend: PostgresBackend) -> None:
    """Wait until a session of this database waits for a lock."""
    with connect(backend) as connection:
        for _ in range(1000):
            if connection.execute(f"SELECT count(*) {WAITING}".encode()).fetchone() != (0,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


def deadlocks(backend: PostgresBackend) -> int:
    with connect(backend) as connection:
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        assert row is not None
        return int(row[0])


def test_a_save_that_ends_a_deadlock_is_made_again(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    store.save("The first one.")  # the space and the model are known
    with ThreadPoolExecutor(1) as threads, in_the_way(backend, "byheart_01.history") as other:
        saving = threads.submit(store.save, "The ferry leaves at noon.")
        wait_for_lock(backend)
        # The save holds the row of its space, and waits for the table.
        other.execute("SELECT 1 FROM byheart.spaces WHERE name = 'default' FOR UPDATE")
        other.rollback()
        saved = saving.result(30)
    assert saved.status == "created"
    for _ in range(100):  # the server counts a little later
        if deadlocks(backend) == 1:
            break
        time.sleep(0.05)
    assert deadlocks(backend) == 1
    assert [hit.memory_id for hit in store.search("ferry", mode="fts").results] == [saved.memory_id]
    assert len(store.history(saved.memory_id)) == 1
    assert all(each.ok for each in store.admin.doctor())


def refuse_some(backend: PostgresBackend, times: int) -> None:
    """Have the server end so many transactions that write history, as for a conflict."""
    with connect(backend) as connection:
        connection.execute(
            f"""
            CREATE SEQUENCE byheart.refusals;
            CREATE FUNCTION byheart.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('byheart.refusals') <= {times} THEN
                    RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON byheart_01.history
                FOR EACH ROW EXECUTE FUNCTION byheart.refuse();
            """.encode()
        )


def attempts(backend: PostgresBackend) -> int:
    with connect(backend) as connection:
        row = connection.execute("SELECT last_value FROM byheart.refusals").fetchone()
        assert row is not None
        return int(row[0])


def test_a_serialization_failure_is_tried_again(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    refuse_some(backend, 2)
    saved = store.save("The ferry leaves at noon.")
    assert saved.status == "created"
    assert attempts(backend) == 3
    assert store.list().total == 1


def test_a_failure_that_lasts_is_reported_after_some_attempts(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    refuse_some(backend, 1000)
    with pytest.raises(StoreBusy, match="was in the way of this one"):
        store.save("The ferry leaves at noon.")
    assert attempts(backend) == 4
    assert store.list().total == 0


def test_a_connection_that_the_server_ended_is_replaced(
    store: MemoryStore, backend: PostgresBackend
) -> None:
    store.save("The first one.")
    with ThreadPoolExecutor(1) as threads, connect(backend) as other:
        other.execute("SELECT 1 FROM byheart.spaces FOR UPDATE")
        saving = threads.submit(store.save, "The ferry leaves at noon.")
        wait_for_lock(backend)
        with connect(backend) as administrator:
            administrator.execute(f"SELECT pg_terminate_backend(pid) {WAITING}".encode())
        other.rollback()
        saved = saving.result(30)
    assert saved.status == "created"
    assert store.list().total == 2


def _transactions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Find the innermost functions that begin a writing transaction."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            inner = [each for each in ast.walk(function) if isinstance(each, ast.FunctionDef)]
            begins = [
                each
                for each in ast.walk(function)
                if isinstance(each, ast.withitem)
                and isinstance(each.context_expr, ast.Call)
                and isinstance(each.context_expr.func, ast.Attribute)
                and each.context_expr.func.attr == "writing"
            ]
            if begins and len(inner) == 1:
                yield function


def test_every_change_of_memories_is_made_in_such_a_transaction() -> None:
    found, without = 0, []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in _NOT_RETRIED:
            continue
        for function in _transactions(ast.parse(path.read_text(encoding="utf-8"))):
            found += 1
            names = [each.id for each in function.decorator_list if isinstance(each, ast.Name)]
            if "one_transaction" not in names:
                without.append(f"{path.relative_to(SOURCE)}: {function.name}")
    assert found > 20
    assert not without
