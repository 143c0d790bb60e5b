"""Define the rows that people look at, in lists and over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from byheart.model import Brief, ChangedMemory, Filter, Lane, TextVersion

# The fields whose values can be listed.
NamedField = Literal["memory_id", "session_id", "kind", "tag"]


class DayCount(NamedTuple):
    """The number of memories of a kind on a day; days are counted from 1970-01-01."""

    day: int
    kind: str
    memories: int


class TimeSpan(NamedTuple):
    """The moments of the first and the last memory."""

    first_at: datetime | None
    last_at: datetime | None


class ChangeMark(NamedTuple):
    """A moment of a space: the last change, and the highest number of a memory so far."""

    change_no: int
    memory_no: int


class ViewReader(Protocol):
    """Read lists without texts, earlier texts, and counts over time."""

    def briefs(self, memory_ids: Sequence[str], space: str) -> list[Brief]:
        """Fetch memories in brief, in the order asked, forgotten ones too; skip unknown ids."""
        ...

    def versions(
        self, memory_id: str, space: str, limit: int, offset: int
    ) -> tuple[list[TextVersion], int]:
        """Fetch the texts of a memory, the current one first, and count them all."""
        ...

    def days(self, where: Filter, offset_micros: int) -> list[DayCount]:
        """Count the memories of each day and kind; a day begins `offset_micros` before UTC."""
        ...

    def languages(self, where: Filter) -> dict[str, int]:
        """Count the memories in each language."""
        ...

    def span(self, where: Filter) -> TimeSpan:
        """Give the moments of the first and the last memory."""
        ...

    def lanes(self, where: Filter, limit: int, offset: int) -> tuple[list[Lane], int]:
        """List the sessions with memories, the latest first, and count them all."""
        ...

    def names(
        self, field: NamedField, where: Filter, prefix: str, limit: int
    ) -> tuple[list[str], int]:
        """List the values of a field that begin with a prefix, the latest first; count them all."""
        ...

    def mark(self) -> ChangeMark:
        """Give the mark of this moment, in the space of this view."""
        ...

    def changed_since(self, mark: ChangeMark, space: str, limit: int) -> list[ChangedMemory]:
        """List memories that changed after a mark and still exist, the latest change first."""
        ...
