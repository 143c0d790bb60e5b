"""Watching: a workspace stays fresh while this runs.

Of all processes that would watch a workspace one does, as its heartbeat in the store says; the
others stand by. It registers with the operating system first and looks at everything then, so
that nothing falls in between, and looks at everything again now and then, should an event be lost.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Callable
from threading import Event

from byheart.contracts import Storage
from byheart.errors import ByheartError, StoreError, Unreadable
from byheart.indexing import Indexer, Place, Tally, report
from byheart.model import STALE_SECONDS, Indexed, IndexProgress
from byheart.saving import Saver
from byheart.workspace import IgnoreRules
from byheart.workspace.watching import Watch

OnIndexed = Callable[[Indexed], None]
BEAT_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 600.0
_AFTER_TROUBLE_SECONDS = 30.0
# Few enough that a file saved meanwhile waits a fraction of a second.
_EMBEDDED_AT_A_TIME = 16
_numbers = itertools.count(1)
_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """End a look early: what it has taken in is kept, and the next one goes on from there."""


class Watcher:
    """Keep one workspace fresh until told to stop."""

    def __init__(
        self,
        storage: Storage,
        indexer: Indexer,
        saver: Saver,
        place: Place,
        on_indexed: OnIndexed | None,
    ) -> None:
        self._workspaces = storage.workspaces
        self._storage = storage
        self._indexer = indexer
        self._saver = saver
        self._place = place
        self._on_indexed = on_indexed
        self._name = f"{socket.gethostname()}/{os.getpid()}/{next(_numbers)}"
        self._beaten_at = self._looked_at = self._embed_after = float("-inf")
        self._mine = False
        self._told: str | None = None

    def run(self, stop: Event) -> None:
        """Watch, or stand by for whoever does, until told to stop."""
        try:
            while not stop.is_set():
                self._mine = self._claim()
                if self._mine:
                    self._keep_fresh(stop)
                else:
                    stop.wait(BEAT_SECONDS)
        finally:
            if self._mine:
                self._workspaces.release(self._place.workspace_no, self._name)

    def _claim(self) -> bool:
        """Take the workspace on if nobody has, or who had has died; if that fails, not yet."""
        number = self._place.workspace_no
        try:
            for each in self._workspaces.roots(self._place.space):
                if each.workspace_no == number and has_died(each.watched_by):
                    self._workspaces.release(number, each.watched_by or "")
            return self._workspaces.claim(number, self._name, STALE_SECONDS)
        except StoreError as error:
            _log.warning("%s is not kept fresh yet: %s", self._place.root, error)
            return False

    def _keep_fresh(self, stop: Event) -> None:
        rules = self._indexer.rules(self._place)
        self._looked_at = float("-inf")
        with Watch(self._place.root, rules) as watch:
            while not stop.is_set() and self._mine:
                now = time.monotonic()
                if now - self._looked_at > _LOOK_AGAIN_SECONDS:
                    self._looked_at = now
                    self._look(rules, {""}, watch.trouble, stop)
                self._mention(watch.trouble)
                waiting = now >= self._embed_after and self._embed()
                self._beat(0, watch.trouble)
                changed = watch.wait(0 if waiting else BEAT_SECONDS, stop)
                if changed:
                    self._look(rules, changed, watch.trouble, stop)

    def _look(
        self, rules: IgnoreRules, changed: set[str], trouble: str | None, stop: Event
    ) -> None:
        """Bring changed files up to date; what cannot be done now is done with the next look."""
        started = time.perf_counter()
        below = changed | {
            folder for path in changed if (folder := rules.refresh(path)) is not None
        }

        def beat_on(progress: IndexProgress) -> None:
            self._beat(progress.files_total - progress.files, trouble)
            if stop.is_set():
                raise _Stopped

        try:
            tally = self._indexer.refresh(self._place, rules, below, on_progress=beat_on)
        except _Stopped:
            return
        except ByheartError as error:
            _log.warning("%s: %s", self._place.root, error)
            if not isinstance(error, Unreadable):  # an unmounted root comes back by itself
                self._looked_at = time.monotonic() - _LOOK_AGAIN_SECONDS + _AFTER_TROUBLE_SECONDS
            return
        self._tell(tally, (time.perf_counter() - started) * 1000)

    def _tell(self, tally: Tally, ms: float) -> None:
        if self._on_indexed is not None and (tally.changed or tally.errors):
            pending = self._storage.count_pending()
            self._on_indexed(report(self._place, tally, ms, pending))

    def _mention(self, trouble: str | None) -> None:
        """Say once why the folder is not watched; `status` says so all the time."""
        if trouble is not None and trouble != self._told:
            _log.warning("%s", trouble)
        self._told = trouble

    def _embed(self) -> bool:
        """Make a few of the vectors that are missing; say whether there may be more."""
        try:
            made, reason = self._saver.make_up(_EMBEDDED_AT_A_TIME)
        except ByheartError as error:
            made, reason = 0, str(error)
        if reason is not None:
            _log.warning("vectors cannot be made now: %s", reason)
            self._embed_after = time.monotonic() + _AFTER_TROUBLE_SECONDS
        return made > 0

    def _beat(self, behind: int, trouble: str | None) -> None:
        now = time.monotonic()
        if now - self._beaten_at < BEAT_SECONDS:
            return
        self._beaten_at = now
        try:
            self._mine = self._workspaces.beat(
                self._place.workspace_no, self._name, behind, trouble
            )
        except ByheartError as error:
            _log.warning("the heartbeat could not be written: %s", error)


def has_died(watcher: str | None) -> bool:
    """Say whether a process of this machine that watched is gone, before its heartbeat says so."""
    if watcher is None or os.name != "posix":  # elsewhere, asking would end the process
        return False
    host, pid, _ = watcher.split("/")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it is there, and somebody else's
        return False
    return False
