"""A block: a stretch of text that its format holds together, and how it may be cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from byheart.model import Heading

Grain = Literal["sentences", "lines", "whole"]


def _no_parts() -> Sequence[Block]:
    return ()


class Block(NamedTuple):
    """A stretch of text from `start` to where the next block begins.

    `parts` divides a block that is too long. It is called only then, so that a parser need not
    descend into what fits. A block without parts is cut by its `grain`.
    """

    start: int
    kind: str
    headings: tuple[Heading, ...] = ()
    grain: Grain = "sentences"
    parts: Callable[[], Sequence[Block]] = _no_parts
    opens: bool = False
    """Begins a new chunk, whatever room the one before has left."""
    encloses: bool = False
    """Its parts, if it must be divided, do not share chunks with what stands outside."""
    clings: bool = False
    """Says little alone and stays with what follows: a heading, a signature."""
    end: int = 0
    """Set by `lay_end_to_end`."""


def lay_end_to_end(blocks: Sequence[Block], start: int, end: int) -> list[Block]:
    """Let the blocks cover a slice: each reaches to the next, the first and last to the edges."""
    bounds = [start, *(block.start for block in blocks[1:]), end]
    return [
        block._replace(start=begin, end=after)
        for block, (begin, after) in zip(blocks, pairwise(bounds), strict=True)
    ]
