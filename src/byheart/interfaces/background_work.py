"""Look after a store that is served.

A thread loads the model ahead and releases it when nobody uses it, makes vectors that could not be
made before, and keeps the folders that the settings name up to date.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING

from byheart.errors import StoreError, StoreReadOnly

if TYPE_CHECKING:  # the first answer must not wait for the import of the engine
    from byheart.settings import Settings
    from byheart.store import MemoryStore

_TRY_AGAIN_SECONDS = 30.0
# The embedder does not ask an unavailable provider again any sooner.
_LOOK_FOR_MISSING_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
# A small number, so that concurrent saves and searches hardly wait.
_EMBEDDED_AT_A_TIME = 4
_log = logging.getLogger(__name__)


def prepare(give_store: Callable[[], MemoryStore]) -> None:
    """Open a store and load its model; the first call that needs them reports a failure."""
    try:
        give_store().admin.prepare()
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread
        _log.info("preparing failed: %s", error)


def unload_when_idle(store: MemoryStore, idle_seconds: float, ended: Event) -> None:
    """Unload the model whenever it was idle for so long, until the end."""
    while not ended.wait(idle_seconds / 4):
        try:
            store.admin.unload(idle_seconds)
        except Exception as error:  # noqa: BLE001 - it is tried again
            _log.info("unloading failed: %s", error)


class _Ended(Exception):
    """Stop now: finished work is kept, and the rest is done next time."""


def make_missing_vectors(
    store: MemoryStore, ended: Event, every_seconds: float = _LOOK_FOR_MISSING_SECONDS
) -> None:
    """Make the vectors that chunks wait for, until the end, whenever nobody else makes them."""

    def go_on(_: int) -> None:
        if ended.is_set():
            raise _Ended

    before, pause_seconds = 0, every_seconds
    # Not all at once: many servers may look after one store.
    while not ended.wait(pause_seconds * random.uniform(0.75, 1.25)):
        try:
            waiting = store.admin.count_pending()
            # If they became fewer, or more, somebody is at work who makes them too.
            if waiting and waiting == before:
                store.admin.embed_pending(go_on, _EMBEDDED_AT_A_TIME)
                waiting = store.admin.count_pending()
            before, pause_seconds = waiting, every_seconds
        except (_Ended, StoreReadOnly):
            return
        except StoreError as error:
            # Vectors that a full disk does not take are paid for with every attempt.
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
            _log.info("missing vectors were not kept: %s", error)
        except Exception as error:  # noqa: BLE001 - it is tried again
            _log.info("missing vectors were not made: %s", error)


def keep_workspaces(store: MemoryStore, settings: Settings, ended: Event) -> None:
    """Index the folders that the settings name, each by itself, and watch them if they say so."""
    for path in settings.workspaces:
        Thread(
            target=_keep_workspace,
            args=(store, path, settings.auto_reindex, ended),
            name="byheart-workspace",
            daemon=True,
        ).start()


def _keep_workspace(store: MemoryStore, path: str, watching: bool, ended: Event) -> None:
    """Try again what fails: a disk may be mounted later."""
    told = ""
    while not ended.is_set():
        try:
            if watching:
                store.workspaces.watch(path, ended)
            else:
                store.index(path)
            return
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread
            if told != (told := str(error)):
                _log.warning("the workspace %s is not kept fresh: %s", path, error)
        ended.wait(_TRY_AGAIN_SECONDS)
