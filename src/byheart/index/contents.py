"""Hold the arrays of an index, and bring them up to date from a snapshot of the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from byheart.contracts import ChunkText, IndexSource
from byheart.index.columns import (
    CHUNK_TYPES,
    CODED,
    MEMORY_TYPES,
    MISSING,
    NONE,
    ChunkColumns,
    Codes,
    Growing,
    MemoryColumns,
)
from byheart.index.file_coverage import FileCoverage
from byheart.index.memory_use import MemoryUse, measure
from byheart.index.parts import Loaded, Written
from byheart.index.posting_runs import FreshPostings
from byheart.index.published import Published, Rows, assemble, segment_of
from byheart.index.segment import (
    Segment,
    build_postings,
    build_vectors,
    empty_segment,
    merge,
    without_vectors,
)
from byheart.index.session_order import (
    add_turns,
    has_moved,
    places_of,
    sort_turns,
)
from byheart.index.stored_segment import StoredPart, without_stored
from byheart.index.terms import chunk_terms
from byheart.index.turn_forms import hash_speaker, measure_asking
from byheart.index.view import View
from byheart.language.word_pieces import count_words
from byheart.model import UNEMBEDDED
from byheart.model.damage import DamagedRow
from byheart.startup.late_numpy import NDArray, np

# The number of chunks that are read and inverted at a time; it bounds the memory of a rebuild.
_BATCH = 2000


class Contents:
    """Hold the growing index; `view()` shows its present contents."""

    def __init__(
        self,
        memories: dict[str, NDArray[Any]],
        chunks: dict[str, NDArray[Any]],
        codes: dict[str, Codes],
        segments: list[Segment],
        state: Mapping[str, Any],
        by_turn: NDArray[np.int64] | None = None,
        published: Published | None = None,
    ) -> None:
        self._memories = {name: Growing(rows) for name, rows in memories.items()}
        self._chunks = {name: Growing(rows) for name, rows in chunks.items()}
        self._codes = codes
        self._segments = segments
        self.store_id: str = state["store_id"]
        self.change_no: int = state["change_no"]
        self._stamp: int = state["stamp"]
        self._last_vector: int = state["last_vector"]
        self.model_no: int | None = state["model_no"]
        # If the space is large: the part that is in the database. It is the first segment.
        self.stored = StoredPart(*state["stored"]) if state.get("stored") else None
        self._dimensions: int = state["dimensions"]
        self.published = published or Published()
        # The first segments, which are being written or are in files, are merged in files only.
        self._sealed = len(self.published.parts)
        self._by_turn = sort_turns(memories, chunks) if by_turn is None else by_turn
        # The last view, as long as no row that it shows has changed.
        self._shown: View | None = None

    @classmethod
    def empty(cls, source: IndexSource) -> Contents:
        """Start with an empty index."""
        model = source.active_model()
        dimensions = model.dimensions if model else 0
        return cls(
            {name: np.empty(0, kind) for name, kind in MEMORY_TYPES.items()},
            {name: np.empty(0, kind) for name, kind in CHUNK_TYPES.items()},
            {name: Codes() for name in CODED},
            [],
            {
                "store_id": source.store_id(),
                "change_no": 0,
                "stamp": 0,
                "last_vector": 0,
                "model_no": model.model_no if model else None,
                "dimensions": dimensions,
            },
        )

    def prefetch(self, source: IndexSource) -> None:
        """Ask ahead for everything that `can_follow` and `catch_up` read, as a rule."""
        last_memory, last_chunk = self._last("memory_nos"), self._last("chunk_nos")
        source.prefetch(
            source.store_id,
            partial(source.stamp_of, self.change_no),
            source.active_model,
            partial(source.model_switched_since, self.change_no),
            partial(source.changed_since, self.change_no, last_memory),
            lambda: list(source.memories_after(last_memory)),
            partial(source.chunks_after, last_chunk, _BATCH),
        )
        if self.model_no is not None:
            wanted = (self._last_vector, self.model_no, _BATCH)
            source.prefetch(partial(source.vectors_after, *wanted))

    def _last(self, name: str) -> int:
        """Give the last number in a column of numbers, which are in order."""
        columns = self._memories if name in self._memories else self._chunks
        numbers = columns[name].view
        return int(numbers[-1]) if len(numbers) else 0

    def can_follow(self, source: IndexSource) -> bool:
        """Say whether the store's log continues from here: same store, same history."""
        if self.store_id != source.store_id():
            return False
        if self.change_no == 0:
            return True
        return source.stamp_of(self.change_no) == self._stamp

    def catch_up(self, source: IndexSource, change: tuple[int, int]) -> None:
        """Read everything that was committed up to a change."""
        if change == self.change:
            return
        self._follow_model(source)
        known = len(self._chunks["chunk_nos"].view)
        moved = self._refresh_known_memories(source)
        self._append_memories(source)
        for segment in self._read_segments(source):
            self._segments.append(segment)
            self._merge_small_segments()
        memories = places_of(self._memories)
        chunks = {name: rows.view for name, rows in self._chunks.items()}
        if moved:
            self._by_turn = sort_turns(memories, chunks)
        else:
            self._by_turn = add_turns(self._by_turn, memories, chunks, known)
        self.change_no, self._stamp = change

    def _follow_model(self, source: IndexSource) -> None:
        """Drop all vectors if another model is active now; terms do not depend on the model."""
        model_no, dimensions = source.active_model() or (None, 0)
        # If the model was switched away and back, some vectors may have been dropped and remade.
        if not source.model_switched_since(self.change_no) and (model_no, dimensions) == (
            self.model_no,
            self._dimensions,
        ):
            return
        self._shown = None
        self.model_no, self._dimensions, self._last_vector = model_no, dimensions, 0
        self._segments = [without_vectors(each, dimensions) for each in self._segments]
        embedded = self._chunks["embedded"].view
        self.published.vectors_dropped |= bool(embedded.any())
        without_need = np.array(list(source.chunks_without_vectors()), np.int64)
        self._chunks["embedded"] = Growing(np.isin(self._chunks["chunk_nos"].view, without_need))

    def _refresh_known_memories(self, source: IndexSource) -> bool:
        """Read changed memories again; say whether any of them moved within its session."""
        known = self._memories["memory_nos"].view
        changed = source.changed_since(self.change_no, self._last("memory_nos"))
        if not changed.memory_nos:
            return False
        self._shown = None
        before = places_of(self._memories)
        slots = np.searchsorted(known, np.array(changed.memory_nos, np.int64))
        self.published.changed.append(slots)
        is_there = np.isin(changed.memory_nos, [row[0] for row in changed.rows])
        self.published.erased |= not is_there.all()
        self._memories["present"].replace(slots[~is_there], False)
        self._memories["space"].replace(slots[~is_there], np.array(NONE, np.int32))
        for name, rows in self._memory_rows(changed.rows).items():
            self._memories[name].replace(slots[is_there], rows)
        self._bury_chunks(slots, changed.chunk_nos)
        return has_moved(before, places_of(self._memories), slots[is_there])

    def _bury_chunks(self, owners: NDArray[np.int64], alive: Sequence[int]) -> None:
        slots = np.flatnonzero(np.isin(self._chunks["owner"].view, owners))
        dead = slots[~np.isin(self._chunks["chunk_nos"].view[slots], np.array(alive, np.int64))]
        if len(dead):
            self._chunks["alive"].replace(dead, False)
            self.published.buried.append(dead)
            self._by_turn = self._by_turn[self._chunks["alive"].view.take(self._by_turn)]

    def _append_memories(self, source: IndexSource) -> None:
        rows = source.memories_after(self._last("memory_nos"))
        while batch := list(islice(rows, _BATCH)):
            for name, values in self._memory_rows(batch).items():
                self._memories[name].append(values)

    def _memory_rows(self, rows: Any) -> dict[str, NDArray[Any]]:
        columns = list(zip(*rows, strict=True)) or [()] * len(MEMORY_TYPES)
        named: dict[str, Any] = dict(zip(MEMORY_TYPES, columns, strict=True))
        for name in CODED:
            named[name] = [self._codes[name].encode(each) for each in named[name]]
        for name, none in MISSING.items():
            named[name] = [none if each is None else each for each in named[name]]
        return {name: np.array(named[name], kind) for name, kind in MEMORY_TYPES.items()}

    def _read_segments(self, source: IndexSource) -> Iterator[Segment]:
        """Read new chunks and vectors; those of a few saves are one segment, ready to search."""
        nothing = empty_segment(self._dimensions)
        last = nothing
        while True:
            rows = source.chunks_after(self._last("chunk_nos"), _BATCH)
            if not rows:
                break
            if last is not nothing:
                yield last
            postings = self._append_chunks(rows)
            last = Segment(*postings, nothing.vector_slots, nothing.signs, nothing.embeddings)
            if len(rows) < _BATCH:
                break
        while self.model_no is not None:
            vectors = source.vectors_after(self._last_vector, self.model_no, _BATCH)
            if vectors:
                made = self._append_vectors(vectors)
                yield Segment(last.terms, last.starts, last.slots, last.counts, *made)
                last = nothing
            else:
                # Vectors of the next model, made meanwhile, need not be skipped again each time.
                self._last_vector = max(self._last_vector, source.last_vector_no())
            if len(vectors) < _BATCH:
                break
        if last is not nothing:
            yield last

    def _append_chunks(
        self, rows: Sequence[ChunkText]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
        first_slot = len(self._chunks["chunk_nos"].view)
        found = [(first_slot + at, chunk_terms(chunk)) for at, chunk in enumerate(rows)]
        owners = _places(self._memories["memory_nos"].view, [row.memory_no for row in rows])
        self._chunks["chunk_nos"].append(np.array([row.chunk_no for row in rows], np.int64))
        self._chunks["owner"].append(owners.astype(np.int32))
        self._chunks["length"].append(
            np.array([count_words(terms) for _, terms in found], np.int32)
        )
        self._chunks["alive"].append(np.ones(len(rows), np.bool_))
        # A chunk that never gets vectors counts as embedded: no vector is missing.
        embedded = [row.chunk_type in UNEMBEDDED for row in rows]
        self._chunks["embedded"].append(np.array(embedded, np.bool_))
        texts = [row.content for row in rows]
        self._chunks["asking"].append(np.array([*map(measure_asking, texts)], np.uint8))
        self._chunks["speaker"].append(np.array([*map(hash_speaker, texts)], np.uint64))
        return build_postings(found)

    def _append_vectors(
        self, rows: Sequence[tuple[int, int, bytes]]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int16]]:
        self._last_vector = rows[-1][0]
        # Vectors of chunks that lost their memory are ignored here: the doctor reports them.
        known = self._chunks["chunk_nos"].view
        there = _are_among(known, np.array([row[1] for row in rows], np.int64))
        rows = [row for row, is_there in zip(rows, there, strict=True) if is_there]
        slots = _places(known, [row[1] for row in rows])
        self._chunks["embedded"].replace(slots, True)
        flat = np.frombuffer(b"".join(row[2] for row in rows), "<f4")
        return build_vectors(slots.tolist(), flat.reshape(len(rows), self._dimensions))

    def _merge_small_segments(self) -> None:
        # Segment sizes form a geometric series, so a chunk is copied O(log n) times at most.
        while (
            len(self._segments) >= self._sealed + 2
            and self._segments[-2].weight <= 2 * self._segments[-1].weight
        ):
            last = self._segments.pop()
            self._segments[-1] = merge([self._segments[-1], last])

    @property
    def unpublished(self) -> int:
        """Count the chunks that were added, removed or embedded since files were written."""
        alive, published = self._chunks["alive"].view, self.published
        if published.vectors_dropped:
            return len(alive)
        removed = len(alive) - int(np.count_nonzero(alive)) - published.removed
        changed = len(alive) - published.end.chunks + removed
        return max(changed, self._count_embedded() - published.embedded)

    def _count_embedded(self) -> int:
        return int(np.count_nonzero(self._chunks["embedded"].view))

    def memory_use(self) -> MemoryUse:
        """Measure the memory that the contents take, with the room for rows to come."""
        columns = [*self._memories.values(), *self._chunks.values()]
        arrays = [each.buffer for each in columns]
        for segment in tuple(self._segments):
            arrays += [getattr(segment, name) for name in Segment.__slots__]
        names = sum(len(codes.numbers) for codes in self._codes.values())
        return measure([*arrays, self._by_turn], names, len(self._chunks["chunk_nos"].view))

    @property
    def change(self) -> tuple[int, int]:
        """Give the last change that the contents show."""
        return self.change_no, self._stamp

    @property
    def is_wasteful(self) -> bool:
        """Say whether the files should be written without the removed chunks."""
        return self.published.is_wasteful(self._chunks["alive"].view)

    @property
    def coverage(self) -> FileCoverage:
        """Measure how much of the store the contents cover."""
        alive = self._chunks["alive"].view
        return FileCoverage(
            self.store_id,
            *self.change,
            self.model_no,
            int(np.count_nonzero(alive)),
            int(np.count_nonzero(alive & self._chunks["embedded"].view)),
            self._last("chunk_nos"),
        )

    @property
    def living_chunk_nos(self) -> NDArray[np.int64]:
        """Give the numbers of all chunks that were not removed, in order."""
        return self._chunks["chunk_nos"].view[self._chunks["alive"].view]

    @property
    def rows(self) -> Rows:
        """Give all present rows."""
        return Rows(
            {name: rows.view for name, rows in self._memories.items()},
            {name: rows.view for name, rows in self._chunks.items()},
            {name: list(codes.numbers) for name, codes in self._codes.items()},
            list(self._segments),
            self._by_turn,
        )

    def frozen(self) -> Contents:
        """Copy the present contents, so that they can be written while these contents grow."""
        self._sealed = len(self._segments)
        return _of_rows(self.rows, self.state, self.published.frozen())

    def settle(self, frozen: Contents, kept: int, written: Written) -> bool:
        """Continue from the part that the frozen contents were written to, if that is possible.

        `kept` counts the parts before it.
        """
        if self.published.vectors_dropped or self.published.head_id != frozen.published.head_id:
            return False
        segment = segment_of(written.content, self._dimensions)
        self._segments[kept : len(frozen._segments)] = [segment]
        parts = (*frozen.published.parts[:kept], written.part)
        now = Published.of_parts(written.head.head_id, parts, frozen.rows)
        self.published = self.published.after(frozen.published, now)
        self._sealed = len(parts)
        return True

    def view(self) -> View:
        """Give a view of the present contents."""
        view = View(
            self.change,
            self.model_no,
            self._dimensions,
            MemoryColumns(**{name: rows.view for name, rows in self._memories.items()}),
            ChunkColumns(**{name: rows.view for name, rows in self._chunks.items()}),
            self._codes,
            tuple(self._segments),
            self._by_turn,
            self.stored,
        )
        if self._shown is not None:
            view.follow(self._shown)
        self._shown = view
        return view

    @property
    def fresh_postings(self) -> FreshPostings:
        """Give the postings that are in memory, for the database to store."""
        chunks = self._chunks
        return FreshPostings(self._segments, chunks["chunk_nos"].view, chunks["alive"].view)

    @property
    def is_stored(self) -> bool:
        """Say whether the database has the postings, except for the latest ones."""
        return self.stored is not None

    def is_large(self, most: int) -> bool:
        """Say whether the postings belong in the database: with more than so many chunks.

        A space that has been large stays so until it has a fifth less.
        """
        living = int(np.count_nonzero(self._chunks["alive"].view))
        return living > (most * 4 // 5 if self.stored else most)

    def compacted(self, stored_to: int | None = None) -> Contents:
        """Copy the contents into one segment, without removed memories and chunks.

        With `stored_to`, the database has the postings up to this chunk, which is the last one.
        """
        view = self.view()
        # Forgotten memories stay, because they can be restored.
        memory_alive = view.memories.space != NONE
        new_owner = np.cumsum(memory_alive) - 1
        alive = view.chunks.alive
        renumber = np.where(alive, np.cumsum(alive) - 1, -1)
        chunks = {name: rows.view[alive] for name, rows in self._chunks.items()}
        chunks["owner"] = new_owner[chunks["owner"]].astype(np.int32)
        segments, state = self._segments or [empty_segment(self._dimensions)], self.state
        if stored_to is not None:
            segments = [without_stored(each) for each in segments]
            state["stored"] = (stored_to, self._last_vector)
        memories = {name: rows.view[memory_alive] for name, rows in self._memories.items()}
        # Names that no row uses any more are removed too: they may have to be forgotten for good.
        codes = {}
        for name in CODED:
            codes[name], memories[name] = self._codes[name].without_unused(memories[name])
        return Contents(memories, chunks, codes, [merge(segments, renumber)], state)

    @property
    def state(self) -> dict[str, Any]:
        """Describe the moment of the store that the contents show."""
        return {
            "store_id": self.store_id,
            "change_no": self.change_no,
            "stamp": self._stamp,
            "last_vector": self._last_vector,
            "model_no": self.model_no,
            "dimensions": self._dimensions,
            "stored": self.stored and (self.stored.last_chunk_no, self.stored.last_vector_no),
        }

    @classmethod
    def from_files(cls, loaded: Loaded) -> Contents:
        """Continue from files; large arrays stay on disk until they are read."""
        rows = assemble(loaded)
        published = Published.of_parts(
            loaded.head.head_id, [part for part, _ in loaded.parts], rows
        )
        contents = _of_rows(rows, loaded.head.state, published)
        if len(loaded.parts) == 1:
            for name, room in loaded.parts[0][1].rooms.items():
                kind, _, column = name.partition(".")
                columns = contents._memories if kind == "memory" else contents._chunks
                if column in columns:  # a later version may have more
                    columns[column].give_room(room)
        return contents


def _of_rows(rows: Rows, state: Mapping[str, Any], published: Published) -> Contents:
    codes = {name: Codes(names) for name, names in rows.names.items()}
    return Contents(
        rows.memories, rows.chunks, codes, rows.segments, state, rows.by_turn, published
    )


def _are_among(numbers: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the wanted numbers that are known; `isin` would go through all known ones."""
    places = np.minimum(np.searchsorted(numbers, wanted), max(len(numbers) - 1, 0))
    there: NDArray[np.bool_] = numbers.take(places) == wanted if len(numbers) else wanted < 0
    return there


def _places(numbers: NDArray[np.int64], wanted: Sequence[int]) -> NDArray[np.int64]:
    """Give the place of each number among the known ones; in a sound store all are known."""
    asked = np.array(wanted, np.int64)
    places = np.searchsorted(numbers, asked)
    if len(asked) and (places.max() >= len(numbers) or not np.array_equal(numbers[places], asked)):
        raise DamagedRow("rows belong to memories or chunks that are not there")
    return places
