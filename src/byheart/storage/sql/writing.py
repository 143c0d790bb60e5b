"""Write memories with everything that belongs to them, and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from byheart.contracts import Inserted, NewText, Window
from byheart.language import terms as words
from byheart.model import ECHO, UNEMBEDDED, Chunk, Memory
from byheart.model.spellings import choose_spelling, spelling_key
from byheart.model.times import to_micros
from byheart.startup.late_numpy import np
from byheart.storage.sql import receipt_rows, review_rows
from byheart.storage.sql.changes import record_change
from byheart.storage.sql.checksums import checksum_of
from byheart.storage.sql.connection import Connection
from byheart.storage.sql.rows import CHUNK, columns_of, encode_fields, headings_json, to_chunk

# Selects chunks with all that they are found by in raw queries.
WORDED = f"SELECT {CHUNK}, m.title, m.summary FROM chunks c JOIN memories m USING (memory_no)"


def insert_text(connection: Connection, text: NewText, model_no: int | None) -> Inserted:
    """Write a text with its chunks, keywords, labels, and the vectors of the model in use."""
    memory = text.memory
    connection.expect_chunks(len(text.chunks))
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
    return connection.insert("memories", row)


def insert_chunk(
    connection: Connection, memory_no: int, chunk: Chunk, checksum: int | None = None
) -> int:
    """Write a chunk; one that was read from the store brings the checksum it had there."""
    return connection.insert(
        "chunks",
        {
            "memory_no": memory_no,
            "chunk_index": chunk.index,
            "content": chunk.content,
            "start_char": chunk.start_char,
            "end_char": chunk.end_char,
            "start_line": chunk.start_line,
            "end_line": chunk.end_line,
            "chunk_type": chunk.chunk_type,
            "headings": headings_json(chunk.headings),
            "token_count": chunk.token_count,
            "checksum": checksum_of(chunk.content) if checksum is None else checksum,
        },
    )


def remove_chunk(connection: Connection, chunk_no: int) -> None:
    """Take a chunk out with its words and vectors."""
    connection.remove_words([chunk_no])
    connection.run("DELETE FROM chunks WHERE chunk_no = ?", (chunk_no,))


def insert_words(
    connection: Connection, chunk_no: int, chunk: Chunk, title: str | None, summary: str
) -> None:
    """Make a chunk findable by raw queries."""
    connection.insert_words(chunk_no, word_columns(chunk, title, summary))


def to_word_columns(row: Any) -> tuple[int, list[str]]:
    """Read a row of `WORDED`: the number of a chunk, and what it is found by in raw queries."""
    return row[0], word_columns(to_chunk(row[1:10]), row[10], row[11])


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
    connection.run("INSERT INTO pending_vectors (chunk_no) VALUES (?)", (chunk_no,))
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
    connection.run_many(
        "INSERT INTO memory_entities (entity_no, memory_no) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (
            (number, memory_no)
            for number in entity_numbers(connection, memory.space, memory.entities)
        ),
    )


def entity_numbers(connection: Connection, space: str, names: Sequence[str]) -> list[int]:
    """Give the numbers of entities, by any of their spellings; make those that are new."""
    keys = [spelling_key(name) for name in names]
    # An alias stays as it is: only the name may get another spelling.
    found = connection.get_many(
        "SELECT entity_no, name FROM entities WHERE space = ?1 AND key = ?2 UNION ALL "
        "SELECT entity_no, NULL FROM entity_aliases WHERE space = ?1 AND key = ?2",
        ((space, key) for key in keys),
    )
    known = dict(zip(keys, found, strict=True))
    for key, name in zip(keys, names, strict=True):
        if known[key] is None:
            row = {"space": space, "key": key, "name": name}
            known[key] = connection.insert("entities", row), name
        number, spelling = known[key]
        if spelling is not None and (better := choose_spelling(spelling, name)) != spelling:
            connection.run("UPDATE entities SET name = ? WHERE entity_no = ?", (better, number))
            known[key] = number, better
    return [known[key][0] for key in keys]


def remove(connection: Connection, memory_no: int) -> None:
    """Take a memory out with everything that belongs to it."""
    chunks = connection.all("SELECT chunk_no FROM chunks WHERE memory_no = ?", (memory_no,))
    connection.remove_words([row[0] for row in chunks])
    remove_labels(connection, memory_no)
    receipt_rows.remove_of_memory(connection, memory_no)
    review_rows.remove_of_memory(connection, memory_no)
    connection.run("DELETE FROM memories WHERE memory_no = ?", (memory_no,))
    record_change(connection, [memory_no])


def remove_labels(connection: Connection, memory_no: int) -> None:
    """Take a memory's tags and entities away, and the entities that nothing else names."""
    _remove_unnamed(connection, _detach_labels(connection, memory_no))


def replace_labels(connection: Connection, memory_no: int, memory: Memory) -> None:
    """Give a memory other tags and entities; an entity that stays keeps its aliases."""
    connection.prefetch(
        lambda: _named_entities(connection, memory_no),
        lambda: entity_numbers(connection, memory.space, memory.entities),
    )
    named = _detach_labels(connection, memory_no)
    insert_labels(connection, memory_no, memory)
    _remove_unnamed(connection, named)


def _detach_labels(connection: Connection, memory_no: int) -> list[Any]:
    connection.run("DELETE FROM tags WHERE memory_no = ?", (memory_no,))
    named = _named_entities(connection, memory_no)
    connection.run("DELETE FROM memory_entities WHERE memory_no = ?", (memory_no,))
    return named


def _named_entities(connection: Connection, memory_no: int) -> list[Any]:
    return connection.all("SELECT entity_no FROM memory_entities WHERE memory_no = ?", (memory_no,))


def _remove_unnamed(connection: Connection, entity_nos: Sequence[Any]) -> None:
    """Remove entities that no memory names any more; their aliases go with them."""
    connection.run_many(
        "DELETE FROM entities WHERE entity_no = ?1 "
        "AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity_no = ?1)",
        entity_nos,
    )
