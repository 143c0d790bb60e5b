"""Hold the answers that a transaction prefetched, until a change makes them stale."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import psycopg

from byheart.startup.late_patterns import late_pattern
from byheart.storage.sql.connection import Values

_CHANGED = late_pattern(r"\b(INSERT INTO|UPDATE|DELETE FROM) (\w+)")
# A row that is deleted from one of these tables takes rows of other tables with it.
_OWNING = frozenset(("memories", "chunks", "entities", "workspaces"))


class Sent(BaseException):
    """End a call that is only prefetched: its first question was sent.

    This is no `Exception`, so that nothing but `prefetch` catches it.
    """


class PrefetchedAnswers:
    """The questions of one transaction that were sent before their answers were asked for."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, Values], psycopg.Cursor[Any] | list[Any]] = {}

    def add(self, statement: str, values: Values, cursor: psycopg.Cursor[Any]) -> None:
        """Add a question whose answer is still on its way."""
        self._answers[statement, tuple(values)] = cursor

    def holds(self, statement: str, values: Values) -> bool:
        """Say whether a question was sent, whether or not its answer was read."""
        return (statement, tuple(values)) in self._answers

    def is_read(self, statement: str, values: Values) -> bool:
        """Say whether the answer to a question was read already."""
        return isinstance(self._answers.get((statement, tuple(values))), list)

    def rows(self, statement: str, values: Values) -> list[Any] | None:
        """Give the answer to a question; `None` if it was not sent."""
        if not self._answers:
            return None
        key = (statement, tuple(values))
        try:
            found = self._answers.get(key)
        except TypeError:  # a list of values cannot be a key, and was never prefetched
            return None
        if isinstance(found, psycopg.Cursor):
            found = self._answers[key] = found.fetchall()
        return found

    def forget(self, statement: str) -> None:
        """Forget the answers that a statement may change."""
        if not self._answers:
            return
        tables, every = _changed_by(statement)
        self._answers = {
            key: answer
            for key, answer in self._answers.items()
            if not (every or any(table in _words_of(key[0]) for table in tables))
        }

    def forget_all(self) -> None:
        """Forget all answers."""
        self._answers.clear()


@lru_cache(512)
def _changed_by(statement: str) -> tuple[tuple[str, ...], bool]:
    """Name the tables that a statement changes, and say whether it may change any table."""
    found = _CHANGED.findall(statement)
    every = any(verb == "DELETE FROM" and table in _OWNING for verb, table in found)
    return tuple(table for _, table in found), every


@lru_cache(512)
def _words_of(statement: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", statement))
