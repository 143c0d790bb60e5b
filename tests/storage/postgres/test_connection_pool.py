"""The connections of one process: threads, forks, lost servers, and nested transactions."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from byheart.errors import StoreBusy, StoreError, StoreUnreachable
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.postgres.connection_pool import ConnectionPool
from byheart.storage.postgres.database import Database
from byheart.storage.postgres.pipelined_connection import PipelinedConnection
from tests.postgres_server import private_server
from tests.postgres_stores import postgres_store
from tests.waiting import wait_until


@pytest.fixture
def address() -> Iterator[Address]:
    with postgres_store() as address:
        yield address


@pytest.fixture
def backend(address: Address, tmp_path: Path) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(address, tmp_path, busy_timeout_seconds=5)
    yield backend
    backend.close()


@pytest.fixture
def database(backend: PostgresBackend) -> Database:
    return backend.database


def count_backends(address: Address, where: str = "true") -> int:
    """Count the sessions of the database, without those that count."""
    with psycopg.connect(
        address.conninfo, autocommit=True, application_name="counting"
    ) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            f"AND application_name <> 'counting' AND {where}".encode()
        ).fetchone()
    assert row is not None
    return int(row[0])


def end_all_backends(address: Address) -> None:
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_connection_is_used_again(database: Database) -> None:
    with database.connected() as first:
        pass
    with database.connected() as second:
        assert second is first


def test_a_call_that_finds_no_free_connection_says_so(address: Address) -> None:
    database = Database(address, 0.1, connections=1)
    with (
        database.connected(),
        pytest.raises(StoreBusy, match="all connections of this process"),
        database.connected(),
    ):
        pass
    with database.connected() as connection:  # the place is free again
        assert connection.execute("SELECT 1").fetchone() == (1,)
    database.close()
    with pytest.raises(StoreError, match="is closed"), database.connected():
        pass


def fail(database: Database, how: int) -> None:
    with database.writing("a") as connection:
        if how == 0:
            connection.get("SELECT 1 / 0")
        elif how == 1:
            connection.run("SELECT 1 / 0")  # its answer is read by the commit
        else:
            connection.run("SELECT 1 / 0")  # its answer is never read
            raise KeyError


def test_an_error_leaves_no_place_taken_and_no_transaction_open(
    database: Database, address: Address
) -> None:
    for number in range(30):
        with pytest.raises((StoreError, KeyError)):
            fail(database, number % 3)
    assert count_backends(address, "state <> 'idle'") == 0
    assert count_backends(address) <= 1


def test_an_error_of_the_caller_is_not_hidden_by_one_of_the_server(database: Database) -> None:
    with pytest.raises(KeyError):
        fail(database, 2)

    def lose() -> None:
        with database.reading("a") as connection:
            connection.raw.close()
            raise KeyError

    with pytest.raises(KeyError):
        lose()


def test_an_answer_that_is_complete_survives_the_loss_of_its_connection(
    database: Database, address: Address
) -> None:
    with database.reading(None) as connection:
        assert connection.get("SELECT 7") == 7
        end_all_backends(address)
    with database.reading(None) as connection:
        assert connection.get("SELECT 8") == 8


def test_nothing_of_a_transaction_reaches_the_next_one(database: Database) -> None:
    def session(connection: psycopg.Connection) -> list[object]:
        names = (
            "search_path",
            "lock_timeout",
            "synchronous_commit",
            "default_transaction_isolation",
        )
        return [
            connection.execute("SELECT current_setting($1, true)", (name,)).fetchone()
            for name in names
        ] + [
            connection.execute(
                "SELECT coalesce(current_setting('byheart.space_no', true), '')"
            ).fetchone()
        ]

    with database.connected() as connection:
        before = session(connection)
    with database.writing("a"):
        pass
    with pytest.raises(StoreError), database.writing("b") as inner:
        inner.get("SELECT 1 / 0")
    with database.reading("a"):
        pass
    with database.noting("a", 5):
        pass
    with database.connected() as connection:
        assert session(connection) == before


def test_statements_that_an_error_left_unprepared_are_prepared_again(database: Database) -> None:
    def fail_early() -> None:
        with database.writing("a") as connection:
            connection.run("SELECT 1 / 0")
            for number in range(20):
                connection.run(f"SELECT {number % 4}")
            connection.get("SELECT 1")

    for _ in range(5):
        for _ in range(5):
            with database.reading("a") as connection:
                assert connection.get("SELECT 1") == 1
            with database.writing("a") as connection:
                assert connection.get("SELECT 2") == 2
        with pytest.raises(StoreError):
            fail_early()


def test_statements_of_reads_stay_prepared(database: Database) -> None:
    for _ in range(5):
        with database.reading("a") as connection:
            assert connection.get("SELECT 41 + 1") == 42
    with database.connected() as connection:
        [(calls,)] = connection.execute(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements "
            "WHERE statement LIKE 'SELECT 41 + 1 %'"
        ).fetchall()
    assert calls == 3


def test_a_pooler_that_was_not_noticed_is_noticed_by_its_errors(database: Database) -> None:
    def read() -> int:
        with database.reading("a") as connection:
            return int(connection.get("SELECT 1"))

    for _ in range(5):
        read()
    with database.connected() as connection:
        # As if the next transaction ran in another server process.
        connection.pgconn.exec_(b"DEALLOCATE ALL")
    failures = 0
    for _ in range(10):
        try:
            read()
        except StoreBusy:
            failures += 1
    assert failures <= 1


def test_connections_that_were_lost_while_nobody_used_them_are_replaced(
    database: Database, address: Address
) -> None:
    with database.connected(), database.connected(), database.connected():
        pass
    end_all_backends(address)
    for _ in range(3):
        with database.reading(None) as connection:
            assert connection.get("SELECT 1") == 1


def test_a_lost_commit_does_not_claim_that_nothing_was_written(
    database: Database, address: Address
) -> None:
    with (
        pytest.raises(StoreUnreachable, match="either completely or not at all"),
        database.writing("a"),
    ):
        end_all_backends(address)


def test_a_server_that_is_down_is_reported_at_once(tmp_path: Path) -> None:
    from byheart.storage.postgres.address import parse_address

    with private_server(fsync="off") as server:
        backend = PostgresBackend(parse_address(server.url() + "&parts=1"), tmp_path, 30)
        server.stop("immediate")
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(StoreUnreachable), backend.reading(None) as connection:
                connection.get("SELECT 1")
        assert time.monotonic() - began < 15
        server.start()
        with backend.reading(None) as connection:
            assert connection.get("SELECT 1") == 1
        backend.close()


def test_commits_are_durable_whatever_the_role_says(tmp_path: Path, address: Address) -> None:
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        for value in ("off", "local"):
            connection.execute(f"ALTER ROLE postgres SET synchronous_commit = {value}".encode())
            try:
                backend = PostgresBackend(address, tmp_path, 5)
                with backend.writing("a") as writing:
                    chosen = writing.get("SHOW synchronous_commit")
                backend.close()
            finally:
                connection.execute("ALTER ROLE postgres RESET synchronous_commit")
            assert chosen == {"off": "on", "local": "local"}[value]


def test_a_new_space_does_not_wait_for_ever_for_a_writer_of_the_store(
    address: Address, tmp_path: Path
) -> None:
    backend = PostgresBackend(address, tmp_path, busy_timeout_seconds=0.2)
    with psycopg.connect(address.conninfo) as other:
        other.execute("LOCK TABLE byheart.spaces IN EXCLUSIVE MODE")
        with pytest.raises(StoreBusy), backend.writing("new"):
            pass
    with backend.writing("new"):
        pass
    backend.close()


def test_connections_that_nobody_uses_are_closed(address: Address) -> None:
    def connect() -> PipelinedConnection:
        return PipelinedConnection.connect(address.conninfo, autocommit=True)

    pool = ConnectionPool(connect, address.location, 3, 5, idle_seconds=0.2)
    with pool.lend(), pool.lend():
        pass
    assert count_backends(address) == 2
    wait_until(lambda: count_backends(address) == 0)
    with pool.lend() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    pool.close()


def test_40_threads_share_10_connections(backend: PostgresBackend, address: Address) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                with backend.reading(f"s{number % 3}") as connection:
                    assert connection.get("SELECT 1") == 1
                with backend.writing(f"s{number % 3}") as connection:
                    assert connection.get("SELECT 2") == 2
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not failures
    assert count_backends(address) <= 10


def in_child(work: object) -> int:
    """Run a function in a forked child, and give 0 if it succeeded."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()  # type: ignore[operator]
            code = 0
        except BaseException as error:  # noqa: BLE001
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_goes_on(
    backend: PostgresBackend, address: Address, tmp_path: Path
) -> None:
    def work() -> None:
        with pytest.raises(StoreUnreachable, match="forked while"), backend.reading(None):
            pass
        backend.close()
        own = PostgresBackend(address, tmp_path, 5)  # a store that the child opens itself works
        with own.reading(None) as connection:
            assert connection.get("SELECT 1") == 1
        own.close()

    with backend.reading(None) as connection:
        assert in_child(work) == 0
        assert connection.get("SELECT 2") == 2
    with backend.writing("a") as connection:
        assert connection.get("SELECT 3") == 3


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_within_a_transaction_leaves_the_transaction_to_the_parent(
    backend: PostgresBackend,
) -> None:
    with backend.writing(None) as connection:
        connection.run("INSERT INTO store (key, value) VALUES ('fork', 'parent')")
        child = os.fork()
        if not child:
            code = 1
            try:
                connection.run("INSERT INTO store (key, value) VALUES ('child', 'x')")
                connection.get("SELECT 1")
            except BaseException:  # noqa: BLE001
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert connection.get("SELECT count(*) FROM store WHERE key IN ('fork', 'child')") == 1
    with backend.reading(None) as connection:
        assert connection.get("SELECT value FROM store WHERE key = 'fork'") == "parent"
        assert connection.get("SELECT value FROM store WHERE key = 'child'") is None


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_does_not_keep_the_locks_of_its_killed_parent(
    backend: PostgresBackend, address: Address, tmp_path: Path
) -> None:
    into, out = os.pipe()
    parent = os.fork()
    if not parent:
        try:
            own = PostgresBackend(address, tmp_path, 5)
            with own.writing(None) as connection:
                connection.get("SELECT 1")
                child = os.fork()
                if not child:
                    time.sleep(20)
                    os._exit(0)
                os.write(out, f"{child}\n".encode())
                time.sleep(20)
        finally:
            os._exit(1)
    child = int(os.read(into, 20))
    try:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        with backend.writing("a") as connection:
            assert connection.get("SELECT 1") == 1
    finally:
        os.kill(child, signal.SIGKILL)
