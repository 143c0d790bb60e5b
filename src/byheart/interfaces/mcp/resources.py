"""Resources: memories and sessions under addresses that a client can keep.

`memory://{memory_id}` is one memory, `memory://sessions/{session_id}` what a session saved.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from byheart.errors import NotFound
from byheart.interfaces.operations import OPERATIONS, Grant, perform
from byheart.memory_store import MemoryStore

SCHEME = "memory://"
_SESSIONS = "sessions/"
_PER_PAGE = 50
_MARKDOWN = "text/markdown"


def memory_uri(memory_id: str) -> str:
    """Give the address of a memory."""
    return f"{SCHEME}{quote(memory_id, safe='')}"


def session_uri(session_id: str) -> str:
    """Give the address of a session."""
    return f"{SCHEME}{_SESSIONS}{quote(session_id, safe='')}"


def list_resources(
    store: MemoryStore, grant: Grant, cursor: str | None
) -> types.ListResourcesResult:
    """List memories, the latest first, a page at a time; before them, the latest sessions."""
    offset = int(cursor) if cursor and cursor.isdecimal() else 0
    page = perform(store, OPERATIONS["list"], {"limit": _PER_PAGE, "offset": offset}, grant)
    resources = [] if offset else _sessions(store, grant)
    resources += [_memory(each) for each in page["memories"]]
    after = str(offset + _PER_PAGE) if page["has_more"] else None
    return types.ListResourcesResult(resources=resources, next_cursor=after)


def _sessions(store: MemoryStore, grant: Grant) -> list[types.Resource]:
    if grant.session_id is not None:
        return []
    sessions = perform(store, OPERATIONS["sessions"], {"limit": _PER_PAGE}, grant)
    return [
        types.Resource(
            uri=session_uri(each["session_id"]),
            name=each["session_id"],
            title=f"Session {each['session_id']}",
            description=f"{each['memory_count']} memories, last {each['latest_activity'][:16]}",
            mime_type=_MARKDOWN,
        )
        for each in {each["session_id"]: each for each in sessions}.values()
    ]


def _memory(memory: dict[str, Any]) -> types.Resource:
    return types.Resource(
        uri=memory_uri(memory["memory_id"]),
        name=memory["memory_id"],
        title=memory["title"] or memory["summary"],
        description=f"{memory['kind']} of {memory['created_at'][:10]}",
        mime_type=_MARKDOWN,
        size=len(memory["content"].encode()),
    )


def read_resource(store: MemoryStore, grant: Grant, uri: str) -> types.ReadResourceResult:
    """Read what stands at an address."""
    if not uri.startswith(SCHEME):
        raise NotFound(f"there is nothing at {uri!r}", "addresses are memory://{memory_id}")
    name = uri.removeprefix(SCHEME)
    if name.startswith(_SESSIONS):
        text = _read_session(store, grant, unquote(name.removeprefix(_SESSIONS)))
    else:
        memory = perform(store, OPERATIONS["get"], {"memory_id": unquote(name)}, grant)
        text = memory["content"]
    contents = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
    return types.ReadResourceResult(contents=[contents])


def _read_session(store: MemoryStore, grant: Grant, session_id: str) -> str:
    asked = {"session_id": session_id, "include_global": False, "limit": _PER_PAGE}
    page = perform(store, OPERATIONS["list"], asked, grant)
    if not page["memories"]:
        raise NotFound(f"there is no session {session_id!r}", "memory_sessions lists them")
    parts = [f"# Session {session_id}", *map(_entry, page["memories"])]
    if page["has_more"]:
        parts.append(f"And {page['total'] - len(page['memories'])} more: use memory_search.")
    return "\n\n".join(parts)


def _entry(memory: dict[str, Any]) -> str:
    heading = memory["title"] or memory["summary"]
    return (
        f"## {heading}\n\n{memory['kind']}, {memory['created_at'][:16]}, "
        f"{memory_uri(memory['memory_id'])}\n\n{memory['content']}"
    )
