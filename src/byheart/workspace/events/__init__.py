"""What changed in a folder?"""

from byheart.workspace.events.watching import Watch

__all__ = ["Watch"]
