"""Translate the shared statements, which are written for SQLite, to PostgreSQL.

Most words are the same in both databases. PostgreSQL gets functions of the same names for some of
SQLite's (`schema/0001_store.sql`); this module replaces the rest.
"""

from __future__ import annotations

import re
from functools import lru_cache

from byheart.startup.late_patterns import late_pattern

_PAIRS = """(SELECT key, value #>> '{}' AS value, CASE jsonb_typeof(value)
    WHEN 'string' THEN 'text' WHEN 'number' THEN 'real' WHEN 'boolean' THEN CAST(value AS text)
    ELSE jsonb_typeof(value) END AS type
    FROM jsonb_each(CAST(to_json_value(metadata) AS jsonb)))"""
_WORDS = (
    # The pairs of an object; PostgreSQL's function of this name is for lists.
    (late_pattern(r"\bjson_each\(metadata\)"), _PAIRS),
    (late_pattern(r"\bifnull\("), "coalesce("),
    # `CROSS JOIN` and `INDEXED BY` only tell SQLite's planner what to do.
    (late_pattern(r"\bCROSS JOIN\b"), "JOIN"),
    (late_pattern(r" INDEXED BY \w+| NOT INDEXED\b"), ""),
    # Text is read as text: values.py restores NUL characters, which bytes of it do not have.
    (late_pattern(r"\bCAST\(([\w.]+) AS BLOB\)"), r"\1"),
)
_PLACEHOLDER = late_pattern(r"\?(\d*)|'[^']*'")


@lru_cache(2048)
def translate(statement: str) -> str:
    """Write a shared statement for PostgreSQL: `?` becomes `$1`, `$2` …, `?2` becomes `$2`."""
    for word, replacement in _WORDS:
        statement = word.sub(replacement, statement)
    count = 0

    def number(match: re.Match[str]) -> str:
        nonlocal count
        if match[1] is None:
            return match[0]  # a text in quotes
        if match[1]:
            return f"${match[1]}"
        count += 1
        return f"${count}"

    return _PLACEHOLDER.sub(number, statement)
