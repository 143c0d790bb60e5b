"""Split a text of any format into exact slices of about the target size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from byheart.chunking.block import Block
from byheart.chunking.code import find_code_blocks
from byheart.chunking.markdown import Titles, find_markdown_blocks
from byheart.chunking.packing import Joining, pack
from byheart.chunking.prose import find_paragraphs
from byheart.chunking.restructured_text import find_rst_blocks
from byheart.chunking.ruler import Ruler
from byheart.chunking.script_size import scale_to_script
from byheart.contracts import TokenCounter
from byheart.errors import InvalidInput, TooManyChunks
from byheart.model import Chunk, Heading, section_of

# Sections share a chunk only if a thousand in a row have fewer tokens than this on average, so that
# the entries of a glossary stay apart. No document among 2,924 has such a row (decision 0004).
_TINY_TOKENS, _TINY_IN_A_ROW = 12, 1_000
# In a text with many chunks, sections of this size or smaller share chunks.
_SMALL_TOKENS, _MANY_CHUNKS = 50, 10_000


class _Slice(NamedTuple):
    """Hold the part of a chunk that is known before the whole text is read."""

    start: int
    end: int
    chunk_type: str
    headings: tuple[Heading, ...]


def split(
    content: str,
    *,
    format: str,
    tokens: TokenCounter,
    target_tokens: int = 400,
    max_chunks: int = 20_000,
    by_script: bool = False,
) -> list[Chunk]:
    """Split a text into chunks that, joined, give exactly the text.

    Only a code fence may exceed the target. Lines are counted from 1; `\\n`, `\\r\\n` and a lone
    `\\r` each end a line; `end_line` is the line of the chunk's last character. With `by_script`,
    the target of prose is larger where a script needs more tokens for the same text.
    """
    if target_tokens < 1:
        raise InvalidInput(f"target_tokens is {target_tokens}", "use 1 or more; the default is 400")
    _check_format(format)
    if not content:
        return []
    starts = tokens.token_starts(content)
    ruler = Ruler(content, starts)
    if by_script and not format.startswith("code:"):
        target_tokens = scale_to_script(content, len(starts), target_tokens)
    tiny = Joining(max(2, target_tokens // _TINY_TOKENS), _TINY_IN_A_ROW)
    small = Joining(max(2, target_tokens // _SMALL_TOKENS), 2)
    # If there are still more chunks than allowed, sections share chunks like paragraphs do.
    for joining in (tiny, small, Joining(2, 2)):
        titles = Titles()
        groups = pack(_find_blocks(ruler, format, titles), ruler, target_tokens, joining)
        slices = list(islice(map(_slice, groups), _MANY_CHUNKS))
        if joining is tiny and _are_small(slices, ruler):
            continue
        slices.extend(islice(map(_slice, groups), max(0, max_chunks + 1 - len(slices))))
        if len(slices) <= max_chunks:
            read_titles = titles.read if format == "markdown" else tuple
            return [
                _chunk(index, each._replace(headings=read_titles(each.headings)), ruler)
                for index, each in enumerate(slices)
            ]
    raise TooManyChunks(
        f"this text becomes more than {max_chunks:,} chunks, the most that one text may have",
        "save it in parts, or raise max_chunks",
    )


def _are_small(slices: Sequence[_Slice], ruler: Ruler) -> bool:
    """Check whether there are many chunks with few tokens each."""
    if len(slices) < _MANY_CHUNKS:
        return False
    return ruler.count_tokens(0, slices[-1].end) < len(slices) * _SMALL_TOKENS


def _check_format(format: str) -> None:
    kind, _, language = format.partition(":")
    if format not in ("markdown", "text", "rst") and (kind != "code" or not language):
        raise InvalidInput(
            f"unknown format {format!r}", 'use "markdown", "rst", "text" or "code:<language>"'
        )


def _find_blocks(ruler: Ruler, format: str, titles: Titles) -> Iterable[Block]:
    if format == "markdown":
        return find_markdown_blocks(ruler, titles)
    if format == "text":
        return find_paragraphs(ruler)
    if format == "rst":
        return find_rst_blocks(ruler)
    return find_code_blocks(ruler, format.partition(":")[2])


def _slice(pieces: Sequence[Block]) -> _Slice:
    end = pieces[-1].end
    # If headings were joined, the first may be cut off before the next begins.
    headings = tuple(each for each in _headings_of(pieces) if each.start_char < end)
    return _Slice(pieces[0].start, end, _type_of(pieces), headings)


def _chunk(index: int, slice_: _Slice, ruler: Ruler) -> Chunk:
    start, end, chunk_type, headings = slice_
    return Chunk(
        index=index,
        content=ruler.content[start:end],
        start_char=start,
        end_char=end,
        start_line=ruler.line_at(start),
        end_line=ruler.line_at(end - 1),
        chunk_type=chunk_type,
        headings=headings,
        token_count=ruler.count_tokens(start, end),
    )


def _type_of(pieces: Sequence[Block]) -> str:
    """Return the chunk's type: "section" after a heading, otherwise the most frequent kind."""
    if pieces[0].kind == "heading":
        return "section"
    shares: Counter[str] = Counter()
    for piece in pieces:
        shares[piece.kind] += piece.end - piece.start
    kind, share = shares.most_common(1)[0]
    return kind if 2 * share > pieces[-1].end - pieces[0].start else "text"


def _headings_of(pieces: Sequence[Block]) -> tuple[Heading, ...]:
    """Return the headings above all pieces; if sections share a chunk, those of the first.

    Without this rule, `granularity=medium` would join the sections to text above all headings.
    """
    common = _common_headings(pieces)
    if any(piece.opens for piece in pieces[1:]):
        first = section_of(pieces[0].headings)
        return first if len(common) < len(first) else common
    return common


def _common_headings(pieces: Sequence[Block]) -> tuple[Heading, ...]:
    """Return the headings that all pieces share."""
    first = pieces[0].headings
    for piece in pieces[1:]:
        shared = takewhile(
            lambda pair: pair[0] == pair[1], zip(first, piece.headings, strict=False)
        )
        first = tuple(heading for heading, _ in shared)
    return first
