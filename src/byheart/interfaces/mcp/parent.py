"""Not outliving the process that started this one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

_LOOK_EVERY_SECONDS = 0.25


def leave_with_parent(leave: Callable[[], None]) -> None:
    """Call `leave` when the parent process is gone: another heir may keep its pipe open for ever.

    A process whose parent was gone from the start was meant to be by itself.
    """
    parent = os.getppid()
    if os.name != "posix" or parent == 1:
        return

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY_SECONDS)
        leave()

    threading.Thread(target=look, name="byheart-parent", daemon=True).start()
