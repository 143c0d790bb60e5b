"""How does a text become chunks? Exact slices, cut where the text itself has seams."""

from byheart.chunking.asides import is_short, keep_aside
from byheart.chunking.chunks import split
from byheart.chunking.echoes import set_apart
from byheart.chunking.formats import guess_format

__all__ = ["guess_format", "is_short", "keep_aside", "set_apart", "split"]
