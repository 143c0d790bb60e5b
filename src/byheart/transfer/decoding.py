"""Convert files in any Unicode encoding to UTF-8."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO

from byheart.errors import InvalidInput

# The first bytes of a text show its encoding.
MARK_BYTES = 4
# Windows writes these marks when a program's output is redirected to a file.
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def find_encoding(head: bytes) -> str:
    """Determine the encoding of a text from its first bytes."""
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    match tuple(head[:2]):  # JSON and notes hardly ever begin with a non-Latin character
        case 0, second if second:
            return "utf-16-be"
        case first, 0 if first:
            return "utf-16-le"
    return "utf-8"


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Decode bytes to text, or raise with the position of the first invalid byte."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name} is not {encoding.upper()} text: byte {error.start:,} is "
            f"0x{data[error.start]:02x}",
            "turn it into UTF-8 first, for example with: iconv -f latin1 -t utf-8",
        ) from error


def as_utf8(stream: BinaryIO, head: bytes) -> BinaryIO:
    """Wrap a stream that begins with `head`, so that it yields UTF-8."""
    encoding = find_encoding(head)
    return stream if encoding == "utf-8" else io.BufferedReader(_Recoded(stream, encoding))


class _Recoded(io.RawIOBase):
    """Convert a stream in another encoding to UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._given = 0

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor, if there is one."""
        return self._stream.fileno()

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._given

    def readinto(self, buffer: Any) -> int:
        """Read more bytes as UTF-8."""
        while not self._ready:
            part = self._stream.read(len(buffer))
            try:
                text = self._decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                raise InvalidInput(f"it is not {error.encoding.upper()} text") from error
            self._ready = text.encode(errors="replace")
            if not part:
                break
        given, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(given)] = given
        self._given += len(given)
        return len(given)
