"""Read memories by their names, and list them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from byheart.contracts import Listing, ListingPlace, Reader
from byheart.contracts.reader import Order
from byheart.errors import Do, Hint, NotFound, StoreDamaged
from byheart.memory import versions
from byheart.memory.references import complete_id, find_passage, locate
from byheart.model import ChunkWindow, HistoryEntry, Memory, MemoryPage, WrittenFile
from byheart.model import checks as check
from byheart.model.ids import parse_chunk_id, parse_text_id
from byheart.transfer.documents import write_document
from byheart.verbs.engine import Engine


def get(engine: Engine, memory_id: str, space: str | None) -> Memory:
    """Fetch a memory whole; refuse a damaged one."""
    memory = get_any(engine, memory_id, space)
    if memory.damaged:
        raise _damaged(memory.memory_id)
    return memory


def write_to_file(
    engine: Engine,
    memory_id: str,
    output_path: str | Path,
    include_metadata: bool,
    overwrite: bool,
    space: str | None,
) -> WrittenFile:
    """Write a memory to a file."""
    check.check_bool("include_metadata", include_metadata)
    check.check_bool("overwrite", overwrite)
    path = check.check_path("output_path", output_path)
    return write_document(get(engine, memory_id, space), path, include_metadata, overwrite)


def get_any(engine: Engine, memory_id: str, space: str | None) -> Memory:
    """Fetch a memory whole, damaged or not."""
    name, where = check.check_name("memory_id", memory_id), engine.space(space)
    with engine.storage.reading(where) as reader:
        name = complete_id(reader, name, where)
        text = name.partition("#")[0]
        # As a rule, the name is an id.
        reader.prefetch(
            lambda: reader.memory(text, where),
            lambda: reader.states([parse_text_id(text)[0]], where),
        )
        located = locate(reader, name, where)
        if located is not None:
            name = located.memory_id
            if located.line is not None:
                find_passage(reader.chunks_of(name, where), located)
        owner, index = parse_chunk_id(name) if "#" in name else (name, 0)
        memory = reader.memory(owner, where)
        current = parse_text_id(owner)[0]
        state = reader.states([current], where).get(current)
    if state is not None:
        versions.refuse_forgotten(current, state.forgotten_at)
    if memory is None or index >= max(1, memory.chunks):  # an empty turn has no chunks
        raise versions.unknown_error(name)
    return memory


def expand(engine: Engine, chunk_id: str, around: int, space: str | None) -> ChunkWindow:
    """Fetch a chunk with its neighbours."""
    check.check_int("around", around, 0, check.LARGEST_LIMIT)
    name, where = check.check_name("chunk_id", chunk_id), engine.space(space)
    with engine.storage.reading(where) as reader:
        chunk_id = name = complete_id(reader, name, where)
        located = locate(reader, name, where)
        if located is None and "#" not in name and ":" in name:
            raise NotFound(
                f"no file {name} is in this space", Hint("look with: ", Do("list", kind="file"))
            )
        if located is not None:
            memory_id = located.memory_id
            index = find_passage(reader.chunks_of(memory_id, where), located)
            chunk_id = f"{memory_id}#{index}"
        elif name.startswith("mem_") and "#" not in name:  # prompts leave out "#0"
            memory_id, index = name, 0
            chunk_id = f"{name}#0"
        else:
            memory_id, index = parse_chunk_id(name)
        part = range(index - around, index + around + 1)
        found = reader.chunks_of(memory_id, where, part)
    near = tuple(each.chunk for each in found)
    if all(chunk.index != index for chunk in near):
        raise versions.unknown_error(chunk_id)
    if any(each.memory.damaged for each in found):
        raise _damaged(memory_id)
    return ChunkWindow(
        memory_id=memory_id,
        chunk_id=chunk_id,
        target_chunk_index=index,
        context_window=around,
        chunks_returned=len(near),
        expanded_content="".join(chunk.content for chunk in near),
        chunks=near,
    )


def list_memories(engine: Engine, given: Mapping[str, Any]) -> MemoryPage:
    """List the memories that the filters leave."""
    where = engine.filter(given["filters"])
    where = replace(where, forgotten=check.check_bool("forgotten", given["forgotten"]))
    limit = check.check_int("limit", given["limit"], 1, check.LARGEST_LIMIT)
    offset = check.check_int("offset", given["offset"], 0, check.LARGEST_OFFSET)
    after = check.check_optional_label("after", given["after"])
    with engine.storage.reading(where.space) as reader:
        order: Order = "newest" if where.session_id is None else "iteration"
        listing = Listing(where, order, limit, offset)
        if after is not None:
            return _list_after(reader, listing, _find_place(reader, after, where.space))
        memories = reader.memories(listing)
        # The last page tells how many there are; counting would read all of them again.
        is_last = len(memories) < limit and (bool(memories) or not offset)
        total = offset + len(memories) if is_last else reader.count(listing)
    return MemoryPage(tuple(memories), total, offset + len(memories) < total)


def _list_after(reader: Reader, listing: Listing, place: ListingPlace) -> MemoryPage:
    assert listing.limit is not None
    one_more = replace(listing, after=place, limit=listing.limit + 1)
    memories = reader.memories(one_more)
    page = tuple(memories[: listing.limit])
    return MemoryPage(page, reader.count(listing), len(memories) > len(page))


def _find_place(reader: Reader, memory_id: str, space: str) -> ListingPlace:
    """Find the place of a memory in a listing, even if it was forgotten meanwhile."""
    name = complete_id(reader, memory_id, space)
    memory, state = reader.memory(name, space, hidden=True), reader.states([name], space).get(name)
    if memory is None or state is None:
        raise versions.unknown_error(name)
    return ListingPlace(memory.session_iter, memory.created_at, state.memory_no)


def history(engine: Engine, memory_id: str, space: str | None) -> tuple[HistoryEntry, ...]:
    """List what happened to a memory, oldest first."""
    name = check.check_label("memory_id", memory_id)
    where = engine.space(space)
    with engine.storage.reading(where) as reader:
        entries = reader.history(name, where)
    if not entries:
        raise versions.unknown_error(name)
    return tuple(entries)


def _damaged(name: str) -> StoreDamaged:
    return StoreDamaged(
        f"the text of {name} is not the one that was saved: the store's file has changed",
        "put a backup in the store's place; or look at what is left with a search, forget it, and "
        "save the text again",
    )
