"""Convert a file to text, according to its format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from byheart.errors import NotText
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.workspace.formats.documents import Document
from byheart.workspace.formats.encodings import decode
from byheart.workspace.formats.notebooks import read_notebook
from byheart.workspace.formats.pdf_files import read_pdf
from byheart.workspace.formats.tables import read_table
from byheart.workspace.formats.web_pages import read_web_page
from byheart.workspace.formats.word_files import read_word_file
from byheart.workspace.regular_file import SeenFile, read_bytes
from byheart.workspace.rules.secret_files import find_secret_content

_FROM_TEXT: dict[str, Callable[[str, str], Document]] = {
    "csv": read_table,
    "tsv": read_table,
    "html": read_web_page,
    "htm": read_web_page,
    "xhtml": read_web_page,
    "ipynb": read_notebook,
}
_FROM_BYTES: dict[str, Callable[[bytes], Document]] = {
    "docx": read_word_file,
    "docm": read_word_file,
    "pdf": read_pdf,
}


_UNSTORABLE = late_pattern("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileText:
    """Hold the text of a file, and how it was obtained."""

    seen: SeenFile
    """The file as it was opened, before it was read."""
    text: str
    format: str | None
    """The format of the converted text; None if the path and the text tell it."""
    title: str | None
    """The title of the document, or the names of a table's columns."""
    encoding: str | None
    """The encoding of the file; None if the file is not a text, such as a PDF."""
    file_hash: bytes
    """SHA-256 of the file's bytes."""
    lines_match: bool
    """True if the text has the line numbers of the file, so that an editor can open a line."""


def read_file(root: Path, path: str) -> FileText:
    """Read the text of a file below a root, in any supported format and encoding."""
    seen, data = read_bytes(root, path)
    file_hash = hashlib.sha256(data).digest()
    name = PurePosixPath(path).name
    extension = PurePosixPath(name.lower()).suffix[1:]
    encoding: str | None = None
    if extension in _FROM_BYTES:
        document = _FROM_BYTES[extension](data)
    else:
        decoded = decode(data)
        encoding = decoded.encoding
        if (reason := find_secret_content(decoded.text)) is not None:
            raise NotText(reason)
        read = _FROM_TEXT.get(extension)
        document = read(decoded.text, name) if read else Document(decoded.text)
    return FileText(
        seen=seen,
        text=_without_surrogates(document.text),
        format=document.format,
        title=_without_surrogates(document.title) if document.title else None,
        encoding=encoding,
        file_hash=file_hash,
        lines_match=document.lines_match,
    )


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON and PDF may contain but no store can hold."""
    return text if text.isascii() else _UNSTORABLE.sub("\ufffd", text)
