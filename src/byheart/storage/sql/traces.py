"""Pick pieces of texts that are to be erased, to search for them afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from byheart.model.fields import FIELDS
from byheart.storage.sql.connection import Connection

# Texts are searched for in pieces: on disk, a long text is spread over pages of 4,096 bytes.
PIECE_BYTES, _SHORTEST_PIECE_BYTES = 48, 12
# Searching for one piece takes 0.06 seconds in a store of 100,000 chunks.
_MOST_PIECES, _MOST_FIELDS = 32, 16
# The number of memories removed in one transaction, which takes some tenths of a second.
MOST_AT_ONCE = 1000
# This mark is in the store from the removal of rows to the end of the sweep.
UNSWEPT = "unswept"

_Each = TypeVar("_Each")

# The columns of `memories` that hold text, and those among them that hold any words of the caller.
_TEXT_COLUMNS = [field for field in FIELDS if field.column and field.codec in ("text", "json")]
_FREE_COLUMNS = [field.name for field in _TEXT_COLUMNS if field.free]
# (A function of `space` keeps SQLite from scanning the whole space instead of looking up the ids.)
_GOING = "(memory_id = ?1 OR version_of = ?1) AND ifnull(space, '') = ?2"
_CONTENTS = f"SELECT content FROM chunks JOIN memories USING (memory_no) WHERE {_GOING}"
# The fields beside the texts of memories that are to be removed.
_FIELDS = f"""
    WITH going AS (SELECT * FROM memories WHERE {_GOING})
    {" UNION ALL ".join(f"SELECT {name} FROM going" for name in _FREE_COLUMNS)}
    UNION ALL SELECT tag FROM going JOIN tags USING (memory_no)
    UNION ALL SELECT name FROM going JOIN memory_entities USING (memory_no)
        JOIN entities USING (entity_no)
    UNION ALL SELECT changes FROM going JOIN history USING (memory_no)
    UNION ALL SELECT reason FROM going JOIN history USING (memory_no)"""
# Texts that stay, by table.
HELD = (
    "SELECT content FROM chunks",
    f"SELECT concat_ws(' ', {', '.join(field.name for field in _TEXT_COLUMNS)}) FROM memories",
    "SELECT tag FROM tags",
    "SELECT concat_ws(' ', key, name) FROM entities",
    "SELECT concat_ws(' ', key, name) FROM entity_aliases",
    "SELECT concat_ws(' ', changes, who, reason) FROM history",
    "SELECT concat_ws(' ', name, space, session_id) FROM tokens",
    "SELECT concat_ws(' ', query, space, session_id) FROM receipts",
    "SELECT concat_ws(' ', item_id, space, who) FROM kept_items",
)


def pick_pieces(connection: Connection, memory_ids: Sequence[str], space: str) -> list[bytes]:
    """Pick evenly spread pieces of the texts and of the fields that are to be removed."""
    texts: dict[bytes, None] = {}
    fields: dict[bytes, None] = {}
    for memory_id in _spread(memory_ids, _MOST_PIECES):
        for (text,) in connection.each(_CONTENTS, (memory_id, space)):
            texts.update(dict.fromkeys(_stretches(text)))
        for (text,) in connection.each(_FIELDS, (memory_id, space)):
            fields.update(dict.fromkeys(_stretches(text)))
    return [*_spread(texts, _MOST_PIECES), *_spread(fields, _MOST_FIELDS)]


def _stretches(text: Any) -> Iterator[bytes]:
    encoded = str(text or "").strip().encode()
    for start in range(0, max(1, len(encoded) - PIECE_BYTES + 1), PIECE_BYTES):
        piece = encoded[start : start + PIECE_BYTES]
        if len(piece) >= _SHORTEST_PIECE_BYTES:
            yield piece


def _spread(found: Iterable[_Each], most: int) -> list[_Each]:
    every = list(found)
    return every[:: -(-len(every) // most) or 1]
