"""Read the files of other programs.

import_items.py         the results of a reader: turns and memories with their place, and omissions
formats.py              the table of formats, and format detection
partial_json.py         format detection by the beginning of a JSON document
finding.py              the files that a path means, and the format of each
sources.py              the files behind a path: one file, or those of a folder or archive
json_elements.py        a large JSON document, element by element
transcripts.py          shared code for agents' transcripts
growing_transcripts.py  a transcript that is still being written, read from the last position
databases.py            the SQLite databases of several programs
one file per other format: claude_code, codex, chatgpt, claude_export, mem0, memory_graph, letta,
basic_memory, obsidian; notes.py has the shared code of the last two
"""

from byheart.transfer.foreign.finding import (
    Found,
    Reading,
    find_in_stream,
    find_sources,
    nothing_of,
)
from byheart.transfer.foreign.formats import FOREIGN, Format
from byheart.transfer.foreign.growing_transcripts import GROWING, Growing
from byheart.transfer.foreign.import_items import Item, Omission, OwnFile, Piece
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
