"""Headings: each block under the ones that it stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byheart.chunking.block import Block
from byheart.model import Heading


def place_under_headings(
    found: Sequence[Block], titles: Iterator[tuple[int, str]], *, opens: bool = False
) -> list[Block]:
    """Give each block its path; a heading without a body joins the deeper one that follows.

    `titles` are the level and the title of each heading; `opens`: the first block begins a chunk.
    """
    blocks: list[Block] = []
    path: tuple[Heading, ...] = ()
    for block in found:
        if block.kind != "heading":
            blocks.append(block._replace(headings=path, opens=opens and not blocks))
            continue
        level, title = next(titles)
        bare = blocks and blocks[-1].kind == "heading" and path[-1].level < level
        path = (*(each for each in path if each.level < level), Heading(level, title, block.start))
        start = blocks.pop().start if bare else block.start
        blocks.append(block._replace(start=start, headings=path, opens=True, clings=True))
    return blocks
