"""Rows of the database and the nouns they stand for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from byheart.contracts import FoundChunk
from byheart.model import Chunk, Heading, Memory, MemoryFields
from byheart.model.damage import DamagedRow
from byheart.model.times import from_micros
from byheart.storage.sqlite.checksums import checksum_of, hash_of

_TAGS = "(SELECT json_group_array(tag) FROM tags t WHERE t.memory_no = m.memory_no)"
_ENTITIES = """(SELECT json_group_array(name) FROM
    (SELECT e.name FROM memory_entities me JOIN entities e USING (entity_no)
     WHERE me.memory_no = m.memory_no ORDER BY e.entity_no))"""
_CHUNK_COUNT = "(SELECT count(*) FROM chunks n WHERE n.memory_no = m.memory_no)"
# A turn may be empty: then it has no chunks.
CONTENT = """ifnull((SELECT group_concat(content, '') FROM
    (SELECT content FROM chunks p WHERE p.memory_no = m.memory_no ORDER BY chunk_index)), '')"""

MEMORY = f"""
    ifnull(m.version_of, m.memory_id), m.space, m.kind, {CONTENT},
    lower(hex(m.content_hash)), m.title, m.summary, m.source, m.session_id, m.agent_id,
    m.session_iter, m.task_code, m.path, {_TAGS}, {_ENTITIES},
    m.importance, m.metadata, m.format, {_CHUNK_COUNT}, m.created_at, m.updated_at, m.expires_at,
    m.accessed_at, m.access_count, m.version, m.replaced_at, m.superseded_by, m.forgotten_at,
    m.derived, m.role, m.client_id, m.pinned_at, m.origin"""
CHUNK = """
    c.chunk_no, c.chunk_index, c.content, c.start_char, c.end_char, c.start_line, c.end_line,
    c.chunk_type, c.headings, c.token_count"""
FIELDS = f"""
    ifnull(m.version_of, m.memory_id), m.kind, m.title, m.summary, m.session_id, m.agent_id,
    m.session_iter, m.task_code, m.path, {_TAGS}, m.importance, m.created_at, m.updated_at,
    m.expires_at, m.version, m.replaced_at, m.superseded_by, m.role, m.origin"""
FOUND = f"{CHUNK}, {FIELDS}, c.checksum"


def to_memory(row: Any) -> Memory:
    """Read a row of `MEMORY`: its columns stand in the order of the noun's fields."""
    values: Any = list(row)
    values[13], values[14] = _names(row[13]), _names(row[14])
    values[16] = {} if row[16] == "{}" else json.loads(row[16])
    # created, updated, expires, accessed, replaced, forgotten, pinned
    for at in (19, 20, 21, 22, 25, 27, 31):
        values[at] = _moment(row[at])
    values[28] = tuple(filter(None, row[28].split(",")))
    values.append(hash_of(row[3]) != row[4])
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
    fields: Any = list(row[10:-1])
    fields[9] = _names(fields[9])
    for at in (11, 12, 13, 15):  # created, updated, expires, replaced
        fields[at] = _moment(fields[at])
    fields.append(checksum_of(row[2]) != row[-1])
    return FoundChunk(row[0], to_chunk(row[1:10]), MemoryFields(*fields))


def _names(text: str) -> tuple[str, ...]:
    # Most lists are empty: a context reads some eighty of them.
    return () if text == "[]" else tuple(json.loads(text))


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def headings_json(headings: Iterable[Heading]) -> str:
    """Write headings as the store keeps them: `[[level, title, start_char], …]`."""
    rows = [[each.level, each.title, each.start_char] for each in headings]
    return json.dumps(rows, ensure_ascii=False) if rows else "[]"
