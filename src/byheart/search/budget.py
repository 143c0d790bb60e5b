"""The token budget of an answer: what an entry takes is counted as it is written in JSON."""

from __future__ import annotations

import json

from byheart.contracts import TokenCounter
from byheart.model import to_wire

_SEPARATOR = ", "
# So many characters have more tokens than are left, whatever the text, or nearly always.
_CHARS_PER_TOKEN = 16


class Budget:
    """So many tokens at most, and how many of them are used."""

    def __init__(self, tokens: TokenCounter, max_tokens: int) -> None:
        self._tokens = tokens
        self._max_tokens = max_tokens
        self.used = 0

    @property
    def left(self) -> int:
        """Give how many tokens are not used yet."""
        return self._max_tokens - self.used

    def spend(self, cost: int | None, within: int | None = None) -> bool:
        """Use so many tokens if they are left, or left of the first `within`; `None` never are."""
        left = self.left if within is None else min(self.left, within - self.used)
        if cost is None or cost > left:
            return False
        self.used += cost
        return True

    def cost(self, entry: object, left: int) -> int | None:
        """Count the tokens of an entry; `None` if they are more than `left`."""
        if left <= 0:
            return None
        text = json.dumps(to_wire(entry), ensure_ascii=False) + _SEPARATOR
        head = text[: left * _CHARS_PER_TOKEN]
        # A text of megabytes is not counted to its end to learn that it is too long. One token of
        # the head may be a piece of a word that the whole does not cut.
        if len(head) < len(text) and self._count(head) > left + 1:
            return None
        cost = self._count(text)
        return cost if cost <= left else None

    def _count(self, text: str) -> int:
        return len(self._tokens.token_starts(text))
