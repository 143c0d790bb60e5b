"""Write memories with everything that belongs to them, and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byheart.contracts import Inserted, NewText, Window
from byheart.language import terms as words
from byheart.model import ECHO, UNEMBEDDED, Chunk, Memory
from byheart.model.spellings import choose_spelling, spelling_key
from byheart.model.times import to_micros
from byheart.storage.sql.changes import record_change
from byheart.storage.sql.checksums import checksum_of
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import columns_of, encode_fields, headings_json


def insert_text(connection: Connection, text: NewText, model_no: int | None) -> Inserted:
    """Write a text with its chunks, keywords, labels, and the vectors of the model in use."""
    memory = text.memory
    row = {
        **columns_of(memory, text.derived),
        "turn_no": text.turn_no,
        "since_at": to_micros(memory.updated_at),
        **encode_fields(text.life),
    }
    memory_no, pending = insert_row(connection, row), 0
    for chunk, made in zip(text.chunks, text.windows, strict=True):
        chunk_no = insert_chunk(connection, memory_no, chunk)
        insert_words(connection, chunk_no, chunk, memory.title, memory.summary)
        pending += not embed_chunk(connection, chunk_no, chunk, model_no, made)
    insert_labels(connection, memory_no, memory)
    record_change(connection, [memory_no])
    return Inserted(memory_no, pending)


def insert_row(connection: Connection, row: Mapping[str, object]) -> int:
    """Insert a row of `memories`, and give its number."""
    return connection.insert(
        f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )


def insert_chunk(
    connection: Connection, memory_no: int, chunk: Chunk, checksum: int | None = None
) -> int:
    """Write a chunk; one that was read from the store brings the checksum it had there."""
    return connection.insert(
        "INSERT INTO chunks (memory_no, chunk_index, content, start_char, end_char, start_line, "
        "end_line, chunk_type, headings, token_count, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory_no,
            chunk.index,
            chunk.content,
            chunk.start_char,
            chunk.end_char,
            chunk.start_line,
            chunk.end_line,
            chunk.chunk_type,
            headings_json(chunk.headings),
            chunk.token_count,
            checksum_of(chunk.content) if checksum is None else checksum,
        ),
    )


def remove_chunk(connection: Connection, chunk_no: int) -> None:
    """Take a chunk out with its words and vectors."""
    connection.run("DELETE FROM chunk_words WHERE rowid = ?", (chunk_no,))
    connection.run("DELETE FROM chunks WHERE chunk_no = ?", (chunk_no,))


def insert_words(
    connection: Connection, chunk_no: int, chunk: Chunk, title: str | None, summary: str
) -> None:
    """Make a chunk findable by raw queries."""
    connection.run(
        "INSERT INTO chunk_words (rowid, title, summary, headings, content) VALUES (?, ?, ?, ?, ?)",
        (chunk_no, *word_columns(chunk, title, summary)),
    )


def word_columns(chunk: Chunk, title: str | None, summary: str) -> list[str]:
    """Give what a chunk is found by in raw queries: title, summary, headings and text."""
    if chunk.chunk_type == ECHO:
        return [""] * 4  # found where it was said first
    headings = "\n".join(heading.title for heading in chunk.headings)
    columns = (title or "", summary if chunk.index == 0 else "", headings, chunk.content)
    return [words.spread(column) for column in columns]


def embed_chunk(
    connection: Connection,
    chunk_no: int,
    chunk: Chunk,
    model_no: int | None,
    windows: Sequence[Window],
) -> bool:
    """Write a chunk's vectors, or have it wait for them; say whether it has what it needs."""
    if chunk.chunk_type in UNEMBEDDED or insert_vectors(connection, chunk_no, model_no, windows):
        return True
    connection.run("INSERT INTO pending_vectors VALUES (?)", (chunk_no,))
    return False


def insert_vectors(
    connection: Connection, chunk_no: int, model_no: int | None, windows: Sequence[Window]
) -> bool:
    """Write a chunk's vectors if all of them were made."""
    if model_no is None or any(window.vector is None for window in windows) or not windows:
        return False
    connection.run_many(
        "INSERT INTO vectors (chunk_no, model_no, window_index, text_hash, embedding) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            (chunk_no, model_no, at, window.text_hash, np.asarray(window.vector, "<f4").tobytes())
            for at, window in enumerate(windows)
        ),
    )
    return True


def insert_labels(connection: Connection, memory_no: int, memory: Memory) -> None:
    """Write a memory's tags and entities; another spelling of an entity counts as that entity."""
    connection.run_many(
        "INSERT INTO tags (tag, memory_no) VALUES (?, ?)", ((tag, memory_no) for tag in memory.tags)
    )
    for name in memory.entities:
        connection.run(
            "INSERT OR IGNORE INTO memory_entities (entity_no, memory_no) VALUES (?, ?)",
            (entity_no(connection, memory.space, name), memory_no),
        )


def entity_no(connection: Connection, space: str, name: str) -> int:
    """Give the number of an entity, by any of its spellings; make it if need be."""
    key = spelling_key(name)
    # An alias stays as it is: only the name may get another spelling.
    known = connection.get(
        "SELECT entity_no, name FROM entities WHERE space = ?1 AND key = ?2 UNION ALL "
        "SELECT entity_no, NULL FROM entity_aliases WHERE space = ?1 AND key = ?2",
        (space, key),
    )
    if known is None:
        return connection.insert(
            "INSERT INTO entities (space, key, name) VALUES (?, ?, ?)", (space, key, name)
        )
    number, spelling = known
    if spelling is not None and (better := choose_spelling(spelling, name)) != spelling:
        connection.run("UPDATE entities SET name = ? WHERE entity_no = ?", (better, number))
    return int(number)


def remove(connection: Connection, memory_no: int) -> None:
    """Take a memory out with everything that belongs to it; FTS5 knows no foreign keys."""
    connection.run(
        "DELETE FROM chunk_words WHERE rowid IN (SELECT chunk_no FROM chunks WHERE memory_no = ?)",
        (memory_no,),
    )
    remove_labels(connection, memory_no)
    connection.run("DELETE FROM memories WHERE memory_no = ?", (memory_no,))
    record_change(connection, [memory_no])


def remove_labels(connection: Connection, memory_no: int) -> None:
    """Take a memory's tags and entities away, and the entities that nothing else names."""
    _remove_unnamed(connection, _detach_labels(connection, memory_no))


def replace_labels(connection: Connection, memory_no: int, memory: Memory) -> None:
    """Give a memory other tags and entities; an entity that stays keeps its aliases."""
    named = _detach_labels(connection, memory_no)
    insert_labels(connection, memory_no, memory)
    _remove_unnamed(connection, named)


def _detach_labels(connection: Connection, memory_no: int) -> list[Any]:
    connection.run("DELETE FROM tags WHERE memory_no = ?", (memory_no,))
    named = connection.all(
        "SELECT entity_no FROM memory_entities WHERE memory_no = ?", (memory_no,)
    )
    connection.run("DELETE FROM memory_entities WHERE memory_no = ?", (memory_no,))
    return named


def _remove_unnamed(connection: Connection, entity_nos: Sequence[Any]) -> None:
    """Remove entities that no memory names any more; their aliases go with them."""
    connection.run_many(
        "DELETE FROM entities WHERE entity_no = ?1 "
        "AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity_no = ?1)",
        entity_nos,
    )
