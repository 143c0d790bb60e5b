"""Make the terms that a chunk is found by."""

from __future__ import annotations

import json

from byheart.contracts import ChunkText
from byheart.language import terms as words
from byheart.language.word_pieces import pieces_of_text
from byheart.model import ECHO


def chunk_terms(chunk: ChunkText) -> list[str]:
    """List the terms that a chunk is found by: its text, its headings, its title and summary.

    A word of a title or heading counts twice: that ranks better on every evaluation set with titles
    (docs/quality-trials.md). Words beyond English have pieces besides. A chunk that repeats another
    text has no terms: searches find the other text.
    """
    if chunk.chunk_type == ECHO:
        return []
    names = [*(heading[1] for heading in json.loads(chunk.headings)), chunk.title or ""]
    parts = [chunk.content, *names, *names]
    if chunk.chunk_index == 0 and "summary" not in chunk.derived:
        parts.append(chunk.summary)
    text = "\n".join(parts)
    return [*words.terms(text), *pieces_of_text(text)]
