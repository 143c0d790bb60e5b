"""A token counter that needs no model: for providers without a local tokenizer."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

# Words in pieces of five characters, everything else (punctuation, symbols, ideographs, kana,
# Hangul, Thai) one by one. Figures against WordPiece: docs/decisions/0002-embedding-model.md.
TOKEN = re.compile(
    r"[^\W_\u0e00-\u0eff\u1100-\u11ff\u3040-\u9fff\uac00-\ud7ff\U00020000-\U0003ffff]{1,5}|\S"
)


class EstimatedTokens:
    """Estimate where the tokens of a text begin; errs on the side of counting too many."""

    token_counter = "estimate"

    def token_starts(self, text: str) -> Sequence[int]:
        """Give the character offset of each estimated token."""
        # Four bytes each instead of forty: ten megabytes may be ten million tokens.
        return array("I", (match.start() for match in TOKEN.finditer(text)))
