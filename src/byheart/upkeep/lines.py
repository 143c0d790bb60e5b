"""Lines: JSONL as people and programs write it, one object on each line."""

from __future__ import annotations

import json
from typing import Any

from byheart.errors import InvalidInput


def decode(data: bytes, name: str) -> str:
    """Read bytes as UTF-8, or say where they are not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name} is not UTF-8 text: byte {error.start:,} is 0x{data[error.start]:02x}",
            "turn it into UTF-8 first, for example with: iconv -f latin1 -t utf-8",
        ) from error


def parse_object(line: bytes, place: str) -> dict[str, Any]:
    """Read the object on a line, or say what is wrong with it."""
    text = decode(line, place).removeprefix("\ufeff")
    try:
        item = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):  # it says "line 1" of every line
            reason = f"{error.msg} at column {error.colno:,}"
        raise InvalidInput(
            f"{place} is not JSON: {reason}", "write one object on each line"
        ) from error
    if not isinstance(item, dict):
        raise InvalidInput(
            f"{place} is not an object", 'write one on each line, such as {"content": "…"}'
        )
    return item
