"""Count the values and nesting levels of a JSON text before it is parsed.

A text of 18 MB parses in milliseconds if it is one string. If it is six million empty lists, it
takes seconds and half a gigabyte. Counting is cheap, and stops at the first value too many.
"""

from __future__ import annotations

import re

from byheart.interfaces.rest.problems import Problem

# Only metadata and tags are nested in a call, and no real data is nested this deep.
MOST_LEVELS = 64
# The limit for a call without a list of items.
MOST_VALUES_OF_CALL = 50_000
# The limit for a list of items to save. A body of 20 MB exceeds it only if its values have fewer
# than 40 bytes on average.
MOST_VALUES = 500_000

_PIECE_BYTES = 65_536
_INSIDE_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")


class JsonShape:
    """Count the values and levels of a JSON text as its bytes arrive."""

    def __init__(self, most_values: int) -> None:
        self._most_values = most_values
        self._values = 0
        self._level = 0
        self._in_string = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Count the next bytes; raise `Problem` when there are too many values or levels."""
        for start in range(0, len(data), _PIECE_BYTES):
            self._feed_piece(self._rest + data[start : start + _PIECE_BYTES])

    def _feed_piece(self, piece: bytes) -> None:
        # Python's parser also accepts UTF-16, but this class would miscount its quotes.
        if b"\x00" in piece:
            raise Problem(400, "the body is not JSON in UTF-8: it has a null byte", "send UTF-8")
        self._rest = b""
        at = 0
        while at < len(piece):
            if self._in_string:
                at = self._end_of_string(piece, at)
            else:
                quote = piece.find(b'"', at)
                end = quote if quote >= 0 else len(piece)
                self._count(piece[at:end])
                self._in_string = quote >= 0
                at = end + 1

    def _end_of_string(self, piece: bytes, at: int) -> int:
        """Find where a string ends; keep a backslash at the end for the next piece."""
        inside = _INSIDE_STRING.match(piece, at)
        end = inside.end() if inside else at
        if end < len(piece) and piece[end] == ord("\\"):
            self._rest = piece[end:]
            return len(piece)
        if end < len(piece):
            self._in_string = False
            self._add_values(1)
        return end + 1

    def _count(self, outside: bytes) -> None:
        """Count the levels and values between two strings."""
        self._nest(outside)
        self._add_values(sum(outside.count(each) for each in (b",", b"[", b"{")))

    def _nest(self, outside: bytes) -> None:
        opened = outside.count(b"[") + outside.count(b"{")
        closed = outside.count(b"]") + outside.count(b"}")
        if self._level + opened <= MOST_LEVELS:
            self._level += opened - closed
            return
        for bracket in outside.translate(None, _ALL_BUT_BRACKETS):
            self._level += 1 if bracket in b"[{" else -1
            if self._level > MOST_LEVELS:
                raise Problem(
                    400,
                    f"the body is nested deeper than {MOST_LEVELS} levels",
                    "send a flatter object",
                )

    def _add_values(self, number: int) -> None:
        self._values += number
        if self._values > self._most_values:
            raise Problem(
                413,
                f"the body has more than {self._most_values:,} values",
                "send it in parts",
            )
