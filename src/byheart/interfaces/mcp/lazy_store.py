"""Open the store in the background, so that the first answers do not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from byheart.interfaces.background_work import (
    keep_workspaces,
    make_missing_vectors,
    prepare,
    unload_when_idle,
)

if TYPE_CHECKING:
    from byheart.interfaces.hooks.service import HookService
    from byheart.settings import Settings
    from byheart.store import MemoryStore

# How long opening waits, so that the current answer is sent first: imports keep the interpreter
# busy.
_HEAD_START_SECONDS = 0.05


class Opened(NamedTuple):
    """Hold an open store, and the settings it was opened with."""

    store: MemoryStore
    settings: Settings


class LazyStore:
    """Open a store on first use or in advance; unload its model when it is idle."""

    def __init__(self, open_store: Callable[[], Opened]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._preparing = threading.Event()
        self._closed = threading.Event()
        self._hooks: HookService | None = None

    @property
    def opened(self) -> Opened | None:
        """Return the store if it is open already."""
        return self._opened

    def get(self) -> Opened:
        """Return the store, and open it if needed; after a failure, the next call tries again."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open_store()
                store, settings = self._opened
                idle_seconds = settings.unload_after_seconds
                _in_background(unload_when_idle, store, idle_seconds, self._closed)
                if settings.embed_on_save:
                    _in_background(make_missing_vectors, store, self._closed)
                keep_workspaces(store, settings, self._closed)
                self._hooks = _answer_hooks(store, settings)
            return self._opened

    def prepare_in_background(self) -> None:
        """Open the store and load the model before the client calls the first tool."""
        if not self._preparing.is_set():
            self._preparing.set()
            _in_background(self._prepare)

    def _prepare(self) -> None:
        time.sleep(_HEAD_START_SECONDS)
        prepare(lambda: self.get().store)

    def close(self) -> None:
        """Close the store if it was opened."""
        self._closed.set()
        with self._lock:
            if self._hooks is not None:
                self._hooks.close()
            if self._opened is not None:
                self._opened.store.close()
                self._opened = None


class OpenStore(LazyStore):
    """Wrap a store that is already open and that the HTTP server maintains."""

    def __init__(self, store: MemoryStore, settings: Settings) -> None:
        super().__init__(lambda: Opened(store, settings))
        self._opened = Opened(store, settings)

    def prepare_in_background(self) -> None:
        """Do nothing: the HTTP server prepares the store."""


def _answer_hooks(store: MemoryStore, settings: Settings) -> HookService:
    # Imported here, since the first answers do not wait for the engine.
    from byheart.interfaces.hooks.service import HookService

    service = HookService(store, settings)
    service.start()
    return service


def _in_background(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, name=work.__name__, daemon=True).start()
