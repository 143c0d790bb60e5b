"""Terms: the words that a chunk is found by."""

from __future__ import annotations

import json

from byheart.language import terms as words


def index_terms(
    content: str, headings: str, title: str | None, summary: str, derived: str, first: bool
) -> list[str]:
    """List the terms a chunk is found by: its text, where it stands, and what it was called.

    A word of a title or heading counts twice: it tells more than one of the text, on every set that
    has titles (docs/quality.md).
    """
    names = [*(heading[1] for heading in json.loads(headings)), title or ""]
    parts = [content, *names, *names]
    if first and "summary" not in derived:
        parts.append(summary)
    return words.terms("\n".join(parts))
