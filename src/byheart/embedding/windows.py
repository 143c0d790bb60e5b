"""Cut a chunk into the texts to embed, so that no part of it is lost silently."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from byheart.contracts import TokenCounter

HEADER_SHARE = 4
# No natural text has this many characters per token, so it limits the work, not the result.
CHARACTERS_PER_TOKEN_AT_MOST = 40


def window_texts(
    chunk_text: str,
    *,
    before: str,
    header: str,
    tokens: TokenCounter,
    window_tokens: int,
    overlap_tokens: int = 80,
) -> list[str]:
    """Return the fewest texts, balanced in size, that together contain the whole chunk.

    Each text starts with `header` (cut to a quarter of the window). The first text also contains
    the end of `before`, the text that precedes the chunk, if this needs no further window. No text
    exceeds `window_tokens`, which `tokens` counts on the finished text.
    """
    header = _leading(header, tokens, window_tokens // HEADER_SHARE)
    starts = tokens.token_starts(chunk_text)
    room = window_tokens - len(tokens.token_starts(header))
    step = 1
    while True:
        slices = _balanced_slices(chunk_text, starts, max(room, 1))
        texts = [_under(header, each) for each in slices]
        excess = max(len(tokens.token_starts(text)) for text in texts) - window_tokens
        if excess <= 0 or room <= 1:
            break
        # A slice can have more tokens alone, or with a header, than within the whole text.
        room -= max(excess, step)
        step *= 2
    lead = _lead(before, slices[0], header, tokens, window_tokens, overlap_tokens)
    return [_under(header, lead + slices[0]), *texts[1:]]


def _under(header: str, text: str) -> str:
    return f"{header}\n\n{text}" if header else text


def _balanced_slices(text: str, starts: Sequence[int], room: int) -> list[str]:
    """Cut the text into the fewest slices of at most `room` tokens, of nearly equal size."""
    total = len(starts)
    if total <= room:
        return [text]
    words = [index for index, start in enumerate(starts) if _is_word_start(text, start)]
    words.append(total)
    fewest = len(_cuts(words, total, room))
    low, high = -(-total // fewest), room
    while low < high:
        middle = (low + high) // 2
        if len(_cuts(words, total, middle)) <= fewest:
            high = middle
        else:
            low = middle + 1
    offsets = [0, *(starts[cut] for cut in _cuts(words, total, low)[:-1]), len(text)]
    return [text[begin:end] for begin, end in pairwise(offsets) if begin < end]


def _cuts(words: Sequence[int], total: int, room: int) -> list[int]:
    """Return the token index at which each slice ends if each slice takes as many words as fit."""
    cuts: list[int] = []
    position = 0
    while position < total:
        furthest = words[bisect_right(words, position + room) - 1]
        # Break a word only if the word alone exceeds the room.
        position = furthest if furthest > position else min(position + room, total)
        cuts.append(position)
    return cuts


def _is_word_start(text: str, offset: int) -> bool:
    return offset == 0 or not (text[offset].isalnum() and text[offset - 1].isalnum())


def _leading(text: str, tokens: TokenCounter, limit: int) -> str:
    """Cut a text to its first `limit` tokens, at the end of a word."""
    text = text[: limit * CHARACTERS_PER_TOKEN_AT_MOST].strip()
    while text and len(starts := tokens.token_starts(text)) > limit:
        ends = [start for start in starts[1 : limit + 1] if _is_word_start(text, start)]
        text = text[: ends[-1] if ends else 0].rstrip()
    return text


def _lead(
    before: str,
    first: str,
    header: str,
    tokens: TokenCounter,
    window_tokens: int,
    overlap_tokens: int,
) -> str:
    """Return as much of the end of `before` as fits into the first window."""
    used = len(tokens.token_starts(_under(header, first)))
    limit = min(overlap_tokens, window_tokens - used)
    if limit <= 0 or not before.strip():
        return ""
    tail = before[-limit * CHARACTERS_PER_TOKEN_AT_MOST :]
    starts = tokens.token_starts(tail)
    for start in starts[-limit:]:
        if not _is_word_start(tail, start):
            continue
        text = _under(header, tail[start:] + first)
        if len(tokens.token_starts(text)) <= window_tokens:
            return tail[start:]
    return ""
