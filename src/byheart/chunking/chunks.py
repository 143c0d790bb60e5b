"""Chunks: a text of any format becomes exact slices of about the target's size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from byheart.chunking.block import Block
from byheart.chunking.code import find_code_blocks
from byheart.chunking.markdown import find_markdown_blocks
from byheart.chunking.packing import pack
from byheart.chunking.prose import find_paragraphs
from byheart.chunking.restructured_text import find_rst_blocks
from byheart.chunking.ruler import Ruler
from byheart.contracts import TokenCounter
from byheart.errors import InvalidInput
from byheart.model import Chunk, Heading


def split(
    content: str, *, format: str, tokens: TokenCounter, target_tokens: int = 400
) -> list[Chunk]:
    """Split a text into chunks that, joined, give exactly the text.

    Only a fence of code may exceed the target. Lines are counted from 1; `\\n`, `\\r\\n` and a
    lone `\\r` each end one; `end_line` is the line of the chunk's last character.
    """
    if target_tokens < 1:
        raise InvalidInput(f"target_tokens is {target_tokens}", "use 1 or more; the default is 400")
    ruler = Ruler(content, tokens.token_starts(content))
    groups = pack(_find_blocks(ruler, format), ruler, target_tokens) if content else ()
    return [_chunk(index, pieces, ruler) for index, pieces in enumerate(groups)]


def _find_blocks(ruler: Ruler, format: str) -> Sequence[Block]:
    if format == "markdown":
        return find_markdown_blocks(ruler)
    if format == "text":
        return find_paragraphs(ruler)
    if format == "rst":
        return find_rst_blocks(ruler)
    kind, _, language = format.partition(":")
    if kind != "code" or not language:
        raise InvalidInput(
            f"unknown format {format!r}", 'use "markdown", "rst", "text" or "code:<language>"'
        )
    return find_code_blocks(ruler, language)


def _chunk(index: int, pieces: Sequence[Block], ruler: Ruler) -> Chunk:
    start, end = pieces[0].start, pieces[-1].end
    return Chunk(
        index=index,
        content=ruler.content[start:end],
        start_char=start,
        end_char=end,
        start_line=ruler.line_at(start),
        end_line=ruler.line_at(end - 1),
        chunk_type=_type_of(pieces),
        # Of headings joined to one another, the first may be cut off before the next begins.
        headings=tuple(each for each in _common_headings(pieces) if each.start_char < end),
        token_count=ruler.count_tokens(start, end),
    )


def _type_of(pieces: Sequence[Block]) -> str:
    """Name a chunk by its heading, or else by the kind that makes up most of it."""
    if pieces[0].kind == "heading":
        return "section"
    shares: Counter[str] = Counter()
    for piece in pieces:
        shares[piece.kind] += piece.end - piece.start
    kind, share = shares.most_common(1)[0]
    return kind if 2 * share > pieces[-1].end - pieces[0].start else "text"


def _common_headings(pieces: Sequence[Block]) -> tuple[Heading, ...]:
    """Give the headings that all pieces stand under."""
    first = pieces[0].headings
    for piece in pieces[1:]:
        shared = takewhile(
            lambda pair: pair[0] == pair[1], zip(first, piece.headings, strict=False)
        )
        first = tuple(heading for heading, _ in shared)
    return first
