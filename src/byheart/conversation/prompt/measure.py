"""The measure of a context: how many tokens a text has, and where to cut it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from byheart.contracts import TokenCounter

# From turn to turn most of a context stays: what was counted is remembered, unless it is large.
_REMEMBERED, _LONGEST_REMEMBERED = 1024, 10_000
# So many characters have more tokens than that, whatever the text, or nearly always.
_CHARS_PER_TOKEN, _USUAL_CHARS_PER_TOKEN = 16, 6


class Measure:
    """Count tokens as one named counter does."""

    def __init__(self, tokens: TokenCounter, name: str, by_word: bool = False) -> None:
        self.name = name
        self._tokens = tokens
        self._by_word = by_word
        self._remembered = lru_cache(_REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Count the tokens of a text, or remember how many there were."""
        return self._remembered(text) if len(text) <= _LONGEST_REMEMBERED else self._count(text)

    def count_joined(self, text: Callable[[], str], parts: int) -> int:
        """Count the tokens of whole lines put together that by themselves have so many.

        Only a strange counter finds more: one that counts word by word need not do it again.
        """
        return parts if self._by_word else max(parts, self._count(text()))

    def _count(self, text: str) -> int:
        return len(self._tokens.token_starts(text))

    def shorten(self, text: str, most: int) -> str:
        """Give the beginning of a text in at most so many tokens, ended between words."""
        if most <= 0:
            return ""
        # First what is enough of most texts: counting costs more than all else here.
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
