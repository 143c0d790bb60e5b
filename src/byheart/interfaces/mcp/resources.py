"""Offer memories and sessions as resources, under addresses that a client can keep.

`memory://{memory_id}` is one memory; `memory://sessions/{session_id}` lists what a session saved,
`memory://kinds/{kind}` and `memory://tags/{tag}` the latest memories of a kind and with a tag.
A client puts a resource into the prompt, so control marks in its text are broken up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from byheart.conversation.prompt import break_marks
from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.operations import OPERATIONS, Grant, perform
from byheart.model import ChangedMemory
from byheart.store import MemoryStore

SCHEME = "memory://"
_SESSIONS = "sessions/"
# The other lists: the beginning of their addresses, the filter and the title.
_LISTS: Mapping[str, tuple[str, str]] = {"kinds/": ("kind", "Kind"), "tags/": ("tags", "Tag")}
_PER_PAGE = 50
_MARKDOWN = "text/markdown"
# How many characters of each memory a session shows; the memory's own address has the whole text.
_LONGEST_ENTRY = 2_000
_LONGEST_SIZED = 20_000


def memory_uri(memory_id: str) -> str:
    """Return the address of a memory."""
    return f"{SCHEME}{quote(memory_id, safe='')}"


def memory_at(name: str) -> str:
    """Return the id of a memory that is named by its id or its address."""
    return unquote(name.removeprefix(SCHEME)) if name.startswith(SCHEME) else name


def session_uri(session_id: str) -> str:
    """Return the address of a session."""
    return f"{SCHEME}{_SESSIONS}{quote(session_id, safe='')}"


def names_one_memory(uri: str) -> bool:
    """Tell the address of a memory from that of a list."""
    return "/" not in uri.removeprefix(SCHEME)


def uris_of_change(changed: ChangedMemory) -> Iterator[str]:
    """List the addresses whose content changed with a memory."""
    yield memory_uri(changed.memory_id)
    yield f"{SCHEME}kinds/{quote(changed.kind, safe='')}"
    if changed.session_id is not None:
        yield session_uri(changed.session_id)


def list_resources(
    store: MemoryStore, grant: Grant, cursor: str | None
) -> types.ListResourcesResult:
    """List a page of memories, the latest first; the first page begins with the latest sessions."""
    offset = _offset(cursor)
    page = perform(store, OPERATIONS["list"], {"limit": _PER_PAGE, "offset": offset}, grant)
    resources = [] if offset else _sessions(store, grant)
    resources += [_memory(each) for each in page["memories"]]
    after = str(offset + _PER_PAGE) if page["has_more"] else None
    return types.ListResourcesResult(resources=resources, next_cursor=after)


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,7}", cursor):
        raise InvalidInput(f"the cursor {cursor[:50]!r} is none of ours", "begin without one")
    return int(cursor)


def _sessions(store: MemoryStore, grant: Grant) -> list[types.Resource]:
    if grant.session_id is not None:
        return []
    by_agent = perform(store, OPERATIONS["sessions"], {"limit": _PER_PAGE}, grant)
    count: Counter[str] = Counter()
    latest: dict[str, str] = {}
    for each in by_agent:
        count[each["session_id"]] += each["memory_count"]
        latest.setdefault(each["session_id"], each["latest_activity"])  # the latest comes first
    return [
        types.Resource(
            uri=session_uri(session_id),
            name=session_id,
            title=f"Session {session_id}",
            description=f"{count[session_id]} memories, last {at[:16]}",
            mime_type=_MARKDOWN,
        )
        for session_id, at in latest.items()
    ]


def _memory(memory: dict[str, Any]) -> types.Resource:
    return types.Resource(
        uri=memory_uri(memory["memory_id"]),
        name=memory["memory_id"],
        title=memory["title"] or memory["summary"],
        description=f"{memory['kind']} of {memory['created_at'][:10]}",
        mime_type=_MARKDOWN,
        size=_size(memory["content"]),
    )


def _size(text: str) -> int | None:
    """Return the size of a resource in bytes, or `None` for a long text: measuring takes long."""
    return len(break_marks(text).encode()) if len(text) <= _LONGEST_SIZED else None


def read_resource(store: MemoryStore, grant: Grant, uri: str) -> types.ReadResourceResult:
    """Read the memory, the session or the list at an address."""
    if not uri.startswith(SCHEME):
        raise NotFound(f"there is nothing at {uri!r}", "addresses are memory://{memory_id}")
    name = uri.removeprefix(SCHEME)
    beginning, slash, value = name.partition("/")
    if name.startswith(_SESSIONS):
        text = _read_session(store, grant, unquote(value))
    elif beginning + slash in _LISTS:
        text = _read_list(store, grant, *_LISTS[beginning + slash], unquote(value))
    else:
        memory = perform(store, OPERATIONS["get"], {"memory_id": memory_at(uri)}, grant)
        text = break_marks(memory["content"])
    contents = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
    return types.ReadResourceResult(contents=[contents])


def _read_session(store: MemoryStore, grant: Grant, session_id: str) -> str:
    asked = {"session_id": session_id, "include_global": False, "limit": _PER_PAGE}
    page = perform(store, OPERATIONS["list"], asked, grant)
    if not page["memories"]:
        raise NotFound(f"there is no session {session_id!r}", "memory_sessions lists them")
    return _write_page(f"Session {session_id}", page)


def _read_list(store: MemoryStore, grant: Grant, field: str, title: str, value: str) -> str:
    page = perform(store, OPERATIONS["list"], {field: [value], "limit": _PER_PAGE}, grant)
    return _write_page(f"{title} {value}", page)


def _write_page(title: str, page: dict[str, Any]) -> str:
    parts = [f"# {break_marks(title)}", *map(_entry, reversed(page["memories"]))]
    if page["has_more"]:
        parts.insert(1, f"{page['total'] - len(page['memories'])} older: use memory_search.")
    return "\n\n".join(parts)


def _entry(memory: dict[str, Any]) -> str:
    said = memory["role"] or memory["kind"]
    title = f": {break_marks(memory['title'])}" if memory["title"] else ""
    return (
        f"## {said}{title}\n\n{memory['created_at'][:16]}, {memory_uri(memory['memory_id'])}\n\n"
        f"{break_marks(_beginning(memory['content']))}"
    )


def _beginning(text: str) -> str:
    return text if len(text) <= _LONGEST_ENTRY else f"{text[:_LONGEST_ENTRY].rstrip()} …"
