"""Assign each block the headings above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from byheart.chunking.block import Block
from byheart.model import Heading


def place_under_headings(found: Iterable[Block], *, opens: bool = False) -> Iterator[Block]:
    """Assign each block its heading path; join a heading without a body to the deeper next one.

    A block of kind "heading" comes with its own heading alone. `opens`: the first block begins a
    chunk.
    """
    last: Block | None = None
    path: tuple[Heading, ...] = ()
    for block in found:
        if block.kind == "heading":
            [own] = block.headings
            bare = last is not None and last.kind == "heading" and path[-1].level < own.level
            path = (*(each for each in path if each.level < own.level), own)
            block = block._replace(headings=path, opens=True, clings=True)
            if bare and last is not None:
                block, last = block._replace(start=last.start), None
        elif path or opens:
            block = block._replace(headings=path, opens=opens)
        opens = False
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last
