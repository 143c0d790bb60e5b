"""Recognize texts that are too short to mean something alone, such as "yes, please"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from byheart.model import ASIDE, Chunk
from byheart.startup.late_patterns import late_pattern

_LONGEST = 500
_WORD = late_pattern(r"\w+")
_LINE_END = late_pattern(r"\r\n|\n|\r")
# Ideographs and similar scripts have no spaces: one "word" may be a whole sentence.
_UNSPACED = late_pattern("[\u0e00-\u0eff\u1100-\u11ff\u2e80-\uffef\U00020000-\U0003ffff]")


def is_short(content: str, least_words: int) -> bool:
    """Check whether a text has too few words to be embedded."""
    if not content.strip():
        return True
    if len(content) > _LONGEST or _UNSPACED.search(content):
        return False
    return len(list(islice(_WORD.finditer(content), least_words))) < least_words


def count_line_ends(text: str) -> int:
    """Count the line endings in a text."""
    return len(_LINE_END.findall(text))


def keep_aside(content: str) -> Iterator[Chunk]:
    """Yield a short text as one chunk that is not embedded; an empty text has no chunk."""
    if content:
        yield Chunk(
            index=0,
            content=content,
            start_char=0,
            end_char=len(content),
            start_line=1,
            end_line=count_line_ends(content) + (not content.endswith(("\r", "\n"))),
            chunk_type=ASIDE,
            headings=(),
            token_count=len(_WORD.findall(content)),
        )
