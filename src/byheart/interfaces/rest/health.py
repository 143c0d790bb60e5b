"""How the server is: alive, and ready to answer from its store."""

from __future__ import annotations

from dataclasses import dataclass

from byheart.errors import ByheartError
from byheart.memory_store import MemoryStore


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the process answers at all."""

    status: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the store answers, and whether all of it does; reasons are for those with a token."""

    status: str
    degraded: bool
    reason: str | None


def look(store: MemoryStore, *, tell: bool) -> tuple[Readiness, int]:
    """Ask the store how it is, and say with which status that is answered."""
    try:
        degraded = store.status().degraded
    except ByheartError as error:
        return Readiness("not ready", True, error.message if tell else None), 503
    return Readiness("ready", degraded is not None, degraded if tell else None), 200
