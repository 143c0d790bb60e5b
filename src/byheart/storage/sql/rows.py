"""Convert rows of the database to values of the model, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple

from byheart.contracts import FoundChunk, StoredText
from byheart.model import UNEMBEDDED, Chunk, Heading, IndexedFile, Memory, MemoryFields
from byheart.model.damage import DamagedRow
from byheart.model.field_types import Codec
from byheart.model.fields import BY_NAME, FIELDS
from byheart.model.memories import RUNNING_SUMMARY_ID
from byheart.model.times import from_micros, to_micros
from byheart.storage.sql.checksums import checksum_of, hash_of

_TAGS = """(SELECT json_group_array(tag) FROM
    (SELECT tag FROM tags t WHERE t.memory_no = m.memory_no ORDER BY tag) AS own)"""
_ENTITIES = """(SELECT json_group_array(name) FROM
    (SELECT e.name FROM memory_entities me JOIN entities e USING (entity_no)
     WHERE me.memory_no = m.memory_no ORDER BY e.entity_no) AS named)"""
_CHUNK_COUNT = "(SELECT count(*) FROM chunks n WHERE n.memory_no = m.memory_no)"
# A turn may be empty: then it has no chunks.
CONTENT = """ifnull((SELECT string_agg(content, '') FROM (SELECT content FROM chunks p
    WHERE p.memory_no = m.memory_no ORDER BY chunk_index) AS parts), '')"""

# The file of a workspace that a memory was made of: its workspace is the nearest, and has read it.
INDEXED_FILE = """(SELECT CASE WHEN f.trouble IS NULL THEN f.size ELSE -1 END || ' ' || f.mtime_ns
    || ' ' || f.read_at || ' ' || length(f.path) || ' ' || w.root || f.path
    FROM workspaces w JOIN workspace_files f ON f.workspace_no = w.workspace_no
        AND f.path = substr(m.path, length(rtrim(w.root, '/')) + 2)
    WHERE m.kind = 'file' AND w.space = m.space AND f.memory_id = m.memory_id
    ORDER BY length(w.root) DESC LIMIT 1)"""

CHUNK = """
    c.chunk_no, c.chunk_index, c.content, c.start_char, c.end_char, c.start_line, c.end_line,
    c.chunk_type, c.headings, c.token_count"""

# The types of chunks that need no vectors, as a list for `IN`.
UNEMBEDDED_TYPES = "(" + ", ".join(f"'{each}'" for each in UNEMBEDDED) + ")"

# Conditions on a row of `memories`, to be written behind `m.` or alone: it is the running summary
# of its session, or it is not.
IS_SUMMARY = f"client_id IS NOT DISTINCT FROM '{RUNNING_SUMMARY_ID}'"
IS_NO_SUMMARY = f"client_id IS DISTINCT FROM '{RUNNING_SUMMARY_ID}'"


# --- What a memory's fields are in SQL ------------------------------------------------------------

# Fields that are no plain column.
_EXPRESSIONS = {
    # The row of an earlier text has a name of its own.
    "memory_id": "ifnull(m.version_of, m.memory_id)",
    "content": CONTENT,
    "content_hash": "lower(hex(m.content_hash))",
    "tags": _TAGS,
    "entities": _ENTITIES,
    "chunks": _CHUNK_COUNT,
}


def _names(text: str) -> tuple[str, ...]:
    # Most lists are empty: a context reads some eighty of them.
    return () if text == "[]" else tuple(json.loads(text))


def _object(text: str) -> Any:
    return {} if text == "{}" else json.loads(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


# Moments are read by `_decode`; values of the other codecs are read as they are.
_DECODERS: Mapping[Codec, Callable[[Any], Any]] = {
    "labels": _names,
    "json": _object,
    "words": _words,
}


def _select(noun: type[Memory] | type[MemoryFields]) -> tuple[str, ...]:
    """Name the fields of a noun that a row holds; `damaged` is found out when it is read."""
    names = tuple(each.name for each in fields(noun))
    assert names[-1] == "damaged"
    return names[:-1]


def _columns(names: Sequence[str]) -> str:
    return ", ".join(_EXPRESSIONS.get(name, f"m.{name}") for name in names)


class _Decoders(NamedTuple):
    """Hold the places of the moments in a row, and the decoder for each place of another type."""

    moments: tuple[int, ...]
    others: tuple[tuple[int, Callable[[Any], Any]], ...]


def _decoders(names: Sequence[str]) -> _Decoders:
    """Say which values of a row have to be decoded, and by what."""
    codecs = [BY_NAME[name].codec for name in names]
    return _Decoders(
        tuple(at for at, codec in enumerate(codecs) if codec == "moment"),
        tuple((at, _DECODERS[codec]) for at, codec in enumerate(codecs) if codec in _DECODERS),
    )


def _decode(values: list[Any], decoders: _Decoders) -> None:
    """Decode the values of a row in place."""
    for at in decoders.moments:
        micros = values[at]
        if micros is not None:  # most memories never expire, and are not replaced
            values[at] = from_micros(micros)
    for at, decode in decoders.others:
        values[at] = decode(values[at])


_MEMORY_NAMES, _FOUND_NAMES = _select(Memory), _select(MemoryFields)
_MEMORY_DECODERS, _FOUND_DECODERS = _decoders(_MEMORY_NAMES), _decoders(_FOUND_NAMES)
_CONTENT_AT = _MEMORY_NAMES.index("content")
_HASH_AT = _MEMORY_NAMES.index("content_hash")

MEMORY = _columns(_MEMORY_NAMES)
FOUND = f"{CHUNK}, {_columns(_FOUND_NAMES)}, c.checksum, {INDEXED_FILE}"

_ENCODERS: Mapping[Codec, Callable[[Any], Any]] = {
    "hash": bytes.fromhex,
    "json": lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True),
    "moment": lambda value: None if value is None else to_micros(value),
    "words": ",".join,
}


def _as_it_is(value: Any) -> Any:
    return value


def _stored(*, written: bool, owner: str) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple(
        (field.name, _ENCODERS.get(field.codec, _as_it_is))
        for field in FIELDS
        if field.column and field.written == written and field.owner == owner
    )


_COLUMN_ENCODERS: Mapping[str, Callable[[Any], Any]] = {
    **{field.name: _ENCODERS.get(field.codec, _as_it_is) for field in FIELDS if field.column},
    # Columns that are no field: users do not see them.
    "version_of": _as_it_is,
    "lapsed_at": _as_it_is,
}
_WRITTEN = _stored(written=True, owner="memory")
_OF_LIFE, _OF_TEXT = _stored(written=False, owner="memory"), _stored(written=False, owner="text")


def columns_of(memory: Memory, derived: Iterable[str]) -> dict[str, Any]:
    """Give the columns of a memory that a save or an update writes."""
    columns = {name: encode(getattr(memory, name)) for name, encode in _WRITTEN}
    columns["derived"] = ",".join(derived)
    return columns


def encode_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give the columns of some fields of a memory, as the database stores them.

    Names become part of a statement: raise `ValueError` for a name that is no column.
    """
    if unknown := values.keys() - _COLUMN_ENCODERS.keys():
        raise ValueError(f"memories have no column {', '.join(sorted(unknown))}")
    return {
        name: to_micros(value) if isinstance(value, datetime) else _COLUMN_ENCODERS[name](value)
        for name, value in values.items()
    }


