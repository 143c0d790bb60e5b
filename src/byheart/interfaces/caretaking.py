"""Looking after the model of a store that is served: loaded ahead, let go of when idle."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what answers first imports no engine
    from byheart.memory_store import MemoryStore

_log = logging.getLogger(__name__)


def prepare(give_store: Callable[[], MemoryStore]) -> None:
    """Open a store and load its model; whoever asks first is told what went wrong, not we."""
    try:
        give_store().prepare()
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread
        _log.info("preparing failed: %s", error)


def unload_when_idle(store: MemoryStore, idle_seconds: float, ended: Event) -> None:
    """Let go of the model whenever nobody needed it for so long, until the end."""
    while not ended.wait(idle_seconds / 4):
        try:
            store.unload(idle_seconds)
        except Exception as error:  # noqa: BLE001 - it is tried again
            _log.info("unloading failed: %s", error)
