"""Extract the text of PDF pages with `pypdf`, if it is installed, under a heading per page."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator
from typing import Any

from byheart.errors import Unreadable
from byheart.workspace.formats.documents import BROKEN, Document, escape_line, shorten_title

_MAX_CHARS = 10_000_000
_MAX_SECONDS = 60.0


class _TooMuch(Exception):
    """Stop a page that takes too long to read."""


def read_pdf(data: bytes) -> Document:
    """Write a PDF as Markdown: each page with text under its number."""
    try:
        import pypdf
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError as error:
        raise Unreadable(
            "is a PDF, and what reads PDFs is not installed",
            'pip install "byheart[documents]"',
            for_now=True,
        ) from error
    # pypdf logs every small defect of a file; our own errors say what could not be read.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("is a PDF that is locked with a password")
        text = "\n\n".join(_write_pages(reader))
        title = reader.metadata.title if reader.metadata else None
    except DependencyError as error:
        raise Unreadable(
            "is a PDF that is encrypted in a way that is not read here", for_now=True
        ) from error
    except _TooMuch as error:
        raise Unreadable("is a PDF that takes too long to read") from error
    except (PyPdfError, *BROKEN) as error:
        raise Unreadable("is a damaged PDF") from error
    if not text:
        raise Unreadable("is a PDF without text, perhaps of scanned pages")
    return Document(text + "\n", "markdown", _title(title), lines_match=False)


def _write_pages(reader: Any) -> Iterator[str]:
    deadline = time.monotonic() + _MAX_SECONDS
    chars = 0

    def check(*_: object) -> None:
        if time.monotonic() > deadline:
            raise _TooMuch

    for number, page in enumerate(reader.pages, start=1):
        text = page.extract_text(visitor_operand_before=check).strip()
        check()
        chars += len(text)
        if chars > _MAX_CHARS:
            raise _TooMuch
        if text:
            lines = "\n".join(escape_line(line.rstrip()) for line in text.splitlines())
            yield f"# Page {number}\n\n{lines}"


def _title(title: object) -> str | None:
    return shorten_title(title) if isinstance(title, str) else None
