"""Define the result of a format reader, and escape plain text for Markdown."""

from __future__ import annotations

import lzma
import re
import struct
import zlib
from xml.parsers import expat
from zipfile import BadZipFile

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

# Exceptions that damaged data can raise in the libraries that unpack and parse it, found by
# damaging files: "Broken PDF files might cause other exceptions", says pypdf's documentation, and
# `zipfile` seeks to negative positions. The list may hide a bug of ours, but one odd file must not
# prevent the others from being indexed.
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
# A line of plain text that begins like this would become a heading or open a fence.
_STRUCTURAL = late_pattern(
    r"[ \t]{0,3}(?=#{1,6}(?:[ \t]|$)|(?:=+|-+)[ \t]*$|```|~~~)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Document:
    """Hold the text of a document, its title, and its format if it differs from the file's."""

    text: str
    format: str | None = None
    title: str | None = None
    lines_match: bool = True


def escape_line(line: str) -> str:
    """Escape a line so that Markdown does not read it as a heading, a rule or a fence."""
    match = _STRUCTURAL.match(line)
    return f"{line[: match.end()]}\\{line[match.end() :]}" if match else line


def shorten_title(title: str) -> str | None:
    """Shorten a title to one line of reasonable length."""
    words = " ".join(title[: 4 * _MAX_TITLE_CHARS].split())
    return words[:_MAX_TITLE_CHARS].strip() or None
