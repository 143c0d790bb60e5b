"""Track the token budget of a recall, whose answer is put together from parts."""

from __future__ import annotations

from byheart.contracts import TokenCounter

# A token has fewer characters than this on average in nearly every text.
_CHARS_PER_TOKEN = 16


class Budget:
    """Hold a limit of tokens, and the number of tokens used."""

    def __init__(self, tokens: TokenCounter, max_tokens: int) -> None:
        self._tokens = tokens
        self.max_tokens = max_tokens
        self.used = 0

    @property
    def left(self) -> int:
        """Return how many tokens are not used yet."""
        return self.max_tokens - self.used

    def spend(self, cost: int | None, within: int | None = None) -> bool:
        """Use `cost` tokens if they fit into the budget, or into its first `within` tokens.

        Return whether they fit; a cost of `None` never fits.
        """
        left = self.left if within is None else min(self.left, within - self.used)
        if cost is None or cost > left:
            return False
        self.used += cost
        return True

    def cost(self, text: str, left: int) -> int | None:
        """Count the tokens of a text; return `None` if it has more than `left`."""
        if left <= 0:
            return None
        head = text[: left * _CHARS_PER_TOKEN]
        # Do not count megabytes to learn that a text is too long. The head may have one token more
        # than the same part of the whole text, because its last word may be cut.
        if len(head) < len(text) and self.count(head) > left + 1:
            return None
        cost = self.count(text)
        return cost if cost <= left else None

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokens.token_starts(text))
