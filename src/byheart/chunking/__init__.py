"""Split texts into chunks: exact slices, cut at the text's natural boundaries."""

from byheart.chunking.chunks import split
from byheart.chunking.echoes import set_apart
from byheart.chunking.formats import guess_format
from byheart.chunking.short_texts import is_short, keep_aside

__all__ = ["guess_format", "is_short", "keep_aside", "set_apart", "split"]
