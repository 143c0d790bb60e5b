"""What is asked of a search, already checked."""

from __future__ import annotations

from dataclasses import dataclass

from byheart.model import Filter, Granularity, Mode


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question and how it is to be answered; an empty query asks for a listing."""

    query: str
    where: Filter
    limit: int = 10
    offset: int = 0
    mode: Mode = "hybrid"
    granularity: Granularity = "fine"
    raw: bool = False
    explain: bool = False
    snippet_chars: int = 500
