"""Convert the paragraphs, headings, lists and tables of a `.docx` to Markdown.

A `.docx` is XML in a zip archive, and the standard library can read it. Archives that unpack to
far more than their size, and XML that defines entities, are refused.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import field
from xml.parsers import expat

from byheart.errors import Unreadable
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.workspace.formats.documents import BROKEN, Document, escape_line, shorten_title

_MAX_XML_BYTES = 50_000_000
_PIECE_BYTES = 1_000_000
_OLD_FORMAT = bytes.fromhex("d0cf11e0a1b11ae1")
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_W_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main "
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_TITLE = "http://purl.org/dc/elements/1.1/ title"
_HEADING = late_pattern(r"heading ?([1-9])|(title)|(subtitle)", re.IGNORECASE)


class _Refused(Exception):
    """Stop at XML that no word processor writes."""


def read_word_file(data: bytes) -> Document:
    """Write a Word document as Markdown."""
    if data.startswith(_OLD_FORMAT):
        raise Unreadable("is a Word document locked with a password, or of before 2007")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            styles = _Styles()
            _parse(archive, "word/styles.xml", styles, required=False)
            body = _Body(styles.levels)
            _parse(archive, "word/document.xml", body)
            properties = _Properties()
            _parse(archive, "docProps/core.xml", properties, required=False)
    except KeyError as error:
        raise Unreadable("is not a Word document: there is no text in it") from error
    except _Refused as error:
        raise Unreadable(f"is a Word document that is not read here: {error}") from error
    except RuntimeError as error:
        raise Unreadable("is a Word document that is packed in a way not read here") from error
    except BROKEN as error:
        raise Unreadable("is a damaged Word document") from error
    text = "\n\n".join(body.blocks)
    title = shorten_title("".join(properties.title))
    return Document(text + "\n" if text else "", "markdown", title, lines_match=False)


@dataclass(slots=True)
class _Properties:
    """Read the title from the document's properties."""

    title: list[str] = field(default_factory=list)
    inside: bool = False

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        self.inside = name == _TITLE

    def end(self, _name: str) -> None:
        self.inside = False

    def text(self, data: str) -> None:
        if self.inside:
            self.title.append(data)


@dataclass(slots=True)
class _Styles:
    """Map style ids to heading levels: ids are in the writer's language, style names are not."""

    levels: dict[str, int] = field(default_factory=dict)
    style: str = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if local == "style":
            self.style = _value(attributes, "styleId")
        elif local == "name" and self.style:
            match = _HEADING.fullmatch(_value(attributes, "val"))
            if match:
                self.levels[self.style] = min(6, int(match[1] or (1 if match[2] else 2)))
        elif local == "outlineLvl" and self.style:
            level = _value(attributes, "val")
            if level in tuple("012345678"):
                self.levels.setdefault(self.style, min(6, int(level) + 1))

    def end(self, name: str) -> None:
        if _local(name) == "style":
            self.style = ""

    def text(self, _data: str) -> None:
        """Ignore text: styles have none."""


@dataclass(slots=True)
class _Body:
    """Collect the paragraphs of a document; those in a table become rows."""

    levels: dict[str, int]
    blocks: list[str] = field(default_factory=list)
    paragraph: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    level: int = 0
    is_item: bool = False
    in_text: bool = False
    in_changes: bool = False
    tables: int = 0
    fallbacks: int = 0
    """Text boxes are written twice, the second time for old programs."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if name == _FALLBACK:
            self.fallbacks += 1
        elif self.fallbacks:
            return
        elif local == "p":
            self.level, self.is_item = 0, False
        elif local == "pStyle" and not self.in_changes:
            self.level = self.levels.get(_value(attributes, "val"), 0)
        elif local == "pPrChange":
            # This element describes the paragraph before a tracked change.
            self.in_changes = True
        elif local == "numPr" and not self.in_changes:
            self.is_item = True
        elif local == "t":
            self.in_text = True
        elif local in ("tab", "br", "cr"):
            self.paragraph.append("\n" if local != "tab" else "\t")
        elif local == "noBreakHyphen":
            self.paragraph.append("-")
        elif local == "tbl":
            self.tables += 1

    def end(self, name: str) -> None:
        local = _local(name)
        if name == _FALLBACK:
            self.fallbacks -= 1
        elif self.fallbacks:
            return
        elif local == "t":
            self.in_text = False
        elif local == "pPrChange":
            self.in_changes = False
        elif local == "p":
            self._end_paragraph()
        elif local == "tr" and self.tables == 1:
            self.rows.append(" | ".join(filter(None, self.cells)))
            self.cells = []
        elif local == "tbl":
            self.tables -= 1
            if not self.tables:
                table = "\n".join(map(escape_line, filter(None, self.rows)))
                self.blocks += [table] if table else []
                self.rows = []

    def text(self, data: str) -> None:
        if self.in_text:
            self.paragraph.append(data)

    def _end_paragraph(self) -> None:
        text = "".join(self.paragraph).strip()
        self.paragraph = []
        if not text:
            return
        if self.tables:
            self.cells.append(" ".join(text.split()))
        elif self.level:
            self.blocks.append(f"{'#' * self.level} {' '.join(text.split())}")
        else:
            lines = "\n".join(escape_line(line.strip()) for line in text.split("\n"))
            self.blocks.append(f"- {lines}" if self.is_item else lines)


def _parse(
    archive: zipfile.ZipFile,
    name: str,
    reader: _Properties | _Styles | _Body,
    *,
    required: bool = True,
) -> None:
    """Parse one file of the archive with a reader."""
    if not required and name not in archive.NameToInfo:
        return
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.buffer_text = True
    # If an archive understates the size, `zipfile` stops at the stated size.
    if archive.getinfo(name).file_size > _MAX_XML_BYTES:
        raise _Refused(f"it unpacks to more than {_MAX_XML_BYTES // 1_000_000} MB")
    with archive.open(name) as opened:
        while piece := opened.read(_PIECE_BYTES):
            parser.Parse(piece, False)
        parser.Parse(b"", True)


def _refuse_doctype(*_: object) -> None:
    raise _Refused("its XML defines entities")


def _local(name: str) -> str:
    """Return the local name of an element in the document's own namespace."""
    for namespace in (_W, _W_STRICT):
        if name.startswith(namespace):
            return name[len(namespace) :]
    return ""


def _value(attributes: dict[str, str], name: str) -> str:
    return attributes.get(_W + name) or attributes.get(_W_STRICT + name) or ""
