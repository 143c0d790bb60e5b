"""Make a space with a past: sessions and memories of the last months, as an export has them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from byheart.store import MemoryStore

SPACE = "past"
NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
# The session's id has characters that mean something in addresses.
SESSION = "shop/refund flow #2"
OTHER_SESSION = "infra-1"
QUESTION = "Who may approve a refund above 500 euros?"


def days_ago(days: float) -> datetime:
    """Give a moment in the past, about noon."""
    return NOW - timedelta(days=days)


def day_of(days: float) -> str:
    """Write the day of that moment as the page does."""
    return days_ago(days).strftime("%Y-%m-%d")


def fill_past(store: MemoryStore) -> None:
    """Import the memories of `SPACE`."""
    import_past(store, [*_lines()])


def import_past(store: MemoryStore, lines: Sequence[Mapping[str, Any]]) -> None:
    """Import memories that `memory_of` made."""
    head = {"format": "byheart-export", "version": 1, "model": None, "models": []}
    end = {"type": "end", "memories": len(lines)}
    text = "".join(json.dumps(each) + "\n" for each in (head, *lines, end))
    done = store.import_(io.BytesIO(text.encode()))
    assert done.imported == len(lines), done


def _lines() -> Iterator[dict[str, Any]]:
    turns = (
        ("user", "message", QUESTION, None),
        ("tool", "tool_output", "\n".join(f"policy.md:{at}: refund" for at in range(40)), "grep"),
        ("assistant", "message", "The head of support approves refunds above 500 euros.", None),
        ("user", "message", "And below that?", None),
        ("assistant", "message", "Every agent of support may approve those.", None),
    )
    for at, (role, kind, text, title) in enumerate(turns):
        moment = days_ago(20) + timedelta(minutes=at)
        yield memory_of(
            text, moment, kind=kind, role=role, title=title, session_id=SESSION, turn_no=at + 1
        )
    yield memory_of(
        "Refunds above 500 euros need the head of support.",
        days_ago(20) + timedelta(minutes=2, seconds=30),
        session_id=SESSION,
        turn_no=9,
    )
    for at in range(45):
        yield memory_of(
            f"Step {at} of the move to the new data centre.",
            days_ago(60) + timedelta(minutes=at),
            kind="message",
            role="user" if at % 2 == 0 else "assistant",
            session_id=OTHER_SESSION,
            turn_no=at + 1,
        )
    for at in range(30):
        yield memory_of(
            f"Shelf {at} holds parcels for row {at * 7}.", days_ago(100 + at), kind="fact"
        )


def memory_of(content: str, at: datetime, kind: str = "note", **more: Any) -> dict[str, Any]:
    """Describe a memory as a line of an export does."""
    moment = at.isoformat().replace("+00:00", "Z")
    number = more.pop("turn_no", None)
    told: dict[str, Any] = {
        "type": "memory",
        "memory_id": "mem_" + sha256(f"{content}{moment}".encode()).hexdigest()[:26],
        "space": SPACE,
        "kind": kind,
        "title": None,
        "summary": content[:100],
        "source": "manual",
        "origin": "agent",
        "session_id": None,
        "agent_id": "claude",
        "session_iter": None,
        "task_code": None,
        "path": None,
        "tags": [],
        "entities": [],
        "language": "en",
        "importance": 5.0,
        "metadata": {},
        "format": "text",
        "derived": [],
        "version": 1,
        **dict.fromkeys(("created_at", "updated_at", "since_at"), moment),
        **dict.fromkeys(("replaced_at", "expires_at", "forgotten_at", "superseded_by")),
        **dict.fromkeys(("superseded_at", "accessed_at", "role")),
        "access_count": 0,
        "content_hash": sha256(content.encode()).hexdigest(),
        "content": content,
        "chunks": [
            {
                "start_char": 0,
                "end_char": len(content),
                "start_line": 1,
                "end_line": content.count("\n") + 1,
                "chunk_type": "text",
                "headings": [],
                "token_count": len(content) // 4 + 1,
            }
        ],
        "earlier": [],
        "history": [
            {
                "operation": "create",
                "at": moment,
                "who": "claude",
                "version": 1,
                "reason": None,
                "changes": {},
            }
        ],
        **more,
    }
    if number is not None:
        told["turn_no"] = number << 20
    return told
