"""Elements: a JSON array, one element at a time, so that a gigabyte fits into little memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from byheart.errors import InvalidInput

_BLOCK_CHARS = 1 << 20
# One conversation, or one document that is no array, must fit into memory several times.
LARGEST_ELEMENT_CHARS = 1 << 28
_LONGEST_WORD = 16  # what can stand cut off at the end: `false`, an escape, a number
_BETWEEN = re.compile(r"[\s,]*")


def elements(stream: BinaryIO) -> Iterator[tuple[int, Any]]:
    """Give each element of an array with its number, or each document if they are no array."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig")
    try:
        yield from _elements(text)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"it is not UTF-8 text: byte 0x{error.object[error.start]:02x}", "export it again"
        ) from error
    finally:
        text.detach()  # whoever opened the stream closes it


def _elements(text: io.TextIOWrapper) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    buffer, at, number = text.read(_BLOCK_CHARS).lstrip(), 0, 0
    is_array = buffer.startswith("[")
    if is_array:
        at = 1
    while True:
        at = _end_of(_BETWEEN, buffer, at)
        if is_array and buffer.startswith("]", at):
            return
        if not is_array and number and at == len(buffer):
            buffer, at = text.read(_BLOCK_CHARS), 0
            if not buffer:
                return
            continue
        try:
            value, end = decoder.raw_decode(buffer, at)
        except RecursionError as error:
            raise InvalidInput("it is nested too deeply") from error
        except json.JSONDecodeError as error:
            if not _is_cut(error) or len(buffer) - at > LARGEST_ELEMENT_CHARS:
                raise _broken(error, number, cut=False) from error
            # As much again as there is: what is long is then looked at twice, and not many times.
            buffer, at = buffer[at:], 0
            more = text.read(max(_BLOCK_CHARS, len(buffer)))
            if not more:
                raise _broken(error, number, cut=True) from error
            buffer += more
            continue
        number += 1
        yield number, value
        at = end


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Say whether it may be all right, and only goes on in what was not read yet."""
    unread = len(error.doc) - error.pos
    return error.msg.startswith("Unterminated string") or unread < _LONGEST_WORD


def _broken(error: json.JSONDecodeError, number: int, *, cut: bool) -> InvalidInput:
    where = f"after element {number:,}" if number else "at its beginning"
    if cut:
        return InvalidInput(f"it ends {where} in the middle of JSON: the file was cut off")
    return InvalidInput(f"it is not JSON {where}: {error.msg}")
