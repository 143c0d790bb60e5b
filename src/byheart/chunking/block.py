"""Define a block: a stretch of text that belongs together in its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from byheart.model import Heading

Grain = Literal["sentences", "lines", "whole"]


def no_parts() -> Iterable[Block]:
    """Return no parts: the format cannot divide this block."""
    return ()


class Block(NamedTuple):
    """Hold a stretch of text from `start` to the beginning of the next block.

    `parts` divides a block that is too long. It is called only then, so that a parser need not
    descend into a block that fits. A block without parts is cut by its `grain`.
    """

    start: int
    kind: str
    headings: tuple[Heading, ...] = ()
    grain: Grain = "sentences"
    parts: Callable[[], Iterable[Block]] = no_parts
    opens: bool = False
    """Begins a new chunk, whatever room the one before has left."""
    encloses: bool = False
    """Its parts, if it must be divided, do not share chunks with what stands outside."""
    clings: bool = False
    """Says little alone and stays with what follows: a heading, a signature."""
    end: int = 0
    """Set by `lay_end_to_end`."""


# After this many blocks, a block that begins this close to the previous one is merged into it. Each
# block takes some microseconds, and ten megabytes could hold three million blocks.
_MANY_BLOCKS, _SCRAP_CHARS = 50_000, 64


def lay_end_to_end(blocks: Iterable[Block], start: int, end: int) -> Iterator[Block]:
    """Extend the blocks to cover a slice: each reaches to the next, without gaps."""
    last: Block | None = None
    for count, block in enumerate(blocks):
        if last is None:
            last = block if block.start == start else block._replace(start=start)
        elif count < _MANY_BLOCKS or not _is_scrap(block, last):
            yield last._replace(end=block.start)
            last = block
    if last is not None:
        yield last._replace(end=end)


def _is_scrap(block: Block, last: Block) -> bool:
    if block.start - last.start >= _SCRAP_CHARS or block.opens or block.encloses:
        return False
    return not last.clings and block.headings == last.headings
