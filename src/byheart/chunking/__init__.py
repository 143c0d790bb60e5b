"""How does a text become chunks? Exact slices, cut where the text itself has seams."""

from byheart.chunking.chunks import split
from byheart.chunking.formats import guess_format

__all__ = ["guess_format", "split"]