def life_of(text: StoredText) -> dict[str, Any]:
    """Give the columns that change in the life of a memory: what an import brings with it."""
    return {
        **{name: encode(getattr(text.memory, name)) for name, encode in _OF_LIFE},
        **{name: encode(getattr(text, name)) for name, encode in _OF_TEXT},
    }


# --- Reading ------------------------------------------------------------------------------------


def select_fields(names: Sequence[str]) -> str:
    """Write the columns of some fields of a row `m` of `memories`."""
    return _columns(names)


def read_fields(names: Sequence[str], row: Any) -> list[Any]:
    """Read a row of `select_fields`."""
    values: Any = list(row)
    _decode(values, _decoders(names))
    return values  # type: ignore[no-any-return]


def to_memory(row: Any) -> Memory:
    """Read a row of `MEMORY`: its columns are in the order of the fields of `Memory`."""
    values: Any = list(row)
    _decode(values, _MEMORY_DECODERS)
    values.append(hash_of(row[_CONTENT_AT]) != row[_HASH_AT])
    return Memory(*values)


def to_chunk(row: Any) -> Chunk:
    """Read the columns of `CHUNK` behind `chunk_no`."""
    values: Any = list(row)
    values[7] = to_headings(row[7])
    return Chunk(*values)


def to_headings(text: Any) -> tuple[Heading, ...]:
    """Read headings as `headings_json` writes them."""
    try:
        return () if text == "[]" else tuple(Heading(*each) for each in json.loads(text))
    except TypeError as error:
        raise DamagedRow(f"{text!r} are no headings") from error


def to_found_chunk(row: Any) -> FoundChunk:
    """Read a row of `FOUND`."""
    values: Any = list(row[10:-2])
    _decode(values, _FOUND_DECODERS)
    values.append(checksum_of(row[2]) != row[-2])
    file = to_indexed_file(row[-1])
    return FoundChunk(row[0], to_chunk(row[1:10]), MemoryFields(*values), file)


def to_indexed_file(text: str | None) -> IndexedFile | None:
    """Read what `INDEXED_FILE` gives."""
    if text is None:
        return None
    size, mtime_ns, read_at, length, place = text.split(" ", 4)
    at = len(place) - int(length)
    return IndexedFile(place[:at], place[at:], int(size), int(mtime_ns), int(read_at))


def text_list(texts: Iterable[str | None]) -> str:
    """Write texts as a list for `json_each`, in the characters that stored texts have."""
    return json.dumps(list(texts), ensure_ascii=False)


def headings_json(headings: Iterable[Heading]) -> str:
    """Write headings as the store keeps them: `[[level, title, start_char], …]`."""
    rows = [[each.level, each.title, each.start_char] for each in headings]
    return json.dumps(rows, ensure_ascii=False) if rows else "[]"
