"""Adapt values: text with NUL characters, which PostgreSQL refuses, and exact numbers.

A NUL is stored as U+10FFFE and "0", and a U+10FFFE as itself and "1". Every text is read exactly
as it was written, and texts without these two characters are stored as they are.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.types.string import StrDumper, TextLoader

_SIGN = "\U0010fffe"
_SIGN_BYTES = _SIGN.encode()


def escape(text: str) -> str:
    """Write a text without NUL characters."""
    if "\0" in text or _SIGN in text:
        return text.replace(_SIGN, f"{_SIGN}1").replace("\0", f"{_SIGN}0")
    return text


def unescape(text: str) -> str:
    """Read a text that `escape` wrote."""
    if _SIGN in text:
        return text.replace(f"{_SIGN}0", "\0").replace(f"{_SIGN}1", _SIGN)
    return text


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape(obj))


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = super().load(data)
        assert isinstance(text, str)
        return unescape(text)


class _NumberLoader(Loader):
    """Read sums and averages as Python's own numbers; no column is an exact decimal."""

    def load(self, data: Buffer) -> Any:
        number = float(bytes(data))
        return int(number) if number.is_integer() else number


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Have a connection write and read values as the shared statements expect them."""
    adapters = connection.adapters
    # With their type given, texts need no context to be understood by functions.
    adapters.register_dumper(str, _TextDumper)
    for name in ("text", "varchar"):
        adapters.register_loader(name, _TextLoader)
    adapters.register_loader("numeric", _NumberLoader)
