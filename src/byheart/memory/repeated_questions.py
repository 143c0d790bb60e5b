"""Say whether a question repeats a part of a text that is to be erased."""

from __future__ import annotations

from collections.abc import Iterable

# A text is compared in pieces; a shorter text counts as a whole, unless it is a word or two that
# anybody may say.
_PIECE_BYTES, _SHORTEST_BYTES = 48, 12


class Repetitions:
    """Recognize questions that repeat a piece of some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._pieces: set[bytes] = set()
        self._short: list[bytes] = []
        for text in texts:
            encoded = text.strip().encode()
            if len(encoded) >= _PIECE_BYTES:
                last = len(encoded) - _PIECE_BYTES
                self._pieces.update(
                    encoded[start : start + _PIECE_BYTES]
                    for start in range(0, last + 1, _PIECE_BYTES)
                )
            elif len(encoded) >= _SHORTEST_BYTES:
                self._short.append(encoded)

    def are_in(self, question: str) -> bool:
        """Say whether a question repeats a piece."""
        encoded = question.encode()
        if any(piece in encoded for piece in self._short):
            return True
        return any(
            encoded[start : start + _PIECE_BYTES] in self._pieces
            for start in range(len(encoded) - _PIECE_BYTES + 1)
        )
