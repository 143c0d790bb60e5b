"""Keep a workspace up to date while this process runs.

If several processes want to watch a workspace, one does, as its heartbeat in the store shows;
the others stand by. The watcher first registers with the operating system and then scans
everything, so that no change is missed in between. It rescans everything at intervals in case an
event is lost.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from byheart.contracts import Storage
from byheart.embedding import stored_vectors
from byheart.errors import ByheartError, NotFound, StoreError, Unreadable
from byheart.memory.saving import Saver
from byheart.model import STALE_SECONDS, Indexed, IndexProgress
from byheart.workspace import IgnoreRules, transactions
from byheart.workspace.events import Watch
from byheart.workspace.indexing import Indexer, Place, Tally, report

OnIndexed = Callable[[Indexed], None]
OnTurn = Callable[[str | None], None]
BEAT_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 600.0
_AFTER_TROUBLE_SECONDS = 30.0
# Small enough that a file saved meanwhile hardly waits: with 16 a new file was found four times
# later, and no more vectors were computed in the same CPU time.
_EMBEDDED_AT_A_TIME = 4
_numbers = itertools.count(1)
_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """End a scan early: its results are kept, and the next scan continues from there."""


class Lease:
    """Claim a workspace for this process while its heartbeat continues."""

    def __init__(self, storage: Storage, place: Place) -> None:
        self._storage = storage
        self._place = place
        self._name = f"{_here()}/{os.getpid()}/{next(_numbers)}"
        self._ended = Event()
        self._heart = Thread(target=self._beat, name="byheart-heartbeat", daemon=True)
        self.is_held = False
        self.holder: str | None = None
        self.behind = 0
        self.trouble: str | None = None

    def __enter__(self) -> Self:
        self.is_held = self._claim()
        if self.is_held:
            # The heartbeat has its own thread: reading a damaged document may take longer than one
            # beat.
            self._heart.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._heart.is_alive():
            self._heart.join()
        if self.is_held:
            place = self._place
            transactions.release(self._storage, place.space, place.workspace_no, self._name)

    def _claim(self) -> bool:
        """Claim the workspace if it is free or its holder died; return False if that fails."""
        space, number = self._place.space, self._place.workspace_no
        try:
            for each in transactions.roots(self._storage, space):
                if each.workspace_no == number and has_died(each.watched_by):
                    transactions.release(self._storage, space, number, each.watched_by or "")
            if transactions.claim(self._storage, space, number, self._name, STALE_SECONDS):
                return True
            roots = transactions.roots(self._storage, space)
            self.holder = next(
                (each.watched_by for each in roots if each.workspace_no == number), None
            )
            return False
        except StoreError as error:
            _log.warning("%s is not kept fresh yet: %s", self._place.root, error)
            return False

    def _beat(self) -> None:
        while self.is_held and not self._ended.wait(BEAT_SECONDS):
            try:
                self.is_held = transactions.beat(
                    self._storage,
                    self._place.space,
                    self._place.workspace_no,
                    self._name,
                    self.behind,
                    self.trouble,
                )
            except ByheartError as error:
                _log.warning("the heartbeat could not be written: %s", error)


class Watcher:
    """Keep one workspace up to date until told to stop."""

    def __init__(
        self,
        storage: Storage,
        indexer: Indexer,
        saver: Saver,
        place: Place,
        on_indexed: OnIndexed | None,
        on_turn: OnTurn | None,
    ) -> None:
        self._storage = storage
        self._indexer = indexer
        self._saver = saver
        self._place = place
        self._on_indexed = on_indexed
        self._on_turn = on_turn
        self._turn: str | None = ""  # no holder has been reported yet
        self._looked_at = self._embed_after = float("-inf")
        self._emptied: str | None = None

    def run(self, stop: Event) -> None:
        """Watch, or stand by for the current holder, until stopped or the workspace is removed."""
        while not stop.is_set():
            try:
                with Lease(self._storage, self._place) as lease:
                    if lease.is_held or lease.holder is not None:
                        self._tell_turn(lease.holder)
                    if lease.is_held:
                        self._keep_fresh(lease, stop)
            except NotFound:
                _log.warning("%s is no workspace any more", self._place.root)
                return
            if not lease.is_held:
                stop.wait(BEAT_SECONDS)

    def _tell_turn(self, holder: str | None) -> None:
        """Report once which process watches: another one, or this one."""
        if self._on_turn is not None and holder != self._turn:
            self._on_turn(holder)
        self._turn = holder

    def _keep_fresh(self, lease: Lease, stop: Event) -> None:
        rules = self._indexer.rules(self._place)
        self._looked_at = float("-inf")
        with Watch(self._place.root, rules) as watch:
            while not stop.is_set() and lease.is_held:
                now = time.monotonic()
                if watch.trouble is not None and watch.trouble != lease.trouble:
                    _log.warning("%s", watch.trouble)
                lease.trouble = watch.trouble or self._emptied
                if now - self._looked_at > _LOOK_AGAIN_SECONDS:
                    self._looked_at = now
                    self._look(rules, {""}, lease, stop)
                waiting = now >= self._embed_after and self._embed()
                changed = watch.wait(0 if waiting else BEAT_SECONDS, stop)
                if changed:
                    self._look(rules, changed, lease, stop)

    def _look(self, rules: IgnoreRules, changed: set[str], lease: Lease, stop: Event) -> None:
        """Update changed files; the next scan retries those that fail now."""
        started = time.perf_counter()
        below = changed | {
            folder for path in changed if (folder := rules.refresh(path)) is not None
        }

        lease.behind = len(below)

        def note(progress: IndexProgress) -> None:
            lease.behind = progress.files_total - progress.files
            if stop.is_set() or not lease.is_held:
                raise _Stopped

        try:
            tally = self._indexer.refresh(self._place, rules, below, on_progress=note)
            is_news = tally.emptied is None or self._emptied is None
            if tally.emptied is not None:
                self._emptied = f"{self._place.root} {tally.emptied}"
            elif self._emptied is not None and (tally.skipped or tally.changed):
                self._emptied = None
                self._looked_at = float("-inf")  # rescan: files kept meanwhile may be gone
            if is_news:
                self._tell(tally, (time.perf_counter() - started) * 1000)
        except _Stopped:
            return
        except NotFound:
            raise  # the workspace was removed
        except ByheartError as error:
            _log.warning("%s: %s", self._place.root, error)
            if not isinstance(error, Unreadable):  # an unmounted root comes back by itself
                self._looked_at = time.monotonic() - _LOOK_AGAIN_SECONDS + _AFTER_TROUBLE_SECONDS
        finally:
            lease.behind = 0

    def _tell(self, tally: Tally, ms: float) -> None:
        if self._on_indexed is not None and (tally.changed or tally.errors):
            pending = stored_vectors.count_waiting(self._storage)
            self._on_indexed(report(self._place, tally, ms, pending))

    def _embed(self) -> bool:
        """Compute a few missing vectors; return whether there may be more."""
        try:
            made, reason = self._saver.make_up_meanwhile(_EMBEDDED_AT_A_TIME)
        except ByheartError as error:
            made, reason = 0, str(error)
        if reason is not None:
            _log.warning("vectors cannot be made now: %s", reason)
            self._embed_after = time.monotonic() + _AFTER_TROUBLE_SECONDS
        return made > 0


def has_died(watcher: str | None) -> bool:
    """Check whether a watcher process on this machine is gone, before its heartbeat expires."""
    if watcher is None or os.name != "posix":  # on Windows, os.kill would end the process
        return False
    here, pid, _ = watcher.rsplit("/", 2)
    if here != _here():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # the process exists and belongs to another user
        return False
    return False


def _here() -> str:
    """Name the host and PID namespace of a process id: containers may share a host name."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - its target is not a path
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}:{namespace.strip('pid:[]')}"
