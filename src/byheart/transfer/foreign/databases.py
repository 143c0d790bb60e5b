"""Read the SQLite databases of other programs: each layout is known by its tables and columns."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from byheart.errors import InvalidInput
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    label,
    labels,
    moment,
    title,
    without_nothing,
    word,
)
from byheart.transfer.foreign.sources import Source

BEGINNING = b"SQLite format 3\0"
SUFFIXES = (".db", ".sqlite", ".sqlite3")
_MILLISECONDS = 1000
_MOST_IMPORTANT = 10.0
_NO_SLUG = late_pattern(r"[^a-z0-9_]+")
_CHROMA_TEXT = "chroma:document"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """Describe the database of one program."""

    name: str
    # The tables by which it is known, each with some of its columns.
    known_by: Mapping[str, tuple[str, ...]]
    # The tables to read, and what a row of each becomes.
    tables: Mapping[str, Callable[[Row], Piece | Omission]]
    # A query in place of all columns of a table.
    queries: Mapping[str, str] | None = None


def find_layout(path: Path) -> Layout | None:
    """Recognize the program that wrote a database, by its tables."""
    with _opened(path) as database:
        held = _columns(database)
    for layout in LAYOUTS.values():
        if all(set(names) <= held.get(table, set()) for table, names in layout.known_by.items()):
            return layout
    return None


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:  # noqa: ARG001 - read from the disk
    """Yield each row of the tables that hold memories."""
    if source.file is None:
        raise InvalidInput("a database in an archive cannot be read", "unpack it first")
    layout = find_layout(source.file)
    if layout is None:
        raise InvalidInput("its tables are of no known program")
    with _opened(source.file) as database:
        held = _columns(database)
        for table, convert in layout.tables.items():
            if table in held:
                query = (layout.queries or {}).get(table, f'SELECT * FROM "{table}"')
                yield from _rows(database, f"{source.name} {table}", query, convert)


def _rows(
    database: apsw.Connection, name: str, query: str, convert: Callable[[Row], Piece | Omission]
) -> Iterator[Item]:
    found = database.cursor()
    names: list[str] = []
    try:
        for number, values in enumerate(found.execute(query), 1):
            names = names or [each[0] for each in found.get_description()]
            place = f"{name} row {number}"
            try:
                yield Item(place, convert(dict(zip(names, values, strict=True))))
            except InvalidInput as error:
                yield Item(place, error)
    except apsw.Error as error:
        yield Item(name, InvalidInput(f"the database cannot be read: {error}"))
    finally:
        found.close(True)  # an import that stops at an error leaves it unfinished


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    try:
        database = apsw.Connection(
            f"{path.absolute().as_uri()}?mode=ro",
            flags=apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY,
        )
    except apsw.Error as error:
        raise InvalidInput(f"the database cannot be opened: {error}") from error
    try:
        yield database
    finally:
        database.close()


def _columns(database: apsw.Connection) -> dict[str, set[str]]:
    # Tables of extensions, such as vec0, cannot be described without them.
    query = (
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
        "WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    held: dict[str, set[str]] = {}
    try:
        for table, column in database.execute(query):
            held.setdefault(table, set()).add(column)
    except apsw.Error as error:
        raise InvalidInput(f"the database cannot be read: {error}") from error
    return held


# --- Values ---------------------------------------------------------------------------------------


def _text(row: Row, name: str) -> str:
    text = row.get(name)
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"it has no {name}")
    return text


def _parsed(value: object) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(value) if isinstance(value, str) and value else None
    return None


def _object(value: object) -> dict[str, Any]:
    parsed = _parsed(value)
    return parsed if isinstance(parsed, dict) else {}


def _list(value: object) -> list[Any]:
    parsed = _parsed(value)
    return parsed if isinstance(parsed, list) else []


def _kind(value: object, otherwise: str = "note") -> str:
    return _NO_SLUG.sub("_", word(value).lower()).strip("_")[:50] or otherwise


def _milliseconds(value: object) -> Any:
    return moment(value / _MILLISECONDS) if isinstance(value, int | float) else None


def _importance(value: object) -> float | None:
    return max(0.0, min(_MOST_IMPORTANT, float(value))) if isinstance(value, int | float) else None


# --- Programs -------------------------------------------------------------------------------------

_SINGULAR = {"reports": "report", "report_observations": "report_observation"}


def _vector_memory(row: Row) -> Piece:
    kind, session = word(row.get("memory_type")), label(row.get("session_id"))
    fields = without_nothing(
        content=_text({**row, "content": row.get("original_content") or row["content"]}, "content"),
        kind=_kind(_SINGULAR.get(kind, kind)),
        title=title(row.get("title")),
        summary=word(row.get("description")) or None,
        session_id=None if session == "global" else session,
        agent_id=label(row.get("agent_id")),
        session_iter=row.get("session_iter"),
        task_code=label(row.get("task_code")),
        tags=labels(_list(row.get("tags"))),
        metadata=_object(row.get("metadata")),
    )
    name = row.get("content_hash") or row["id"]
    return Piece(fields, label(f"vector-memory:{name}"), moment(row.get("created_at")))


def _memory_mcp(row: Row) -> Piece | Omission:
    if row.get("is_deleted"):
        return Omission("deleted memory")
    fields = without_nothing(
        content=_text(row, "content"),
        kind=_kind(row.get("type"), "fact"),
        summary=word(row.get("summary")) or None,
        importance=_importance(row.get("importance")),
        entities=labels(_list(row.get("named"))),
        expires_at=_milliseconds(row.get("expires_at")),
        metadata=_object(row.get("metadata")),
    )
    return Piece(fields, label(f"memory-mcp:{row['id']}"), _milliseconds(row.get("created_at")))


def _silentclaw(row: Row) -> Piece:
    fields = without_nothing(
        content=_text(row, "content"),
        kind="knowledge_base",
        title=title(row.get("path")),
        metadata={**_object(row.get("metadata")), "path": row.get("path")},
    )
    return Piece(fields, label(f"silentclaw:{row['id']}"), moment(row.get("updated_at")))


def _memory_service(row: Row) -> Piece | Omission:
    if row.get("deleted_at"):
        return Omission("deleted memory")
    fields = without_nothing(
        content=_text(row, "content"),
        kind=_kind(row.get("memory_type")),
        tags=labels(_list(row.get("tags")) or word(row.get("tags")).strip("[]").split(",")),
        metadata=_object(row.get("metadata")),
    )
    name = label(f"mcp-memory-service:{row['content_hash']}")
    return Piece(fields, name, moment(row.get("created_at")))


def _session_of(row: Row) -> str | None:
    return label(row.get("memory_session_id") or row.get("sdk_session_id"))


def _observation(row: Row) -> Piece:
    facts = [f"- {each}" for each in _list(row.get("facts")) if isinstance(each, str)]
    parts = (row.get("subtitle"), row.get("narrative") or row.get("text"), "\n".join(facts))
    return _of_claude_mem(row, "observation", _kind(row.get("type")), row.get("title"), parts)


_SUMMARY = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _summary(row: Row) -> Piece:
    told = [
        f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in _SUMMARY if row.get(name)
    ]
    return _of_claude_mem(row, "summary", "session_summary", row.get("request"), told)


def _of_claude_mem(row: Row, what: str, kind: str, name: object, parts: Any) -> Piece:
    text = "\n\n".join(each for each in parts if isinstance(each, str) and each.strip())
    files = [*_list(row.get("files_read")), *_list(row.get("files_modified"))]
    fields = without_nothing(
        content=_text({"text": text or row.get("title")}, "text"),
        kind=kind,
        title=title(name),
        session_id=_session_of(row),
        agent_id="claude-code",
        task_code=label(row.get("project")),
        tags=labels(_list(row.get("concepts"))),
        metadata={"files": files} if files else {},
    )
    at = row.get("created_at_epoch")
    return Piece(fields, label(f"claude-mem:{what}:{row['id']}:{at}"), _milliseconds(at))


def _prompt(row: Row) -> Piece:
    session = label(row.get("content_session_id") or row.get("claude_session_id")) or "unknown"
    at = row.get("created_at_epoch")
    fields = {"content": _text(row, "prompt_text"), "role": "user", "session_id": session}
    return Piece(fields, label(f"claude-mem:prompt:{row['id']}:{at}"), _milliseconds(at))


def _chroma(row: Row) -> Piece:
    held = _object(row.get("held"))
    text = _text({"text": held.pop(_CHROMA_TEXT, None)}, "text")
    # MemPalace files its texts in wings and rooms.
    places = [held.get(name) for name in ("wing", "room", "hall")]
    fields = without_nothing(
        content=text,
        title=title(held.get("title") or held.get("source_file")),
        tags=labels(each for each in places if each),
        metadata={**held, "collection": row.get("collection")},
    )
    name = label(f"chroma:{row.get('collection')}:{row['embedding_id']}")
    at = held.get("filed_at") or held.get("created_at") or row.get("created_at")
    return Piece(fields, name, moment(at))


LAYOUTS: Mapping[str, Layout] = {
    each.name: each
    for each in (
        Layout(
            "vector-memory",
            {"session_memories": ("memory_type", "agent_id", "session_id", "content_hash")},
            {"session_memories": _vector_memory},
        ),
        Layout(
            "claude-mem",
            {"observations": ("project", "type", "created_at_epoch"), "sdk_sessions": ("project",)},
            {"observations": _observation, "session_summaries": _summary, "user_prompts": _prompt},
        ),
        Layout(
            "mcp-memory-service",
            {"memories": ("content_hash", "content", "tags", "memory_type")},
            {"memories": _memory_service},
        ),
        Layout(
            "memory-mcp",
            {"memories": ("id", "content", "summary", "type", "importance", "access_count")},
            {"memories": _memory_mcp},
            {
                "memories": "SELECT m.*, (SELECT json_group_array(e.name) FROM memory_entities me "
                "JOIN entities e ON e.id = me.entity_id WHERE me.memory_id = m.id) AS named "
                "FROM memories m"
            },
        ),
        Layout(
            "silentclaw",
            {"documents": ("id", "path", "content", "content_hash", "updated_at")},
            {"documents": _silentclaw},
        ),
        Layout(
            "chroma",
            {"embeddings": ("embedding_id", "segment_id"), "embedding_metadata": ("string_value",)},
            {"embeddings": _chroma},
            {
                "embeddings": "SELECT e.embedding_id, e.created_at, c.name AS collection, "
                "(SELECT json_group_object(m.key, coalesce(m.string_value, m.int_value, "
                "m.float_value, m.bool_value)) FROM embedding_metadata m WHERE m.id = e.id) "
                "AS held "
                "FROM embeddings e JOIN segments s ON s.id = e.segment_id "
                "JOIN collections c ON c.id = s.collection"
            },
        ),
    )
}
