"""Measure slices of one text in tokens and lines."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from byheart.startup.late_patterns import late_pattern

# CommonMark's line endings, which editors count too. U+2028, form feeds and the other breaks of
# `str.splitlines` do not end a line.
LINE_ENDING = late_pattern(r"\r\n?|\n")
_VISIBLE = late_pattern(r"\S")

# A tokenizer may treat a megabyte without spaces as one unknown token. Prose has 4 to 6 characters
# per token; a chunk never gets more than this many.
MAX_CHARS_PER_TOKEN = 16


class Ruler:
    """Measure slices of `content`, whose tokens begin at `token_starts`."""

    def __init__(self, content: str, token_starts: Sequence[int]) -> None:
        self.content = content
        # Four bytes per line: as Python integers, ten megabytes of line ends would take 360 MB.
        self.line_starts = array("I", (0,))
        self.line_starts.extend(match.end() for match in LINE_ENDING.finditer(content))
        self._token_starts = token_starts

    def count_tokens(self, start: int, end: int) -> int:
        """Count the tokens that begin in the slice."""
        return bisect_left(self._token_starts, end) - bisect_left(self._token_starts, start)

    def reach(self, start: int, limit_tokens: int) -> int:
        """Return the furthest end of a slice from `start` that has at most `limit_tokens`."""
        after_last = bisect_left(self._token_starts, start) + limit_tokens
        end = min(len(self.content), start + limit_tokens * MAX_CHARS_PER_TOKEN)
        if after_last < len(self._token_starts):
            end = min(end, int(self._token_starts[after_last]))
        return end

    def line_at(self, position: int) -> int:
        """Return the line, counted from 1, that contains the character."""
        return bisect_right(self.line_starts, position)

    def line_start(self, line: int) -> int:
        """Return the start of a line, counted from 0; past the last line, the end of the text."""
        return self.line_starts[line] if line < len(self.line_starts) else len(self.content)

    def is_blank(self, start: int, end: int) -> bool:
        """Check whether the slice is empty or white space only."""
        return _VISIBLE.search(self.content, start, end) is None

    def skip_blank_lines(self, line: int, end_line: int) -> int:
        """Return the first line from `line` on, before `end_line`, that is not blank."""
        visible = _VISIBLE.search(self.content, self.line_start(line), self.line_start(end_line))
        return self.line_at(visible.start()) - 1 if visible else end_line
