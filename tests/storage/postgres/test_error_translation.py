"""Errors of PostgreSQL become ours: what happened and what to do, without secrets and values."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import errors as pg

from byheart.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    spell_hint,
)
from byheart.interfaces.mcp.hints import spell_publicly
from byheart.interfaces.rest.hints import spell_request
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.error_translation import (
    check_server,
    check_version,
    explain,
    translating,
)

pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")

from tests.postgres_server import PostgresServer, database_url, private_server, shared_server

AT = "postgresql://db.example/memory"


@contextlib.contextmanager
def refused(kind: type[StoreError], *texts: str) -> Iterator[None]:
    """Expect exactly this kind of error, with these texts, a hint and no secret."""
    with pytest.raises(StoreError) as caught, translating(AT):
        yield
    error = caught.value
    assert type(error) is kind
    shown = "".join(traceback.format_exception(error))
    for text in texts:
        assert text in str(error)
    assert AT in error.message
    assert error.hint
    assert "hush" not in shown, "a secret or a text is shown"


def test_a_caller_over_the_network_learns_neither_address_nor_words_of_the_server() -> None:
    addresses = (
        "postgresql://ada:hush@10.0.0.5:1,10.0.0.6:1/m?connect_timeout=1",
        "postgresql://ada:hush@no.such.invalid/m",
        "postgresql://ada:hush@/m?host=/nowhere",
    )
    for address in addresses:
        with pytest.raises(StoreUnreachable) as caught, translating(address):
            psycopg.connect(address)
        shown = [
            spell_hint(each, spell_request) for each in (caught.value.message, caught.value.hint)
        ]
        shown += [
            spell_hint(each, spell_publicly) for each in (caught.value.message, caught.value.hint)
        ]
        for secret in ("ada", "10.0.0", "no.such", "/nowhere", "PGPASS"):
            assert secret not in " ".join(shown)
        assert "the store" in shown[0]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with contextlib.closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        yield connection


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "texts"),
    [
        ("postgresql://ada:hush@127.0.0.1:{port}/m", ("no server answers", "listen_addresses")),
        (
            "postgresql://ada:hush@127.0.0.1:{port},127.0.0.1:{port}/m",
            ("no server answers", "firewall"),
        ),
        ("postgresql://ada:hush@/m?host=/nowhere", ("no server answers", "check the host")),
        ("postgresql://ada:hush@no.such.invalid/m", ("no host with the name", "no.such.invalid")),
        ("postgresql:///?service=none&password=hush", ("PGSERVICEFILE", "none")),
    ],
)
def test_a_server_that_is_not_there(address: str, texts: tuple[str, ...]) -> None:
    conninfo = parse_address(address.format(port=free_port())).conninfo
    with refused(StoreUnreachable, *texts):
        psycopg.connect(conninfo)


def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        conninfo = f"postgresql://ada:hush@127.0.0.1:{port}/m?connect_timeout=2"
        with refused(StoreUnreachable, "no server answers", "timeout"):
            psycopg.connect(conninfo)


def test_a_connection_that_is_cut_while_it_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as cutting:

        def cut() -> None:
            with contextlib.suppress(OSError):  # the test may end before the second attempt
                for _ in range(2):
                    cutting.accept()[0].close()

        threading.Thread(target=cut, daemon=True).start()
        port = cutting.getsockname()[1]
        with refused(StoreUnreachable, "cannot connect"):
            psycopg.connect(f"postgresql://ada:hush@127.0.0.1:{port}/m?sslmode=disable")


@pytest.fixture(scope="module")
def guarded() -> Iterator[PostgresServer]:
    """Run a server that asks for passwords on its port, has few connections and a role `ada`."""
    port = str(free_port())
    with private_server(
        listen_addresses="127.0.0.1", port=port, max_connections="8", max_wal_senders="0"
    ) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
            connection.execute("CREATE ROLE one LOGIN CONNECTION LIMIT 1")
            connection.execute("CREATE DATABASE closed")
            connection.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
        (server.data / "pg_hba.conf").write_text(
            "local all all trust\nhost all ada 127.0.0.1/32 scram-sha-256\n", encoding="utf-8"
        )
        server.restart()
        yield server


@pytest.mark.parametrize(
    ("user", "target", "texts"),
    [
        ("ada:hush", "postgres", ("refused the user or the password", "PGPASSFILE")),
        ("ada", "postgres", ("no password supplied", "PGPASSFILE")),
        ("ada:right", "absent", ("no database", "createdb")),
        ("ada:right", "closed", ("does not have the rights", "GRANT")),
        ("eve:hush", "postgres", ("does not admit", "pg_hba.conf")),
        ("ada:hush", "postgres?sslmode=require", ("encrypted", "sslmode")),
        ("ada:right", "postgres?target_session_attrs=read-only", ("cannot connect",)),
    ],
)
def test_a_server_that_refuses_a_user(
    guarded: PostgresServer, user: str, target: str, texts: tuple[str, ...]
) -> None:
    target = target.replace("absent", "absent")
    address = f"postgresql://{user}@127.0.0.1:{guarded.settings['port']}/{target}"
    with refused(StoreUnreachable, *texts):
        psycopg.connect(address)


@pytest.mark.parametrize("user", ["one", "ada"])
def test_a_server_with_no_connection_left(guarded: PostgresServer, user: str) -> None:
    with contextlib.ExitStack() as held, refused(StoreBusy, "takes no more connections", "pooler"):
        for _ in range(9):
            held.enter_context(
                contextlib.closing(psycopg.connect(guarded.url(user=user, password="hush")))
            )


def test_a_host_that_may_not_be_written_to(guarded: PostgresServer) -> None:
    options = "-c default_transaction_read_only=on"
    address = guarded.url(options=options, target_session_attrs="read-write")
    with refused(StoreReadOnly, "can be read but not written"):
        psycopg.connect(address)


def test_a_role_without_rights(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE memories (content text)")
    connection.execute("DROP ROLE IF EXISTS weak")
    connection.execute("CREATE ROLE weak LOGIN")
    try:
        weak = postgres_url.replace("postgres@", "weak@")
        with contextlib.closing(psycopg.connect(weak)) as other:
            with refused(StoreUnreachable, "permission denied for table memories", "GRANT"):
                other.execute("INSERT INTO memories VALUES ('hush')")
            other.rollback()
            with refused(StoreUnreachable, "permission denied for database", "GRANT"):
                other.execute("CREATE SCHEMA byheart")
    finally:
        connection.execute("DROP ROLE weak")


def test_a_read_only_transaction(connection: psycopg.Connection) -> None:
    connection.execute("SET default_transaction_read_only = on")
    with refused(StoreReadOnly, "can be read but not written", "replica"):
        connection.execute("CREATE TABLE t (n integer)")


def test_a_statement_that_takes_too_long(connection: psycopg.Connection) -> None:
    connection.execute("SET statement_timeout = '20ms'")
    with refused(StoreBusy, "cancelled a statement", "statement_timeout"):
        connection.execute("SELECT pg_sleep(5), 'hush'")


def test_a_lock_that_is_held_for_too_long(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    connection.execute("CREATE TABLE t (n integer)")
    with contextlib.closing(psycopg.connect(postgres_url)) as holder:
        holder.execute("LOCK TABLE t")
        connection.execute("SET lock_timeout = '20ms'")
        with refused(StoreBusy, "other transactions", "pg_stat_activity"):
            connection.execute("SELECT n FROM t")


def test_a_serialization_failure_may_be_retried(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    connection.execute("CREATE TABLE t (n integer)")
    connection.execute("INSERT INTO t VALUES (1)")
    with contextlib.closing(psycopg.connect(postgres_url)) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT n FROM t")
        connection.execute("UPDATE t SET n = 2")
        with pytest.raises(pg.SerializationFailure) as caught:
            other.execute("UPDATE t SET n = 3")
    assert explain(caught.value, AT).undone
    with refused(StoreBusy, "another transaction", "try again"):
        raise caught.value


def test_a_deadlock_may_be_retried(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE t (n integer)")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    found: list[psycopg.Error] = []

    def lock(url: str, order: tuple[int, int], ready: threading.Barrier) -> None:
        with contextlib.closing(psycopg.connect(url)) as each:
            each.execute("SET deadlock_timeout = '50ms'")
            each.execute("SELECT n FROM t WHERE n = %s FOR UPDATE", (order[0],))
            ready.wait()
            try:
                each.execute("SELECT n FROM t WHERE n = %s FOR UPDATE", (order[1],))
            except psycopg.Error as error:
                found.append(error)

    ready = threading.Barrier(2)
    orders = ((1, 2), (2, 1))
    threads = [threading.Thread(target=lock, args=(postgres_url, each, ready)) for each in orders]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert [type(each) for each in found] == [pg.DeadlockDetected]
    assert explain(found[0], AT).undone
    with refused(StoreBusy, "deadlock detected"):
        raise found[0]


def test_a_connection_that_the_server_ends(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    other = psycopg.connect(postgres_url)
    connection.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
    time.sleep(0.1)
    with pytest.raises(pg.AdminShutdown) as caught:
        other.execute("SELECT 1")
    assert explain(caught.value, AT).undone
    with refused(StoreUnreachable, "ended the connection", "wrote nothing"):
        raise caught.value
    with refused(StoreUnreachable, "connection to", "was lost", "wrote nothing"):
        other.execute("SELECT 1")


def test_a_connection_that_is_lost_in_a_commit_is_told_apart(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    other = psycopg.connect(postgres_url)
    other.execute("SELECT 1")
    connection.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))
    time.sleep(0.1)
    with pytest.raises(StoreUnreachable) as caught, translating(AT, committing=True):
        other.commit()
    assert "completely or not at all" in caught.value.message
    assert "look whether the change is there" in caught.value.hint


def test_a_network_that_is_cut_in_the_middle(guarded: PostgresServer) -> None:
    class Proxy(threading.Thread):
        def __init__(self) -> None:
            super().__init__(daemon=True)
            self.listening = socket.create_server(("127.0.0.1", 0))
            self.sockets: list[socket.socket] = []

        def run(self) -> None:
            client, _ = self.listening.accept()
            server = socket.create_connection(("127.0.0.1", int(guarded.settings["port"])))
            self.sockets = [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

        def pump(self, source: socket.socket, target: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65_536):
                    target.sendall(data)

        def cut(self) -> None:
            for each in self.sockets:
                each.shutdown(socket.SHUT_RDWR)

    proxy = Proxy()
    proxy.start()
    port = proxy.listening.getsockname()[1]
    with psycopg.connect(f"postgresql://ada:right@127.0.0.1:{port}/postgres") as connection:
        threading.Timer(0.2, proxy.cut).start()
        with pytest.raises(psycopg.OperationalError) as caught:
            connection.execute("SELECT pg_sleep(20), 'hush'")
    assert explain(caught.value, AT).undone
    with refused(StoreUnreachable, "was lost", "wrote nothing"):
        raise caught.value


def test_a_server_that_starts_up_or_shuts_down() -> None:
    with private_server(max_wal_senders="0") as server:
        with contextlib.closing(psycopg.connect(server.url())) as busy:
            busy.execute("SELECT 1")
            stopping = threading.Thread(target=lambda: server.stop("smart"))
            stopping.start()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    psycopg.connect(server.url()).close()
                except psycopg.OperationalError as error:
                    refusal = error
                    break
        stopping.join()
    with refused(StoreUnreachable, "starting up or shutting down", "a few seconds"):
        raise refusal


def test_the_values_of_a_row_are_never_shown(connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE t (name text UNIQUE, n integer CHECK (n > 0))")
    connection.execute("INSERT INTO t VALUES ('hush', 1)")
    statements = (
        "INSERT INTO t VALUES ('hush', 1)",
        "INSERT INTO t VALUES ('hush hush', 0)",
        "SELECT 'hush'::integer",
        "SELECT '{\"a\": hush}'::json",
    )
    for statement in statements:
        with refused(StoreError, "failed: "):
            connection.execute(statement.encode())


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (pg.DiskFull, StoreFull, "free some space"),
        (pg.OutOfMemory, StoreError, "more memory"),
        (pg.IoError, StoreError, "server's log"),
        (pg.DataCorrupted, StoreDamaged, "restore a backup"),
        (pg.IndexCorrupted, StoreDamaged, "restore a backup"),
        (pg.TooManyConnections, StoreBusy, "pooler"),
        (pg.InvalidPassword, StoreUnreachable, "PGPASSFILE"),
        (pg.InvalidCatalogName, StoreUnreachable, "createdb"),
        (pg.CannotConnectNow, StoreUnreachable, "a few seconds"),
        (pg.ConnectionFailure, StoreUnreachable, "try again"),
        (pg.IdleInTransactionSessionTimeout, StoreUnreachable, "try again"),
        (pg.InternalError_, StoreError, "doctor"),
    ],
)
def test_errors_that_cannot_be_produced_here(
    error: Callable[[str], psycopg.Error], kind: type[StoreError], text: str
) -> None:
    with refused(kind, text):
        raise error("hush")


def test_a_server_must_be_new_enough(connection: psycopg.Connection) -> None:
    check_server(connection, AT)
    check_version(140_000, AT)
    with pytest.raises(StoreUnreachable, match=r"PostgreSQL 13\.22, which is too old.*14 or later"):
        check_version(130_022, AT)


def test_a_database_must_hold_every_text() -> None:
    server = shared_server()
    with database_url() as url, psycopg.connect(server.url(), autocommit=True) as connection:
        name = f"latin_{url.rpartition('test_')[2].partition('?')[0]}"
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0".encode()
        )
        try:
            with (
                contextlib.closing(psycopg.connect(server.url(name))) as latin,
                pytest.raises(StoreUnreachable, match=r"encoding LATIN1.*--encoding=UTF8"),
            ):
                check_server(latin, AT)
        finally:
            connection.execute(f"DROP DATABASE {name}".encode())


def test_an_unknown_error_is_shown_with_its_code() -> None:
    error = explain(pg.UndefinedTable("hush"), AT)
    assert type(error) is StoreError
    assert "UndefinedTable (42P01)" in error.message
