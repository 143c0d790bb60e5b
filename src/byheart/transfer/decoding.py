"""Text: UTF-8, whichever way of writing Unicode a program has chosen for a file."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO

from byheart.errors import InvalidInput

# So many of a text's first bytes tell how it is written.
MARK_BYTES = 4
# What Windows writes when a program's output is sent to a file.
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def find_encoding(head: bytes) -> str:
    """Tell by its first bytes how a text is written."""
    if head.startswith(_UTF16_MARKS):
        return "utf-16"
    match tuple(head[:2]):  # of JSON and of notes, the first character is hardly ever another
        case 0, second if second:
            return "utf-16-be"
        case first, 0 if first:
            return "utf-16-le"
    return "utf-8"


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Read bytes as text, or say where they are none."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name} is not {encoding.upper()} text: byte {error.start:,} is "
            f"0x{data[error.start]:02x}",
            "turn it into UTF-8 first, for example with: iconv -f latin1 -t utf-8",
        ) from error


def as_utf8(stream: BinaryIO, head: bytes) -> BinaryIO:
    """Give a stream that begins so as UTF-8."""
    encoding = find_encoding(head)
    return stream if encoding == "utf-8" else io.BufferedReader(_Recoded(stream, encoding))


class _Recoded(io.RawIOBase):
    """A text in another encoding, as UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._given = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def fileno(self) -> int:
        """Give the file of the operating system, if it is one."""
        return self._stream.fileno()

    def tell(self) -> int:
        """Say how much was read."""
        return self._given

    def readinto(self, buffer: Any) -> int:
        """Read some more, and turn it into UTF-8."""
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
