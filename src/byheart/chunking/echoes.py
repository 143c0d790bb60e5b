"""Put repeated passages into separate chunks, which are stored but not searchable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from byheart.chunking.short_texts import count_line_ends, is_short
from byheart.contracts import TokenCounter
from byheart.model import ASIDE, ECHO, Chunk


def set_apart(
    chunks: Sequence[Chunk],
    echoes: Sequence[tuple[int, int]],
    tokens: TokenCounter,
    least_words: int,
) -> list[Chunk]:
    """Cut chunks where an echo begins or ends; joined they are still the text.

    The text left between echoes may be too short to be embedded.
    """
    pieces = (
        piece
        for chunk in chunks
        for piece in _cut(chunk, _within(chunk, echoes), tokens, least_words)
    )
    return [replace(piece, index=index) for index, piece in enumerate(pieces)]


def _within(chunk: Chunk, echoes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the echoes inside a chunk, relative to it, including the blanks around them."""
    inside = []
    for start, end in echoes:
        first, last = max(start, chunk.start_char), min(end, chunk.end_char)
        if (
            first < last
            and chunk.content[first - chunk.start_char : last - chunk.start_char].strip()
        ):
            inside.append((first - chunk.start_char, last - chunk.start_char))
    return [_stretched(chunk.content, *each) for each in inside]


def _stretched(text: str, start: int, end: int) -> tuple[int, int]:
    if not text[:start].strip():
        start = 0
    if not text[end:].strip():
        end = len(text)
    return start, end


def _cut(
    chunk: Chunk, echoes: Sequence[tuple[int, int]], tokens: TokenCounter, least_words: int
) -> Iterator[Chunk]:
    if not echoes:
        yield chunk
        return
    edges = sorted({0, len(chunk.content), *(edge for echo in echoes for edge in echo)})
    waiting = edges[0]
    for start, end in pairwise(edges):
        content = chunk.content[waiting:end]
        if not chunk.content[start:end].strip() and end < len(chunk.content):
            continue  # blanks alone do not form a chunk: they begin the next one
        echo = any(first <= start < last for first, last in echoes)
        line = chunk.start_line + count_line_ends(chunk.content[:waiting])
        lines = count_line_ends(content) - content.endswith(("\r", "\n"))
        yield replace(
            chunk,
            content=content,
            start_char=chunk.start_char + waiting,
            end_char=chunk.start_char + end,
            start_line=line,
            end_line=max(line, line + lines),
            chunk_type=ECHO if echo else _type_of(chunk, content, least_words),
            token_count=len(tokens.token_starts(content)),
        )
        waiting = end


def _type_of(chunk: Chunk, content: str, least_words: int) -> str:
    return ASIDE if is_short(content, least_words) else chunk.chunk_type
