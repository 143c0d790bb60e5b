"""Read CSV and TSV files unchanged; use their column names as the title.

A row far down says little without the column names. The title precedes every embedded chunk, so
the column names do too, while the text and its line numbers stay those of the file.
"""

from __future__ import annotations

import csv

from byheart.startup.late_patterns import late_pattern
from byheart.workspace.formats.documents import Document, shorten_title

_FIRST_ROW_CHARS = 10_000
_NUMBER = late_pattern(r"[\d.,:+%$€£ -]*")


def read_table(text: str, name: str) -> Document:
    """Read a table, and build its title from the first row if that row names the columns."""
    columns = _column_names(text[:_FIRST_ROW_CHARS], name)
    title = shorten_title(f"{name}: {', '.join(columns)}") if columns else None
    return Document(text, "text", title)


def _column_names(beginning: str, name: str) -> list[str]:
    line = beginning.lstrip("\r\n").splitlines()[:1]
    if not line:
        return []
    separators = "\t" if name.lower().endswith(".tsv") else ",;\t|"
    separator = max(separators, key=line[0].count)
    try:
        row = next(csv.reader(line, delimiter=separator), [])
    except csv.Error:
        return []
    names = [" ".join(cell.split()) for cell in row]
    has_names = len(names) > 1 and not any(_NUMBER.fullmatch(each) for each in names)
    return names if has_names and len(set(names)) == len(names) else []
