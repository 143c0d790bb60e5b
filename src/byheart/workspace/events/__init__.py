"""Report changes in a folder."""

from byheart.workspace.events.watching import Watch

__all__ = ["Watch"]
