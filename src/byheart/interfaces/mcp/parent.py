"""End this process when its parent process ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

_LOOK_EVERY_SECONDS = 0.25


def leave_with_parent(leave: Callable[[], None]) -> None:
    """Call `leave` when the parent process has ended.

    The end of stdin is not enough: another child of the parent may keep the pipe open forever. A
    process whose parent is init from the start was meant to run on its own.
    """
    parent = os.getppid()
    if os.name != "posix" or parent == 1:
        return

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_SECONDS)
        leave()

    threading.Thread(target=look, name="byheart-parent", daemon=True).start()
