"""Measure the texts of a context: count their tokens, and cut them to a limit."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from byheart.contracts import TokenCounter

# Most of a context stays the same from turn to turn, so cache the counts of texts, except of large
# ones.
_REMEMBERED, _LONGEST_REMEMBERED = 1024, 10_000
# The average token has fewer than 16 characters in any text, and fewer than 6 in nearly every text.
_CHARS_PER_TOKEN, _USUAL_CHARS_PER_TOKEN = 16, 6


class Measure:
    """Count tokens with one named counter."""

    def __init__(self, tokens: TokenCounter, name: str, by_word: bool = False) -> None:
        self.name = name
        self._tokens = tokens
        self._by_word = by_word
        self._remembered = lru_cache(_REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Count the tokens of a text, or return the cached count."""
        return self._remembered(text) if len(text) <= _LONGEST_REMEMBERED else self._count(text)

    def count_joined(self, text: Callable[[], str], parts: int) -> int:
        """Count the tokens of joined lines that have `parts` tokens separately.

        A counter that works word by word gives the same sum, so the joined text is not counted.
        """
        return parts if self._by_word else max(parts, self._count(text()))

    def _count(self, text: str) -> int:
        return len(self._tokens.token_starts(text))

    def shorten(self, text: str, most: int) -> str:
        """Return the beginning of a text, of at most `most` tokens, cut between words."""
        if most <= 0:
            return ""
        # First try a length that is enough for most texts, since counting is the slowest step.
        for chars in (_USUAL_CHARS_PER_TOKEN, _CHARS_PER_TOKEN):
            head = text[: most * chars]
            starts = self._tokens.token_starts(head)
            if len(starts) > most or len(head) == len(text):
                break
        if len(starts) > most:
            head = head[: starts[most]]
        elif len(head) == len(text):
            return text
        space = max(head.rfind(" "), head.rfind("\n"))
        return head[:space].rstrip() if space > len(head) // 2 else head.rstrip()
