"""Remember which rows of an index its files have, and lay out the others as a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from byheart.index import file
from byheart.index.columns import CHUNK_TYPES, CODED, MEMORY_TYPES, Array
from byheart.index.parts import NOTHING_BEFORE, Arrays, Loaded, Part, Start, count_kept
from byheart.index.segment import Segment, empty_segment, merge, without_vectors
from byheart.index.session_order import PLACE, Columns, add_turns, sort_turns
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

# Removed chunks stay in the files until they are this share of all.
_MOST_REMOVED, _LEAST_REMOVED = 0.25, 400


class Rows(NamedTuple):
    """All rows of an index: columns of memories and chunks, names, segments and turns."""

    memories: dict[str, Array]
    chunks: dict[str, Array]
    names: dict[str, list[str]]
    segments: list[Segment]
    by_turn: NDArray[np.int64]

    @property
    def end(self) -> Start:
        """Count the rows and names."""
        return Start(
            len(self.memories["memory_nos"]),
            len(self.chunks["chunk_nos"]),
            {name: len(self.names[name]) for name in CODED},
        )


@dataclass(slots=True)
class Published:
    """The parts that have the first rows of an index, and what changed in these rows since.

    `embedded` and `removed` count chunks at the time of the last part. `vectors_dropped` says that
    the index follows another model now, `erased` that memories were erased: then all is written
    again, so that no file has rows that were erased before its moment.
    """

    head_id: str = ""
    parts: Sequence[Part] = ()
    end: Start = NOTHING_BEFORE
    embedded: int = 0
    removed: int = 0
    vectors_dropped: bool = False
    erased: bool = False
    changed: list[Array] = field(default_factory=list)
    buried: list[Array] = field(default_factory=list)

    @classmethod
    def of_parts(cls, head_id: str, parts: Sequence[Part], rows: Rows) -> Published:
        """Begin with the rows that the parts of a head have."""
        return cls(
            head_id,
            tuple(parts),
            rows.end,
            int(np.count_nonzero(rows.chunks["embedded"])),
            int(np.count_nonzero(~rows.chunks["alive"])),
        )

    def frozen(self) -> Published:
        """Copy this, so that it stays as it is now."""
        return replace(self, changed=list(self.changed), buried=list(self.buried))

    def after(self, frozen: Published, written: Published) -> Published:
        """Give what is published once the rows that were frozen have been written."""
        return replace(
            written,
            erased=self.erased,
            changed=self.changed[len(frozen.changed) :],
            buried=self.buried[len(frozen.buried) :],
        )

    def is_wasteful(self, alive: Array) -> bool:
        """Say whether the files should be written without the removed chunks."""
        removed = len(alive) - int(np.count_nonzero(alive))
        return self.erased or removed >= max(_LEAST_REMOVED, _MOST_REMOVED * len(alive))

    def count_kept(self, rows: Rows) -> int:
        """Count the parts that stay as they are when the new rows are written."""
        segments = rows.segments[len(self.parts) :]
        arrays = [getattr(each, name) for each in segments for name in Segment.__slots__]
        arrays += [each[self.end.memories :] for each in rows.memories.values()]
        arrays += [each[self.end.chunks :] for each in rows.chunks.values()]
        return count_kept(self.parts, sum(each.nbytes for each in arrays))

    def lay_out(self, rows: Rows, kept: int) -> tuple[dict[str, Any], Arrays]:
        """Lay out all rows behind the first `kept` parts as one part: its header and arrays."""
        start = self.parts[kept].start if kept < len(self.parts) else self.end
        later = self.parts[kept:]
        changed = _below(start.memories, [*(each.changed for each in later), *self.changed])
        buried = _below(start.chunks, [*(each.buried for each in later), *self.buried])
        arrays: dict[str, Array | file.Rows] = {"changed": changed, "buried": buried}
        for name, column in rows.memories.items():
            arrays[f"memory.{name}"] = column[start.memories :]
            arrays[f"changed.{name}"] = column.take(changed)
        for name, column in rows.chunks.items():
            arrays[f"chunk.{name}"] = column[start.chunks :]
        arrays |= _merged(rows.segments[kept:])
        if kept == 0:
            arrays["by_turn"] = rows.by_turn
        names = {name: rows.names[name][start.names[name] :] for name in CODED}
        return {"start": asdict(start), "names": names}, arrays


def _below(limit: int, places: Sequence[Array]) -> NDArray[np.int64]:
    found = np.unique(np.concatenate([np.empty(0, np.int64), *places]))
    return found[: np.searchsorted(found, limit)].astype(np.int64)


def _merged(segments: Sequence[Segment]) -> dict[str, Array | file.Rows]:
    """Merge segments; vectors that are in order are only listed, because they take most room."""
    filled = [each for each in segments if len(each.vector_slots)]
    dimensions = segments[0].embeddings.shape[1] if segments else 0
    if len(filled) > 1 and all(
        before.vector_slots[-1] <= after.vector_slots[0] for before, after in pairwise(filled)
    ):
        bare = [replace(each, embeddings=each.embeddings[:, :0]) for each in segments]
        whole = _arrays(merge(bare))
        return {**whole, "embeddings": file.Rows([each.embeddings for each in filled])}
    if len(segments) == 1:
        return {**_arrays(segments[0])}
    return {**_arrays(merge(segments) if segments else empty_segment(dimensions))}


def _arrays(segment: Segment) -> dict[str, Array]:
    return {name: getattr(segment, name) for name in Segment.__slots__}


def segment_of(content: file.IndexFile, dimensions: int) -> Segment:
    """Give the postings and vectors of a part; large arrays stay on disk until they are read.

    A part without vectors may be older than the model, whose vectors have so many dimensions.
    """
    segment = Segment(**{name: content.arrays[name] for name in Segment.__slots__})
    return segment if len(segment.vector_slots) else without_vectors(segment, dimensions)


def assemble(loaded: Loaded) -> Rows:
    """Put the rows of all parts together, with the changes of later parts to earlier ones."""
    contents = [content for _, content in loaded.parts]
    dimensions = loaded.head.state["dimensions"]
    if len(contents) == 1:
        return _of_one_part(contents[0], dimensions)
    memories = _concatenated(contents, "memory", MEMORY_TYPES)
    chunks = _concatenated(contents, "chunk", CHUNK_TYPES)
    names: dict[str, list[str]] = {name: [] for name in CODED}
    moved = False
    for part, content in loaded.parts:
        for name in CODED:
            names[name] += _names_of(content)[name]
        moved |= _change_rows(memories, part, content)
        chunks["alive"][part.buried] = False
        vector_slots = content.arrays["vector_slots"]
        chunks["embedded"][vector_slots[vector_slots < part.start.chunks]] = True
    if moved:
        by_turn = sort_turns(memories, chunks)
    else:
        by_turn = np.array(contents[0].arrays["by_turn"])
        by_turn = by_turn[chunks["alive"].take(by_turn)]
        first = len(contents[0].arrays["chunk.chunk_nos"])
        by_turn = add_turns(by_turn, memories, chunks, first)
    segments = [segment_of(each, dimensions) for each in contents]
    return Rows(memories, chunks, names, segments, by_turn)


def _of_one_part(content: file.IndexFile, dimensions: int) -> Rows:
    """Give the rows of the only part; its columns stay on disk until they are read."""
    arrays = content.arrays
    return Rows(
        {name: arrays[f"memory.{name}"] for name in MEMORY_TYPES},
        {name: arrays[f"chunk.{name}"] for name in CHUNK_TYPES},
        {name: list(_names_of(content)[name]) for name in CODED},
        [segment_of(content, dimensions)],
        arrays["by_turn"],
    )


def _names_of(content: file.IndexFile) -> Mapping[str, list[str]]:
    # A file in the earlier format calls them codes.
    names: Mapping[str, list[str]] = content.header.get("names") or content.header["codes"]
    return names


def _concatenated(
    contents: Sequence[file.IndexFile], of: str, types: dict[str, type] | Any
) -> dict[str, Array]:
    return {
        name: np.concatenate([each.arrays[f"{of}.{name}"] for each in contents]) for name in types
    }


def _change_rows(memories: dict[str, Array], part: Part, content: file.IndexFile) -> bool:
    """Replace the rows that a part has changed; say whether any moved within its session."""
    if not len(part.changed):
        return False
    before: Columns = {name: memories[name].copy() for name in PLACE}
    for name in MEMORY_TYPES:
        memories[name][part.changed] = content.arrays[f"changed.{name}"]
    return any((before[name] != memories[name]).any() for name in PLACE)
