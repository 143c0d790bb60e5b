"""Keep the index of one process: columns, postings and vectors, derived from a database.

The database is the only source of truth. Before every search, the index is updated to exactly the
change that the transaction of the search sees, so an answer is never stale and never ahead of its
transaction. The index follows the log of changes; if the log does not reach back far enough, the
index reads the whole database.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import ChunkText, IndexedDatabase, IndexSource
from byheart.errors import StoreError
from byheart.index import file
from byheart.index.array_search import View
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
from byheart.index.terms import chunk_terms
from byheart.model import UNEMBEDDED
from byheart.model.damage import DamagedRow, only_sound_rows

# The number of chunks that are read and inverted at a time; it bounds the memory of a rebuild.
_BATCH = 2000
# The index file is written again when this many chunks are missing from it.
_LEAST_UNPUBLISHED, _MOST_UNPUBLISHED = 400, 4000
_MOST_ATTEMPTS = 50
# The pause after the file could not be written; it doubles with each failure.
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3600.0
_ARRAYS = {f"memory.{name}" for name in MEMORY_TYPES} | {f"chunk.{name}" for name in CHUNK_TYPES}


class Index:
    """Keep a view of the store up to date, and write it to its file on disk."""

    def __init__(self, path: Path, database: IndexedDatabase) -> None:
        self.path = path
        self._database = database
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._contents: _Contents | None = None
        self._view: View | None = None
        self._pause_seconds = 0.0
        self._pause_until = 0.0
        self.on_work: Callable[[str, float], None] = lambda _work, _seconds: None

    def view(self, source: IndexSource) -> View | None:
        """Give the view at the moment of the transaction; `None` if the index is ahead of it."""
        change = source.last_change()
        change_no = change[0]
        view = self._view
        if view is not None and view.change == change:
            return view
        with self._lock:
            contents = self._contents
            if contents is not None and contents.change_no > change_no:
                return None
            started = time.perf_counter()
            if contents is None or not contents.can_follow(source):
                contents = self._load(source)
            work = "catch_up" if contents.change_no else "rebuild"
            # An update that was interrupted leaves mixed contents: begin again from the file.
            self._contents = self._view = None
            with only_sound_rows():
                contents.catch_up(source, change)
            self._contents = contents
            self._view = contents.view()
            self.on_work(work, time.perf_counter() - started)
            return self._view

    def _load(self, source: IndexSource) -> _Contents:
        contents = self._read_file()
        # A file ahead of this transaction was written after it began: a later transaction uses it.
        if contents is not None and contents.change_no <= source.last_change().number:
            if contents.can_follow(source):
                return contents
            self._remove_file()
        return _Contents.empty(source)

    def unpublished(self) -> bool:
        """Say whether enough is missing from the file to make writing it again worth the time."""
        contents = self._contents
        if contents is None or not self._database.writable:
            return False
        if time.monotonic() < self._pause_until:
            return False
        least = max(_LEAST_UNPUBLISHED, min(_MOST_UNPUBLISHED, contents.published // 5))
        return contents.unpublished >= least

    def publish(self) -> None:
        """Write the index to its file without removed rows, and continue from that file.

        Searches continue meanwhile: they wait only while the new file is mapped.
        """
        with self._publishing:
            try:
                self._publish()
            except (OSError, StoreError):
                self._pause()
                raise
            self._pause_seconds = self._pause_until = 0.0

    def _pause(self) -> None:
        # Each attempt lays out the whole index, and a full disk usually stays full for a while.
        longer = max(_SHORTEST_PAUSE_SECONDS, 2 * self._pause_seconds)
        self._pause_seconds = min(longer, _LONGEST_PAUSE_SECONDS)
        self._pause_until = time.monotonic() + self._pause_seconds

    def _publish(self) -> None:
        with self._lock:
            contents = None if self._contents is None else self._contents.frozen()
        if contents is None:
            return
        before = file.read_header(self.path)
        published = self._read_file() if self._is_as_new(before, contents) else None
        if published is None:
            started = time.perf_counter()
            laid_out = contents.compacted().to_file()

            def is_superseded() -> bool:
                header = file.read_header(self.path)
                return header != before and self._is_as_new(header, contents)

            mode = self._database.prepare_publishing()
            # Rows that a newer file has removed must not come back with this file.
            file.write(self.path, laid_out, mode, is_superseded)
            published = self._read_file()
            self.on_work("publish", time.perf_counter() - started)
        with self._lock:
            if published is not None:
                self._contents = published

    def _read_file(self) -> _Contents | None:
        written = file.read(self.path)
        # A file without one of the arrays is of an earlier version: everything is read again.
        if written is None or not written.arrays.keys() >= _ARRAYS:
            return None
        return _Contents.from_file(written)

    def _is_as_new(self, header: dict[str, Any] | None, contents: _Contents) -> bool:
        """Say whether a file, perhaps written by another process, already has these contents."""
        if header is None or not contents.is_behind(header["state"]):
            return False
        change_no, stamp = header["state"]["change_no"], header["state"]["stamp"]
        with self._database.snapshot() as source:
            return bool(source.stamp_of(change_no) == stamp)

    def publish_in_background(self) -> None:
        """Publish in a thread beside searches, unless another thread is publishing already."""
        if not self._publishing.locked():
            threading.Thread(
                target=self._publish_quietly, name="byheart-index", daemon=True
            ).start()

    def _publish_quietly(self) -> None:
        # The file only saves time: a full disk must not make any call fail.
        with contextlib.suppress(OSError, StoreError):
            self.publish()

    def rewrite(self) -> bool:
        """Write the file again now, without removed rows; say whether that succeeded."""
        for _ in range(_MOST_ATTEMPTS):
            with self._database.snapshot() as source:
                if self.view(source) is not None:
                    break  # otherwise another thread is ahead: begin a newer transaction
        else:
            self.discard()
        with contextlib.suppress(OSError):
            self.publish()
            return True
        return False

    def start_anew(self) -> None:
        """Discard the contents in memory; keep the file, which is still used if it fits."""
        with self._lock:
            self._contents = self._view = None

    def discard(self) -> None:
        """Discard the index in memory and on disk."""
        with self._publishing, self._lock:
            self._contents = self._view = None
            self._remove_file()

    def _remove_file(self) -> None:
        if self._database.writable:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)


class _Contents:
    """Hold the growing index; `view()` shows its present contents."""

    def __init__(
        self,
        memories: dict[str, NDArray[Any]],
        chunks: dict[str, NDArray[Any]],
        codes: dict[str, Codes],
        segments: list[Segment],
        state: dict[str, Any],
        by_turn: NDArray[np.int64] | None = None,
    ) -> None:
        self._memories = {name: Growing(rows) for name, rows in memories.items()}
        self._chunks = {name: Growing(rows) for name, rows in chunks.items()}
        self._codes = codes
        self._segments = segments
        self.store_id: str = state["store_id"]
        self.change_no: int = state["change_no"]
        self._stamp: int = state["stamp"]
        self._last_vector: int = state["last_vector"]
        self._model_no: int | None = state["model_no"]
        self._dimensions: int = state["dimensions"]
        self.published = len(chunks["chunk_nos"]) if state["published"] else 0
        self._unpublished_vectors = False
        self._by_turn = sort_turns(memories, chunks) if by_turn is None else by_turn

    @classmethod
    def empty(cls, source: IndexSource) -> _Contents:
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
                "published": False,
            },
        )

    def can_follow(self, source: IndexSource) -> bool:
        """Say whether the store's log continues from here: same store, same history."""
        if self.store_id != source.store_id():
            return False
        if self.change_no == 0:
            return True
        return source.stamp_of(self.change_no) == self._stamp

    def catch_up(self, source: IndexSource, change: tuple[int, int]) -> None:
        """Read everything that was committed up to a change."""
        if change == (self.change_no, self._stamp):
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
            self._model_no,
            self._dimensions,
        ):
            return
        self._model_no, self._dimensions, self._last_vector = model_no, dimensions, 0
        self._segments = [without_vectors(each, dimensions) for each in self._segments]
        embedded = self._chunks["embedded"].view
        self._unpublished_vectors |= bool(embedded.any())
        without_need = np.array(list(source.chunks_without_vectors()), np.int64)
        self._chunks["embedded"] = Growing(np.isin(self._chunks["chunk_nos"].view, without_need))

    def _refresh_known_memories(self, source: IndexSource) -> bool:
        """Read changed memories again; say whether any of them moved within its session."""
        known = self._memories["memory_nos"].view
        last = int(known[-1]) if len(known) else 0
        changed = source.changed_since(self.change_no, last)
        if not changed.memory_nos:
            return False
        before = places_of(self._memories)
        slots = np.searchsorted(known, np.array(changed.memory_nos, np.int64))
        is_there = np.isin(changed.memory_nos, [row[0] for row in changed.rows])
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
            self._by_turn = self._by_turn[self._chunks["alive"].view.take(self._by_turn)]

    def _append_memories(self, source: IndexSource) -> None:
        known = self._memories["memory_nos"].view
        last = int(known[-1]) if len(known) else 0
        rows = source.memories_after(last)
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
        nothing = empty_segment(self._dimensions)
        while True:
            known = self._chunks["chunk_nos"].view
            last = int(known[-1]) if len(known) else 0
            rows = source.chunks_after(last, _BATCH)
            if not rows:
                break
            postings = self._append_chunks(rows)
            yield Segment(*postings, nothing.vector_slots, nothing.signs, nothing.embeddings)
            if len(rows) < _BATCH:
                break
        while self._model_no is not None:
            vectors = source.vectors_after(self._last_vector, self._model_no, _BATCH)
            if vectors:
                yield Segment(
                    nothing.terms,
                    nothing.starts,
                    nothing.slots,
                    nothing.counts,
                    *self._append_vectors(vectors),
                )
            if len(vectors) < _BATCH:
                # Vectors of the next model, made meanwhile, need not be skipped again each time.
                self._last_vector = max(self._last_vector, source.last_vector_no())
                break

    def _append_chunks(
        self, rows: Sequence[ChunkText]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]:
        first_slot = len(self._chunks["chunk_nos"].view)
        found = [(first_slot + at, chunk_terms(chunk)) for at, chunk in enumerate(rows)]
        owners = _places(self._memories["memory_nos"].view, [row.memory_no for row in rows])
        self._chunks["chunk_nos"].append(np.array([row.chunk_no for row in rows], np.int64))
        self._chunks["owner"].append(owners.astype(np.int32))
        self._chunks["length"].append(np.array([len(terms) for _, terms in found], np.int32))
        self._chunks["alive"].append(np.ones(len(rows), np.bool_))
        # A chunk that never gets vectors counts as embedded: no vector is missing.
        embedded = [row.chunk_type in UNEMBEDDED for row in rows]
        self._chunks["embedded"].append(np.array(embedded, np.bool_))
        return build_postings(found)

    def _append_vectors(
        self, rows: Sequence[tuple[int, int, bytes]]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int16]]:
        self._last_vector = rows[-1][0]
        # Vectors of chunks that lost their memory are ignored here: the doctor reports them.
        known = self._chunks["chunk_nos"].view
        there = np.isin(np.array([row[1] for row in rows], np.int64), known)
        rows = [row for row, is_there in zip(rows, there, strict=True) if is_there]
        slots = _places(known, [row[1] for row in rows])
        self._chunks["embedded"].replace(slots, True)
        flat = np.frombuffer(b"".join(row[2] for row in rows), "<f4")
        return build_vectors(slots.tolist(), flat.reshape(len(rows), self._dimensions))

    def _merge_small_segments(self) -> None:
        # Segment sizes form a geometric series, so a chunk is copied O(log n) times at most. The
        # first segment is the mapped, large one of the file: it is merged only when published.
        first = 1 if self.published else 0
        while (
            len(self._segments) >= first + 2
            and self._segments[-2].weight <= 2 * self._segments[-1].weight
        ):
            last = self._segments.pop()
            self._segments[-1] = merge([self._segments[-1], last])

    @property
    def unpublished(self) -> int:
        """Count the chunks that were added or removed since the file was written."""
        if self._unpublished_vectors:
            return len(self._chunks["chunk_nos"].view)
        alive = self._chunks["alive"].view
        return 2 * len(alive) - self.published - int(np.count_nonzero(alive))

    def is_behind(self, state: dict[str, Any]) -> bool:
        """Say whether a file belongs to the same store, and to the same change or a later one."""
        return bool(state["store_id"] == self.store_id and state["change_no"] >= self.change_no)

    def frozen(self) -> _Contents:
        """Copy the present contents, so that they can be written while these contents grow."""
        return _Contents(
            {name: rows.view for name, rows in self._memories.items()},
            {name: rows.view for name, rows in self._chunks.items()},
            {name: Codes(list(codes.numbers)) for name, codes in self._codes.items()},
            list(self._segments),
            self._state(published=bool(self.published)),
            self._by_turn,
        )

    def view(self) -> View:
        """Give a view of the present contents."""
        return View(
            (self.change_no, self._stamp),
            self._model_no,
            self._dimensions,
            MemoryColumns(**{name: rows.view for name, rows in self._memories.items()}),
            ChunkColumns(**{name: rows.view for name, rows in self._chunks.items()}),
            self._codes,
            tuple(self._segments),
            self._by_turn,
        )

    def compacted(self) -> _Contents:
        """Copy the contents into one segment, without removed memories and chunks."""
        view = self.view()
        # Forgotten memories stay, because they can be restored.
        memory_alive = view.memories.space != NONE
        new_owner = np.cumsum(memory_alive) - 1
        alive = view.chunks.alive
        renumber = np.where(alive, np.cumsum(alive) - 1, -1)
        chunks = {name: rows.view[alive] for name, rows in self._chunks.items()}
        chunks["owner"] = new_owner[chunks["owner"]].astype(np.int32)
        segments = self._segments or [empty_segment(self._dimensions)]
        memories = {name: rows.view[memory_alive] for name, rows in self._memories.items()}
        # Names that no row uses any more are removed too: they may have to be forgotten for good.
        codes = {}
        for name in CODED:
            codes[name], memories[name] = self._codes[name].without_unused(memories[name])
        return _Contents(
            memories,
            chunks,
            codes,
            [merge(segments, renumber)],
            self._state(published=True),
        )

    def _state(self, published: bool) -> dict[str, Any]:
        return {
            "store_id": self.store_id,
            "change_no": self.change_no,
            "stamp": self._stamp,
            "last_vector": self._last_vector,
            "model_no": self._model_no,
            "dimensions": self._dimensions,
            "published": published,
        }

    def to_file(self) -> file.IndexFile:
        """Lay out compacted contents for the file."""
        segment = self._segments[0]
        arrays = {f"memory.{name}": rows.view for name, rows in self._memories.items()}
        arrays |= {f"chunk.{name}": rows.view for name, rows in self._chunks.items()}
        arrays |= {name: getattr(segment, name) for name in Segment.__slots__}
        arrays["by_turn"] = self._by_turn
        codes = {name: list(codes.numbers) for name, codes in self._codes.items()}
        return file.IndexFile({"state": self._state(True), "codes": codes}, arrays)

    @classmethod
    def from_file(cls, loaded: file.IndexFile) -> _Contents:
        """Continue from the contents of a file; large arrays stay on disk until they are read."""
        arrays = loaded.arrays
        return cls(
            {name: np.array(arrays[f"memory.{name}"]) for name in MEMORY_TYPES},
            {name: np.array(arrays[f"chunk.{name}"]) for name in CHUNK_TYPES},
            {name: Codes(loaded.header["codes"][name]) for name in CODED},
            [Segment(**{name: arrays[name] for name in Segment.__slots__})],
            loaded.header["state"],
            np.array(arrays["by_turn"]),
        )


def _places(numbers: NDArray[np.int64], wanted: Sequence[int]) -> NDArray[np.int64]:
    """Give the place of each number among the known ones; in a sound store all are known."""
    asked = np.array(wanted, np.int64)
    places = np.searchsorted(numbers, asked)
    if len(asked) and (places.max() >= len(numbers) or not np.array_equal(numbers[places], asked)):
        raise DamagedRow("rows belong to memories or chunks that are not there")
    return places
