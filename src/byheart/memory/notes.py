"""Make notes about the memories that an answer gives."""

from __future__ import annotations

from collections.abc import Iterable

from byheart.contracts import Emission, MemoryAccess
from byheart.system import clock


def accesses(memory_ids: Iterable[str], space: str) -> list[MemoryAccess]:
    """Note that memories were given now as part of an answer."""
    now = clock.now()
    return [MemoryAccess(memory_id, space, now) for memory_id in memory_ids]


def emissions(passages: Iterable[str], space: str, session_id: str | None) -> list[Emission]:
    """Note that passages, or whole memories, are given out now for a prompt."""
    now = clock.now()
    return [Emission(passage, space, session_id, now) for passage in passages]
