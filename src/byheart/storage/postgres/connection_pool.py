"""Keep the connections of one process to a PostgreSQL server for further use.

A caller that needs a new connection makes it itself, so that it gets the reason of a failure at
once. A pool with threads of its own would wait for a server that is down, and hide the reason.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from byheart.storage.postgres.error_translation import explain_closed, explain_wait, translating
from byheart.storage.postgres.pipelined_connection import PipelinedConnection
from byheart.system.forks import explain_refusal, never_free, tell_after_fork

# A connection that was used a moment ago is used again without a question to the server.
_TRUSTED_SECONDS = 1.0
# A process that does nothing for a while leaves its connections to others.
_IDLE_SECONDS = 300.0

RawConnection = PipelinedConnection
_rollbacks = itertools.count()


class _Idle(NamedTuple):
    """A connection that nobody uses, and the time of its last use."""

    connection: RawConnection
    used_at: float


class ConnectionPool:
    """Lend connections to the threads of one process, at most `most` at a time."""

    def __init__(
        self,
        connect: Callable[[], RawConnection],
        location: str,
        most: int,
        wait_seconds: float,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> None:
        self._connect = connect
        self._location = location
        self._wait_seconds = wait_seconds
        self._idle_seconds = idle_seconds
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        # The connection that was used last comes last, and is lent first.
        self._idle: list[_Idle] = []
        self._lent: set[RawConnection] = set()
        self._timer: threading.Timer | None = None
        self._closed = False
        self._inherited = False
        tell_after_fork(self)

    @contextmanager
    def lend(self) -> Iterator[RawConnection]:
        """Lend a connection that is in no transaction."""
        self._check_in()
        if not self._places.acquire(timeout=self._wait_seconds):
            raise explain_wait(self._location, self._wait_seconds)
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._places.release()

    @contextmanager
    def lend_alone(self) -> Iterator[RawConnection]:
        """Lend a new connection, which is not counted and not kept."""
        self._check_in()
        connection = self._open()
        try:
            yield connection
        finally:
            self._close(connection)

    def _check_in(self) -> None:
        if self._inherited:
            raise explain_refusal(f"{self._location} was open")
        if self._closed:
            raise explain_closed(self._location)

    def _take(self) -> RawConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, used_at = self._idle.pop()
                self._lent.add(connection)
            is_recent = time.monotonic() - used_at < _TRUSTED_SECONDS
            if _is_usable(connection, is_recent=is_recent):
                return connection
            self._close(connection)
        return self._open()

    def _open(self) -> RawConnection:
        with translating(self._location):
            connection = self._connect()
        with self._lock:
            self._lent.add(connection)
        return connection

    def _give_back(self, connection: RawConnection) -> None:
        if self._inherited:
            return
        if not _is_clean(connection):
            self._close(connection)
            return
        with self._lock:
            closed = self._closed
            if not closed:
                self._lent.discard(connection)
                self._idle.append(_Idle(connection, time.monotonic()))
                self._start_timer()
        if closed:
            self._close(connection)

    def _close(self, connection: RawConnection) -> None:
        if self._inherited:
            return
        with self._lock:
            self._lent.discard(connection)
        with contextlib.suppress(psycopg.Error):
            connection.close()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self._close_idle)
            self._timer.daemon = True
            self._timer.start()

    def _close_idle(self) -> None:
        """Close the connections that nobody used for a while."""
        with self._lock:
            self._timer = None
            limit = time.monotonic() - self._idle_seconds
            old = [each for each in self._idle if each.used_at <= limit]
            self._idle = [each for each in self._idle if each.used_at > limit]
            if self._idle:
                self._start_timer()
        for each in old:
            self._close(each.connection)

    def leave_to_parent(self) -> None:
        """Refuse every call in a forked child, and leave the sockets to the parent.

        The child gives its copies of the sockets up. Otherwise the server would not notice that
        the parent was killed, and would keep the locks of the parent.
        """
        self._inherited = True
        never_free(self)
        ended, other = socket.socketpair()
        other.close()
        with ended:
            for connection in (*self._lent, *(each.connection for each in self._idle)):
                with contextlib.suppress(psycopg.Error, OSError):
                    os.dup2(ended.fileno(), connection.pgconn.socket, inheritable=False)

    def close(self) -> None:
        """Close all connections; those in use are closed when they are given back."""
        if self._inherited:
            return
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
        for each in idle:
            self._close(each.connection)


def _is_usable(connection: RawConnection, *, is_recent: bool) -> bool:
    """Tell whether a connection still works; ask the server if it was not used for a while."""
    if connection.is_ending:
        if _is_quiet(connection):  # the answer is on its way, or never comes
            return is_recent
        with contextlib.suppress(psycopg.Error):
            connection.read_ending()
        if not connection.is_idle:
            return False
    return (is_recent and _is_quiet(connection)) or _answers(connection)


def _is_quiet(connection: RawConnection) -> bool:
    """Tell whether nothing came from the server since the last answer: no end, and no message."""
    try:
        readable, _, _ = select.select([connection.pgconn.socket], [], [], 0)
    except (psycopg.Error, OSError, ValueError):
        return False
    return not readable


def _answers(connection: RawConnection) -> bool:
    """Ask the server for nothing, to see whether the connection still works."""
    try:
        connection.unpipe()
        connection.execute("")
    except psycopg.Error:
        return False
    return True


def _is_clean(connection: RawConnection) -> bool:
    """Roll back a transaction that is still open; say whether the connection can be used again."""
    if connection.is_ending and not connection.closed:
        return True
    with contextlib.suppress(psycopg.Error):
        if connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        ):
            # The server skipped statements behind an error that psycopg takes for prepared. A
            # rollback that it has never seen before makes psycopg forget all of them.
            connection.execute(f"ROLLBACK -- {next(_rollbacks)}", prepare=False)
    return connection.is_idle
