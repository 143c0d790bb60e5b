"""What do the files of other programs say?

pieces.py      what a reader gives: turns and memories by their place, and what it leaves out
formats.py     the table of formats, and which one a file is of; sketch.py: told by its beginning
finding.py     which files a path means, and of which format each is
sources.py     the files behind a path: one, those of a folder, those of an archive
elements.py    a large JSON document, element by element
transcripts.py what the transcripts of agents have in common
growing.py     a transcript that is still written, read from where it was read last
one file per format: claude_code, codex, chatgpt, claude_export, mem0, memory_graph, basic_memory,
obsidian; notes.py is what the last two have in common
"""

from byheart.transfer.foreign.finding import (
    Found,
    Reading,
    find_in_stream,
    find_sources,
    nothing_of,
)
from byheart.transfer.foreign.formats import FOREIGN, Format
from byheart.transfer.foreign.growing import GROWING, Growing
from byheart.transfer.foreign.pieces import Item, Omission, OwnFile, Piece
from byheart.transfer.foreign.sources import Source

__all__ = [
    "FOREIGN",
    "GROWING",
    "Format",
    "Found",
    "Growing",
    "Item",
    "Omission",
    "OwnFile",
    "Piece",
    "Reading",
    "Source",
    "find_in_stream",
    "find_sources",
    "nothing_of",
]
