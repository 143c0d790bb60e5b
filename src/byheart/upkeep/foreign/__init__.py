"""What do the files of other programs say?

pieces.py      what a reader gives: turns and memories by their place, and what it leaves out
formats.py     the table of formats, and which one a file is of
sources.py     the files behind a path: one, those of a folder, those of an archive
elements.py    a large JSON document, element by element
transcripts.py what the transcripts of agents have in common
one file per format: claude_code, codex, chatgpt, claude_export, mem0, memory_graph, basic_memory,
obsidian; notes.py is what the last two have in common
"""

from byheart.upkeep.foreign.formats import (
    FOREIGN,
    Format,
    Found,
    Reading,
    find_in_stream,
    find_sources,
)
from byheart.upkeep.foreign.pieces import Exported, Item, LeftOut, Piece, Unreadable
from byheart.upkeep.foreign.project import project_of
from byheart.upkeep.foreign.sources import Source

__all__ = [
    "FOREIGN",
    "Exported",
    "Format",
    "Found",
    "Item",
    "LeftOut",
    "Piece",
    "Reading",
    "Source",
    "Unreadable",
    "find_in_stream",
    "find_sources",
    "project_of",
]
