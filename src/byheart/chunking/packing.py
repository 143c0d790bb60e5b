"""Packing: blocks that are too long are taken apart, short neighbours share a chunk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from byheart.chunking.block import Block, lay_end_to_end
from byheart.chunking.prose import cut_sentences, cut_to_size
from byheart.chunking.ruler import Ruler


def pack(blocks: Sequence[Block], ruler: Ruler, target_tokens: int) -> Iterator[Sequence[Block]]:
    """Give the pieces of each chunk, in order: they cover the text, and no chunk is blank."""
    apart = _Apart(ruler, target_tokens)
    for block in lay_end_to_end(blocks or [Block(0, "text")], 0, len(ruler.content)):
        apart.add(block)
    pieces = _absorb_blanks(apart.pieces, ruler)
    opening = [0, *(at for at, piece in enumerate(pieces) if piece.opens and at), len(pieces)]
    for first, last in pairwise(opening):
        yield from _share_out(pieces[first:last], ruler, target_tokens)


@dataclass(slots=True)
class _Apart:
    """The pieces so far of the blocks that were taken apart as far as the target asks."""

    ruler: Ruler
    target_tokens: int
    pieces: list[Block] = field(default_factory=list)
    next_opens: bool = False

    def add(self, block: Block) -> None:
        """Append a block whole if it fits, or else its parts, or else cuts of it."""
        opens = block.opens or self.next_opens
        clinging = bool(self.pieces) and self.pieces[-1].clings and not opens
        room = self.ruler.reach(
            self.pieces[-1].start if clinging else block.start, self.target_tokens
        )
        if block.grain == "whole" or block.end <= room:
            self._append(block._replace(opens=opens), clinging)
        elif parts := block.parts():
            self.next_opens = opens or (block.encloses and not clinging)
            for part in lay_end_to_end(parts, block.start, block.end):
                self.add(part)
            self.next_opens = block.encloses
        else:
            first, *others = self._cut(block, room)
            self._append(first._replace(opens=opens), clinging and first.end <= room)
            self.pieces.extend(others)

    def _append(self, piece: Block, joins: bool) -> None:
        self.next_opens = False
        if joins:
            last = self.pieces.pop()
            piece = last._replace(end=piece.end, clings=piece.clings)
        self.pieces.append(piece)

    def _cut(self, block: Block, room: int) -> Iterator[Block]:
        """Cut a block without parts at sentences, and what is still too long wherever it must."""
        start, limit = block.start, room
        by_sentence = block.grain == "sentences"
        ends = cut_sentences(self.ruler, start, block.end) if by_sentence else iter(())
        for end in chain(ends, (block.end,)):
            cuts = cut_to_size(self.ruler, start, end, self.target_tokens, limit)
            for cut in chain(cuts, (end,)):
                clings = block.clings and cut == block.end
                yield block._replace(start=start, end=cut, opens=False, clings=clings)
                start = cut
            limit = self.ruler.reach(start, self.target_tokens)


def _absorb_blanks(pieces: Sequence[Block], ruler: Ruler) -> list[Block]:
    """Join white space to the piece before it, at the beginning to the one after it."""
    kept: list[Block] = []
    for piece in pieces:
        if kept and ruler.is_blank(piece.start, piece.end):
            kept[-1] = kept[-1]._replace(end=piece.end)
        elif kept and ruler.is_blank(kept[-1].start, kept[-1].end):
            kept[-1] = piece._replace(start=kept[-1].start)
        else:
            kept.append(piece)
    return kept


def _share_out(run: Sequence[Block], ruler: Ruler, target_tokens: int) -> Iterator[Sequence[Block]]:
    """Fill as few chunks as the target allows, as evenly as that number allows.

    The smallest limit that needs no more chunks leaves no scrap at the end.
    """
    bounds = [*(piece.start for piece in run), run[-1].end]
    cuts = _fill(bounds, ruler, target_tokens)
    low, high = 1, target_tokens
    while len(cuts) > 2 and low < high:
        middle = (low + high) // 2
        tighter = _fill(bounds, ruler, middle)
        if len(tighter) == len(cuts):
            cuts, high = tighter, middle
        else:
            low = middle + 1
    for first, last in pairwise(cuts):
        yield run[first:last]


def _fill(bounds: Sequence[int], ruler: Ruler, limit_tokens: int) -> list[int]:
    """Give the indexes of the bounds at which chunks of at most the limit begin and end."""
    cuts = [0]
    while cuts[-1] < len(bounds) - 1:
        reach = ruler.reach(bounds[cuts[-1]], limit_tokens)
        cuts.append(max(bisect_right(bounds, reach) - 1, cuts[-1] + 1))
    return cuts
