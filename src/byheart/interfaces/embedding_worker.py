"""Make the vectors that chunks wait for, as one of any number of workers on one store."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from byheart.errors import (
    ByheartError,
    EmbedderUnavailable,
    EmbeddingError,
    Hint,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
)

if TYPE_CHECKING:  # the first answer must not wait for the import of the engine
    from byheart.model import EmbeddedShare
    from byheart.store import MemoryStore

# Before the first share is measured, its claim lasts long enough for a slow model.
_FIRST_LEASE_SECONDS = 300.0
# A claim lasts many times longer than a share takes: a machine may be busy with other work. A share
# of 64 chunks takes 1 s to 10 s with the default model on two cores.
_LEASE_FACTOR, _LEAST_LEASE_SECONDS, _LONGEST_LEASE_SECONDS = 20.0, 30.0, 900.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 2.0
_LONGEST_TROUBLE_SECONDS = 30.0
_log = logging.getLogger(__name__)


class EmbeddingWorker:
    """Claim waiting chunks share by share, and embed them."""

    def __init__(
        self,
        store: MemoryStore,
        share_chunks: int,
        lease_seconds: float | None = None,
        on_share: Callable[[EmbeddedShare], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._share_chunks = share_chunks
        self._given_lease = lease_seconds
        self._lease_seconds = lease_seconds or _FIRST_LEASE_SECONDS
        self._on_share = on_share
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._trouble: str | None = None

    def run(self, ended: Event, *, once: bool = False) -> None:
        """Work until the end; with `once`, until no chunk is left to claim, and raise any trouble.

        Trouble with the server or with the provider is logged once, and tried again.
        """
        while not ended.is_set():
            try:
                share = self._work()
            except (StoreDamaged, StoreReadOnly, StoreTooNew):
                raise
            except (StoreError, EmbeddingError) as error:
                if once:
                    raise
                self._tell_trouble(error)
                self._rest(ended, _LONGEST_TROUBLE_SECONDS)
                continue
            self._tell_end_of_trouble()
            self._on_share(share)
            if share.made or share.refused:
                self._pause_seconds = _FIRST_PAUSE_SECONDS
            elif once and not share.claimed:
                return
            else:
                self._rest(ended, _LONGEST_PAUSE_SECONDS)

    def _work(self) -> EmbeddedShare:
        started = time.monotonic()
        share = self._store.admin.embed_share(self._share_chunks, self._lease_seconds)
        if share.degraded is not None:
            raise EmbedderUnavailable(Hint("vectors cannot be made now: ", share.degraded))
        if share.made and self._given_lease is None:
            seconds = _LEASE_FACTOR * (time.monotonic() - started)
            self._lease_seconds = min(max(seconds, _LEAST_LEASE_SECONDS), _LONGEST_LEASE_SECONDS)
        return share

    def _rest(self, ended: Event, longest_seconds: float) -> None:
        # Not all at once: many workers may wait for one server.
        ended.wait(self._pause_seconds * random.uniform(0.75, 1.25))
        self._pause_seconds = min(2 * self._pause_seconds, longest_seconds)

    def _tell_trouble(self, error: ByheartError) -> None:
        if self._trouble != (trouble := str(error)):
            _log.warning("no vectors are made; trying again: %s", trouble)
        self._trouble = trouble

    def _tell_end_of_trouble(self) -> None:
        if self._trouble is not None:
            _log.warning("vectors are made again")
            self._trouble = None
            self._pause_seconds = _FIRST_PAUSE_SECONDS
