"""Open transactions on a PostgreSQL database, for one space or for the whole store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from byheart.errors import Hint, StoreError, StoreReadOnly, name_store
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.clock_cache import ClockCache
from byheart.storage.postgres.connection import (
    PostgresConnection,
    Space,
    enter,
    part_schema,
    set_local,
)
from byheart.storage.postgres.connection_pool import ConnectionPool
from byheart.storage.postgres.error_translation import (
    check_server,
    explain_rights,
    for_operator,
    translating,
)
from byheart.storage.postgres.missing_rights import hint_for
from byheart.storage.postgres.pipelined_connection import PipelinedConnection
from byheart.storage.postgres.values import adapt

# The levels are named: a role may have others by default.
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ASK_SERVER = """
    SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
        pg_backend_pid()"""
# A statement is prepared when a connection runs it for the third time.
_PREPARED_AFTER = 2
# Each part has statements of its own: those of a search and a save in all of 16 parts.
_MOST_PREPARED = 800
_NOT_PREPARED = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
)
# An acknowledged change survives a crash of the server, whatever the defaults of the role are.
_SAFE = f"""
    CASE current_setting('synchronous_commit')
        WHEN 'off' THEN {set_local("synchronous_commit", "on")} END"""
# A commit of notes does not wait for the disk: a crash of the server loses some of them.
_UNSAFE = set_local("synchronous_commit", "off")


class Database:
    """Hand out connections of a pool, each within one transaction."""

    def __init__(self, address: Address, busy_timeout_seconds: float, connections: int) -> None:
        self.address = address
        self.schema = address.schema
        self.parts = 0  # the migration sets it
        self.writable = True
        self.refusal: StoreReadOnly | None = None  # why the store must not be written
        self.may_write = True  # whether the role has the right; the migration sets it
        self.busy_seconds = busy_timeout_seconds
        self.busy_ms = max(1, round(busy_timeout_seconds * 1000))
        self._spaces: dict[str, Space] = {}
        self._has_pooler = True  # until the server has answered
        self._model_known = False
        self._clocks = ClockCache()
        self._pool = ConnectionPool(
            self._connect, address.location, connections, busy_timeout_seconds
        )
        try:
            self._ask_server()
        except BaseException:
            self._pool.close()
            raise

    def _ask_server(self) -> None:
        """Refuse a server that cannot hold a store; find out whether it can be written."""
        with self.connected() as connection:
            check_server(connection, self.address.location)
            [(self.writable, pid)] = connection.execute(_ASK_SERVER).fetchall()
            # A pooler gives a number of its own, and may give the next statement to another server
            # process, which does not know a statement prepared before.
            self._has_pooler = pid != connection.info.backend_pid

    def _connect(self) -> PipelinedConnection:
        connection = PipelinedConnection.connect(
            self.address.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor
        )
        self._configure(connection)
        adapt(connection)
        return connection

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        connection.prepare_threshold = None if self._has_pooler else _PREPARED_AFTER
        connection.prepared_max = _MOST_PREPARED

    @contextmanager
    def connected(self) -> Iterator[PipelinedConnection]:
        """Hold a connection of the pool, outside of any transaction, that waits for each answer."""
        with self._lent() as connection:
            connection.unpipe()
            yield connection

    @contextmanager
    def _lent(self) -> Iterator[PipelinedConnection]:
        with translating(self.address.location), self._pool.lend() as connection:
            self._configure(connection)  # a pooler may have been noticed while it was idle
            if self._has_pooler and connection.is_ending:
                # A pooler must have answered the last transaction before it gets the next one:
                # PgBouncer 1.18 sends both to one server process, and drops the later answers.
                connection.read_ending()
            with self._naming_rights(connection), self._noticing_pooler(connection):
                yield connection

    @contextmanager
    def _naming_rights(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Name the rights that are missing, if the server refuses a statement for want of one."""
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            hint = hint_for(connection, self.schema)
            raise explain_rights(error, self.address.location, hint) from None

    @contextmanager
    def _noticing_pooler(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Prepare nothing from now on if a server process does not know a prepared statement."""
        try:
            yield
        except _NOT_PREPARED:
            self._has_pooler = True
            connection.close()
            raise

    @contextmanager
    def connected_alone(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a connection beside the pool."""
        with translating(self.address.location), self._pool.lend_alone() as connection:
            connection.cursor_factory = psycopg.Cursor
            yield connection

    @contextmanager
    def reading(self, space: str | None) -> Iterator[PostgresConnection]:
        """Hold one snapshot of everything committed before; later writes do not change it."""
        found = self.find(space)
        unknown = space is not None and found is None
        begin = [_READ, enter(self.schema, found, unknown=unknown)]
        with self._began(begin, found, writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self, space: str | None) -> Iterator[PostgresConnection]:
        """Hold the write lock of a space or of the store: commit everything, or nothing."""
        self._refuse_read_only()
        found = None if space is None else self.find(space) or self._add(space)
        wait = set_local("lock_timeout", self.busy_ms)
        lock = f"LOCK TABLE {self.schema}.spaces IN EXCLUSIVE MODE"
        if found is not None and self._has_model():
            lock = (
                f"SELECT 1 FROM {self.schema}.spaces WHERE space_no = {found.space_no} FOR UPDATE"
            )
        begin = [WRITE, enter(self.schema, found, wait, _SAFE), lock]
        with self._began(begin, found) as connection:
            if found is not None:
                connection.take_numbers()
            yield connection

    @contextmanager
    def noting(self, space: str | None, wait_ms: int) -> Iterator[PostgresConnection]:
        """Begin a minor write that does not wait for the disk, nor long for other writers."""
        self._refuse_read_only()
        found = self.find(space)
        # A lock timeout of 0 would mean to wait for ever.
        wait = set_local("lock_timeout", max(1, wait_ms))
        unknown = space is not None and found is None
        begin = [WRITE, enter(self.schema, found, wait, _UNSAFE, unknown=unknown)]
        with self._began(begin, found) as connection:
            yield connection

    @contextmanager
    def locking(self) -> Iterator[psycopg.Connection[Any]]:
        """Hold a transaction for statements that lock whole tables; do not wait long for those."""
        self._refuse_read_only()
        with self.connected() as connection:
            connection.execute(f"{WRITE}; SET LOCAL lock_timeout = {self.busy_ms}")
            yield connection
            with translating(self.address.location, committing=True):
                connection.execute("COMMIT")

    @contextmanager
    def _began(
        self, begin: list[str], space: Space | None, *, writes: bool = True
    ) -> Iterator[PostgresConnection]:
        """Run a transaction in a pipeline: a statement waits only if its answer is read.

        The server answers the first statements with the first question, and the last statement
        when the transaction is committed; nobody waits for the end of a transaction that only read.
        """
        with self._lent() as raw:
            pipeline = raw.pipe()
            try:
                for statement in begin:
                    raw.execute(statement)
                memory = None if writes else self._clocks
                yield PostgresConnection(raw, pipeline, self.schema, self.parts, space, memory)
                if writes:
                    self._commit(raw, pipeline)
            except BaseException:
                # The pool rolls the transaction back, or closes a connection on which this fails.
                with contextlib.suppress(psycopg.Error):
                    raw.unpipe()
                raise
            if not writes:
                # The answers are here, whatever happens now: the pool finds out.
                with contextlib.suppress(psycopg.Error):
                    raw.end_reading()

    def _commit(self, raw: PipelinedConnection, pipeline: psycopg.Pipeline) -> None:
        """Commit the transaction, or raise the error of a statement whose answer was not read."""
        with translating(self.address.location, committing=True), self._noticing_pooler(raw):
            answer = raw.execute("COMMIT")
            pipeline.sync()  # waits for all answers
        # The server answers the commit of a failed transaction with a rollback.
        if answer.statusmessage != "COMMIT":
            raise StoreError("the server rolled the change back", "try again")

    def _refuse_read_only(self) -> None:
        if self.writable:
            return
        if self.refusal is not None:
            raise StoreReadOnly(self.refusal.message, self.refusal.hint)
        location = name_store(self.address.location)
        if self.may_write:
            raise StoreReadOnly(
                Hint(
                    location,
                    " can only be read: it is a replica, or the user has "
                    "default_transaction_read_only on",
                ),
                for_operator(
                    "give the address of the primary server, or let the administrator switch "
                    "default_transaction_read_only off"
                ),
            )
        with self.connected() as connection:
            hint = hint_for(connection, self.schema)
        raise StoreReadOnly(
            Hint("the user of ", location, " may read it and not write to it"),
            for_operator(hint or ""),
        )

    def find(self, space: str | None) -> Space | None:
        """Find the number and part of a space; neither ever changes."""
        if space is None:
            return None
        found = self._spaces.get(space)
        if found is None:
            with self.connected() as connection:
                row = connection.execute(
                    f"SELECT space_no, part FROM {self.schema}.spaces WHERE name = $1", (space,)
                ).fetchone()
            if row is not None:
                found = self._spaces[space] = Space(*row)
        return found

    def _add(self, space: str) -> Space:
        wait = f"SET LOCAL lock_timeout = {self.busy_ms}"
        with self._began([WRITE, wait], None) as connection:
            connection.raw.execute(
                f"INSERT INTO {self.schema}.spaces (space_no, name, part) SELECT number, $1, "
                f"number % $2 FROM nextval('{self.schema}.space_numbers') AS number "
                "ON CONFLICT (name) DO NOTHING",
                (space, self.parts),
            )
        found = self.find(space)
        assert found is not None, "the space was added just now"
        return found

    def _has_model(self) -> bool:
        """Say whether the store has a model; until then a save may change the whole store."""
        if not self._model_known:
            with self.connected() as connection:
                row = connection.execute(
                    f"SELECT 1 FROM {self.schema}.store WHERE key = 'model'"
                ).fetchone()
            self._model_known = row is not None
        return self._model_known

    @property
    def schemas(self) -> list[str]:
        """List the schemas of the store and of its parts."""
        return [self.schema, *(part_schema(self.schema, each) for each in range(self.parts))]

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
