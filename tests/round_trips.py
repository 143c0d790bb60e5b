"""Count the round trips that a call to a PostgreSQL store waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from byheart.storage.postgres.pipelined_connection import PipelinedConnection


class RoundTrips:
    """Count how often one thread waits for answers of the server.

    In pipeline mode psycopg sends most statements without waiting, and waits when an answer is
    fetched or the pipeline is synchronized. Threads that write notes are not counted.
    """

    def __init__(self) -> None:
        self._number = 0
        self._thread: int | None = None

    def count(self, call: Callable[[], object]) -> int:
        """Count the round trips of a call."""
        self._number, self._thread = 0, threading.get_ident()
        try:
            call()
        finally:
            self._thread = None
        return self._number

    def notice(self, connection: PipelinedConnection, work: Generator[Any, Any, Any]) -> None:
        """Count one wait of a connection, if it waits for an answer."""
        is_piped = connection._pipeline is not None
        sends_only = is_piped and work.__name__ not in ("_fetch_gen", "_sync_gen", "_exit_gen")
        if threading.get_ident() == self._thread and not sends_only:
            self._number += 1

    def undo(self) -> None:
        """Count one wait less: the answer was there already."""
        if threading.get_ident() == self._thread:
            self._number -= 1


@contextmanager
def counting_round_trips() -> Iterator[RoundTrips]:
    """Count the round trips of all connections of this process."""
    found, wait, read_ending = (
        RoundTrips(),
        PipelinedConnection.wait,
        PipelinedConnection.read_ending,
    )

    def counted_wait(self: PipelinedConnection, gen: Any, *given: Any, **named: Any) -> Any:
        found.notice(self, gen)
        return wait(self, gen, *given, **named)

    def uncounted_reading(self: PipelinedConnection) -> None:
        found.undo()
        read_ending(self)

    PipelinedConnection.wait = counted_wait  # type: ignore[method-assign,assignment]
    PipelinedConnection.read_ending = uncounted_reading  # type: ignore[method-assign]
    try:
        yield found
    finally:
        PipelinedConnection.wait = wait  # type: ignore[method-assign]
        PipelinedConnection.read_ending = read_ending  # type: ignore[method-assign]
