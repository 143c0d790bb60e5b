"""Estimate token counts without a model, for providers that have no local tokenizer."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from byheart.startup.late_patterns import late_pattern

# A word counts one token per five characters; any other character (punctuation, symbols,
# ideographs, kana, Hangul, Thai) counts one token.
# Comparison with WordPiece: docs/decisions/0002-embedding-model.md.
TOKEN = late_pattern(
    r"[^\W_\u0e00-\u0eff\u1100-\u11ff\u3040-\u9fff\uac00-\ud7ff\U00020000-\U0003ffff]{1,5}|\S"
)


class EstimatedTokens:
    """Estimate where the tokens of a text begin; the estimate errs towards too many tokens."""

    token_counter = "estimate"

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offset of each estimated token."""
        # An array takes four bytes per token, a list forty; a text may have ten million tokens.
        return array("I", map(re.Match.start, TOKEN.finditer(text)))

    def counter_to_send(self) -> EstimatedTokens | None:
        """Return a counter for another process; `None` if a subclass counts in its own way."""
        is_own = type(self).token_starts is EstimatedTokens.token_starts
        return EstimatedTokens() if is_own else None
