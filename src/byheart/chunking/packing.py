"""Pack blocks into chunks: divide long blocks, and let short neighbours share a chunk.

Blocks and chunks are processed as streams, so that a million list items or headings are never in
memory at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain, pairwise
from typing import NamedTuple

from byheart.chunking.block import Block, lay_end_to_end, no_parts
from byheart.chunking.prose import cut_sentences, cut_to_size
from byheart.chunking.ruler import Ruler
from byheart.startup.dataclass_types import dataclass

# Up to this many pieces are kept as found. Beyond that, neighbours are joined up to this fraction
# of a chunk: the chunks still end at the same boundaries, but at fewer of them.
_MANY_PIECES, _JOINED_SHARE = 50_000, 8
# The number of pieces to collect before complete sections are passed on.
_HANDED_ON = 1_000


class Joining(NamedTuple):
    """Say when sections share a chunk: `several` fit into one, and `in_a_row` are that small."""

    several: int
    in_a_row: int


def pack(
    blocks: Iterable[Block], ruler: Ruler, target_tokens: int, joining: Joining
) -> Iterator[Sequence[Block]]:
    """Yield the pieces of each chunk in order: they cover the text, and no chunk is blank."""
    sections = _find_sections(blocks, ruler, target_tokens)
    for group in _join_tiny(sections, ruler, target_tokens, joining):
        if len(group) > 1:
            yield list(chain.from_iterable(group))
        else:
            yield from _share_out(group[0], ruler, target_tokens)


def _find_sections(
    blocks: Iterable[Block], ruler: Ruler, target_tokens: int
) -> Iterator[Sequence[Block]]:
    """Yield the pieces from one that opens a chunk up to the next."""
    apart = _Apart(ruler, target_tokens)
    for block in lay_end_to_end(_one_at_least(blocks), 0, len(ruler.content)):
        apart.add(block)
        yield from apart.finished()
    yield from apart.finished(everything=True)


def _one_at_least(blocks: Iterable[Block]) -> Iterator[Block]:
    found = iter(blocks)
    yield next(found, Block(0, "text"))
    yield from found


@dataclass(slots=True)
class _Apart:
    """Collect the pieces of the blocks, divided as far as the target requires."""

    ruler: Ruler
    target_tokens: int
    pieces: list[Block] = field(default_factory=list)
    next_opens: bool = False
    looked_at: int = _HANDED_ON
    full: int = _MANY_PIECES

    def add(self, block: Block) -> None:
        """Append a block whole if it fits, otherwise its parts, otherwise cuts of it."""
        opens = block.opens or self.next_opens
        clinging = bool(self.pieces) and self.pieces[-1].clings and not opens
        room = self.ruler.reach(
            self.pieces[-1].start if clinging else block.start, self.target_tokens
        )
        if block.grain == "whole" or block.end <= room:
            self._append(block if block.opens == opens else block._replace(opens=opens), clinging)
            return
        parts = iter(block.parts())
        first_part = next(parts, None)
        if first_part is not None:
            self.next_opens = opens or (block.encloses and not clinging)
            for part in lay_end_to_end(chain((first_part,), parts), block.start, block.end):
                inherits = block.headings and not part.headings
                self.add(part._replace(headings=block.headings) if inherits else part)
            self.next_opens = block.encloses
            return
        for cut in self._cut(block, room):
            first = cut.start == block.start
            self._append(
                cut._replace(opens=opens and first), first and clinging and cut.end <= room
            )

    def _append(self, piece: Block, joins: bool) -> None:
        self.next_opens = False
        if joins:
            last = self.pieces.pop()
            piece = last._replace(end=piece.end, clings=piece.clings)
        if piece.parts is not no_parts:
            # The piece is not divided any more, so the parser's data can be freed.
            piece = piece._replace(parts=no_parts)
        self.pieces.append(piece)
        if len(self.pieces) > self.full:
            self.pieces = self._join_small()
            self.full = 2 * max(len(self.pieces), _MANY_PIECES)

    def _join_small(self) -> list[Block]:
        """Join neighbours in one section that together are a small part of a chunk."""
        limit = max(1, self.target_tokens // _JOINED_SHARE)
        joined = [self.pieces[0]]
        reach = self.ruler.reach(joined[0].start, limit)
        for piece in self.pieces[1:]:
            last = joined[-1]
            if piece.end <= reach and not piece.opens and piece.headings == last.headings:
                longer = max(last, piece, key=lambda each: each.end - each.start)
                joined[-1] = last._replace(end=piece.end, kind=longer.kind, clings=piece.clings)
            else:
                joined.append(piece)
                reach = self.ruler.reach(piece.start, limit)
        return joined

    def finished(self, *, everything: bool = False) -> Iterator[Sequence[Block]]:
        """Yield and release the sections that can no longer grow."""
        if everything:
            yield from _divide_at_openings(_absorb_blanks(self.pieces, self.ruler))
            return
        if len(self.pieces) < self.looked_at:
            return
        # White space joins the piece before it, so pieces before a visible opening cannot change.
        at = next(filter(self._opens_visibly, range(len(self.pieces) - 1, 0, -1)), 0)
        before = _absorb_blanks(self.pieces[:at], self.ruler)
        if before and not self.ruler.is_blank(before[0].start, before[-1].end):
            yield from _divide_at_openings(before)
            self.pieces = self.pieces[at:]
        self.looked_at = 2 * len(self.pieces) + _HANDED_ON

    def _opens_visibly(self, at: int) -> bool:
        piece = self.pieces[at]
        return piece.opens and not self.ruler.is_blank(piece.start, piece.end)

    def _cut(self, block: Block, room: int) -> Iterator[Block]:
        """Cut a block without parts at sentences, and cut longer sentences wherever necessary."""
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
    """Join white space to the piece before it; at the beginning, to the piece after it."""
    kept: list[Block] = []
    for piece in pieces:
        if kept and ruler.is_blank(piece.start, piece.end):
            kept[-1] = kept[-1]._replace(end=piece.end)
        elif kept and ruler.is_blank(kept[-1].start, kept[-1].end):
            kept[-1] = piece._replace(start=kept[-1].start)
        else:
            kept.append(piece)
    return kept


def _divide_at_openings(pieces: Sequence[Block]) -> Iterator[Sequence[Block]]:
    opening = [0, *(at for at, piece in enumerate(pieces) if piece.opens and at), len(pieces)]
    for first, last in pairwise(opening):
        yield pieces[first:last]


def _join_tiny(
    sections: Iterable[Sequence[Block]], ruler: Ruler, target_tokens: int, joining: Joining
) -> Iterator[list[Sequence[Block]]]:
    """Yield each section alone, or several together in a long row of tiny sections."""
    held: list[list[Sequence[Block]]] = []
    is_long_row = False
    for group in _group_tiny(sections, ruler, target_tokens, joining.several):
        if len(group) == 1:
            yield from _apart(held)
            yield group
            held, is_long_row = [], False
        elif is_long_row:
            yield group
        else:
            held.append(group)
            if sum(map(len, held)) >= joining.in_a_row:
                yield from held
                held, is_long_row = [], True
    yield from _apart(held)


def _apart(groups: Iterable[list[Sequence[Block]]]) -> Iterator[list[Sequence[Block]]]:
    return ([section] for group in groups for section in group)


def _group_tiny(
    sections: Iterable[Sequence[Block]], ruler: Ruler, target_tokens: int, several: int
) -> Iterator[list[Sequence[Block]]]:
    """Group sections if `several` in a row fit into one chunk."""
    waiting: list[Sequence[Block]] = []
    joined = False  # whether the previous sections were joined
    for section in sections:
        waiting.append(section)
        while waiting and waiting[-1][-1].end > ruler.reach(waiting[0][0].start, target_tokens):
            joined = len(waiting) > several
            count = len(waiting) - 1 if joined else 1
            yield waiting[:count]
            waiting = waiting[count:]
    if not waiting:
        return
    size = ruler.count_tokens(waiting[0][0].start, waiting[-1][-1].end)
    is_tiny = size * several <= target_tokens * len(waiting)
    if is_tiny and (joined or len(waiting) >= several):
        yield waiting
    else:
        yield from ([each] for each in waiting)


def _share_out(run: Sequence[Block], ruler: Ruler, target_tokens: int) -> Iterator[Sequence[Block]]:
    """Fill as few chunks as the target allows, as evenly as possible.

    The smallest limit that needs no more chunks leaves no small remainder at the end.
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
    """Return the indexes of the bounds at which chunks of at most the limit begin and end."""
    cuts = [0]
    while cuts[-1] < len(bounds) - 1:
        reach = ruler.reach(bounds[cuts[-1]], limit_tokens)
        cuts.append(max(bisect_right(bounds, reach) - 1, cuts[-1] + 1))
    return cuts
