"""Read JSONL: one object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.transfer.decoding import decode

# A file without line breaks must not become one line that exhausts the memory.
LONGEST_LINE_BYTES, _BLOCK_BYTES = 1 << 28, 1 << 20


def number_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines with their numbers; truncate lines that are too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE_BYTES):
        number += 1
        if len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
            _pass_over_line(stream)
            line += b"\n"  # too long, rather than incomplete
        if line.strip():
            yield number, line


def _pass_over_line(stream: BinaryIO) -> None:
    while (part := stream.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
        pass


def parse_object(line: bytes, place: str) -> dict[str, Any]:
    """Parse the object on a line, or raise with the reason."""
    if len(line) > LONGEST_LINE_BYTES:
        raise InvalidInput(f"{place} is too long: more than {LONGEST_LINE_BYTES:,} bytes")
    text = decode(line, place).removeprefix("\ufeff").rstrip(" \t\r\n")
    try:
        item = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):  # its message would say "line 1" for every line
            where = "its end, column" if error.pos >= len(text) else "column"
            reason = f"{error.msg} at {where} {error.colno:,}"
        raise InvalidInput(
            f"{place} is not JSON: {reason}", "write one object on each line"
        ) from error
    if not isinstance(item, dict):
        raise InvalidInput(
            f"{place} is not an object", 'write one on each line, such as {"content": "…"}'
        )
    return item
