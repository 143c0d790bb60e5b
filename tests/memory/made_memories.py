"""Make memories as values, for rules that are tested without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from byheart.contracts import DedupKey, MemoryState
from byheart.model import Memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


def held(memory_id: str = "mem_a", **fields: Any) -> MemoryState:
    """Make a visible memory at version 3, as a transaction finds it."""
    given = {
        "memory_no": 7,
        "memory_id": memory_id,
        "key": DedupKey("space", None, "note", "a" * 64),
        "version": 3,
        "created_at": NOW - timedelta(days=9),
        "since_at": NOW - timedelta(days=1),
        "expires_at": None,
        "forgotten_at": None,
        "hidden_by": None,
        "superseded_by": None,
        "superseded_at": None,
        "pinned_at": None,
        "untrusted_at": None,
        "valid_from": None,
        "valid_until": None,
        "accessed_at": None,
        "access_count": 0,
        "turn_no": None,
        "feedback": None,
        "chunks": 2,
        "pending_vectors": 1,
    }
    return MemoryState(**given | fields)


def memory(memory_id: str = "mem_a", **fields: Any) -> Memory:
    """Make the same memory whole."""
    given: dict[str, Any] = {
        "memory_id": memory_id,
        "space": "space",
        "kind": "note",
        "content": "text",
        "content_hash": "a" * 64,
        "title": None,
        "summary": "text",
        "source": "manual",
        "session_id": None,
        "agent_id": None,
        "session_iter": None,
        "task_code": None,
        "path": None,
        "tags": (),
        "entities": (),
        "importance": 5.0,
        "metadata": {},
        "format": "text",
        "chunks": 2,
        "created_at": NOW - timedelta(days=9),
        "updated_at": NOW - timedelta(days=1),
    }
    return Memory(**given | fields)
