"""Define the rows that a review reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from byheart.model import Filter


class TextStamp(NamedTuple):
    """Name the row of a text, its version, its kind, and whether it was said in a session."""

    memory_no: int
    version: int
    kind: str
    is_turn: bool


class ReviewedText(NamedTuple):
    """A text with the fields by which a review compares it with others."""

    memory_no: int
    memory_id: str
    kind: str
    title: str | None
    summary: str
    content: str
    session_id: str | None
    entities: tuple[str, ...]
    importance: float


class ReviewReader(Protocol):
    """Read what a review looks at."""

    def stamps(self, where: Filter) -> list[TextStamp]:
        """Name the rows of all texts that satisfy a filter, in the order of their numbers."""
        ...

    def texts(self, memory_nos: Sequence[int]) -> list[ReviewedText]:
        """Fetch texts by the numbers of their rows, in that order; leave out unknown ones."""
        ...

    def kept(self, space: str) -> set[str]:
        """Name the items of a space that somebody decided to keep."""
        ...


class ReviewRows(ReviewReader, Protocol):
    """Record decisions of reviews."""

    def keep(
        self, space: str, item_id: str, memory_ids: Sequence[str], at: datetime, who: str
    ) -> bool:
        """Record that an item is kept as it is; say whether this is new.

        The decision goes with any of the memories.
        """
        ...

    def unkeep(self, space: str, item_id: str) -> bool:
        """Remove the decision about an item; say whether there was one."""
        ...
