"""Convert the cells of notebooks to Markdown.

The cells' outputs are left out: they change with every run, and are mostly tables and warnings.
"""

from __future__ import annotations

import json
import re
from typing import Any

from byheart.errors import Unreadable
from byheart.startup.late_patterns import late_pattern
from byheart.workspace.formats.documents import Document, shorten_title

_BACKTICKS = late_pattern(r"^ {0,3}(`{3,})", re.MULTILINE)
_LANGUAGE = late_pattern(r"[\w+#.-]{1,30}")


def read_notebook(text: str, _name: str) -> Document:
    """Write a notebook as Markdown: text cells unchanged, code in fences."""
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("is not a notebook: it is not valid JSON") from error
    cells = _cells_of(notebook)
    if cells is None:
        raise Unreadable("is not a notebook: it has no cells")
    metadata = _object(_object(notebook).get("metadata"))
    language = _language_of(metadata)
    written = [_write(_object(cell), language) for cell in cells]
    title = metadata.get("title")
    return Document(
        "\n\n".join(filter(None, written)) + "\n" if any(written) else "",
        "markdown",
        shorten_title(title) if isinstance(title, str) else None,
        lines_match=False,
    )


def _cells_of(notebook: Any) -> list[Any] | None:
    """Return the cells; until version 3 they were on worksheets."""
    sheets = _object(notebook).get("worksheets")
    if isinstance(sheets, list):
        lists = [_object(sheet).get("cells") for sheet in sheets]
        return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    cells = _object(notebook).get("cells")
    return cells if isinstance(cells, list) else None


def _language_of(metadata: dict[str, Any]) -> str:
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        name = _object(metadata.get(key)).get(field)
        if isinstance(name, str) and _LANGUAGE.fullmatch(name):
            return name
    return "python"


def _write(cell: dict[str, Any], language: str) -> str:
    kind = cell.get("cell_type")
    source = _join(cell.get("source", cell.get("input", ""))).strip("\r\n")
    if not source.strip():
        return ""
    if kind == "code":
        fence = "`" * max(2, *map(len, _BACKTICKS.findall(source)), 0) + "`"
        return f"{fence}{language}\n{source}\n{fence}"
    if kind == "heading":
        level = cell.get("level")
        return "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + " " + source
    return source


def _join(lines: Any) -> str:
    if isinstance(lines, list):
        return "".join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
