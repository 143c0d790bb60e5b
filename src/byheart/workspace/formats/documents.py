"""Documents: what a reader makes of a file, and Markdown that means what the file says."""

from __future__ import annotations

import lzma
import re
import struct
import zlib
from dataclasses import dataclass
from xml.parsers import expat
from zipfile import BadZipFile

# What damaged data can raise in what unpacks and parses it, as found by damaging it: "Broken PDF
# files might cause other exceptions", says pypdf's documentation, and `zipfile` seeks to negative
# places. A bug of ours may hide among them, but one odd file must not keep the others out.
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BadZipFile,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    expat.ExpatError,
    lzma.LZMAError,
    struct.error,
    zlib.error,
)
_MAX_TITLE_CHARS = 200
# What a line of plain text must not begin with, or it becomes a heading or opens a fence.
_STRUCTURAL = re.compile(r"[ \t]{0,3}(?=#{1,6}(?:[ \t]|$)|(?:=+|-+)[ \t]*$|```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a document, its format if that is not the file's, and its title."""

    text: str
    format: str | None = None
    title: str | None = None
    lines_match: bool = True


def escape_line(line: str) -> str:
    """Keep a line of text from being read as a heading, a rule or a fence."""
    match = _STRUCTURAL.match(line)
    return f"{line[: match.end()]}\\{line[match.end() :]}" if match else line


def shorten_title(title: str) -> str | None:
    """Put a title on one line of reasonable length."""
    words = " ".join(title[: 4 * _MAX_TITLE_CHARS].split())
    return words[:_MAX_TITLE_CHARS].strip() or None
