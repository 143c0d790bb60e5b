"""Watch a whole tree through one native handle (macOS, Windows)."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from watchfiles import Change as Kind
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from byheart.workspace.events.changes import EVERYTHING, Change, sift
from byheart.workspace.events.inbox import Inbox
from byheart.workspace.rules.ignoring import IgnoreRules

_STEP_MS = 20
_DEBOUNCE_MS = 100
_BURST = 1_000
"""watchfiles does not say that the system dropped events, which it does only in bursts."""
_RETRY_SECONDS = 1.0

_LOST: tuple[int, str] = (0, "")


class TreeWatch:
    """Listen to a root and everything below it, ignored or not."""

    def __init__(self, root: Path, rules: IgnoreRules) -> None:
        self._root = root
        self._rules = rules
        self._inbox = Inbox(_LOST)
        self._ending = threading.Event()
        self._notify = self._open()
        # A thread listens, because RustNotify drops its latest events whenever `watch` times out.
        self._listener = threading.Thread(target=self._listen, name="byheart-watch", daemon=True)
        self._listener.start()

    def take(self, timeout_seconds: float) -> set[str]:
        """Wait for changes and return all that are not ignored."""
        heard = self._inbox.take(timeout_seconds)
        if _LOST in heard or len(heard) > _BURST:
            return {EVERYTHING.path}
        changes = {self._tell(Kind(kind), place) for kind, place in heard}
        for change in changes:
            if change.is_dir and change.path:
                self._rules.forget(change.path)
        return sift(changes, self._rules)

    def close(self) -> None:
        """Stop listening."""
        self._ending.set()
        self._listener.join()

    def _open(self) -> RustNotify:
        return RustNotify([str(self._root)], False, False, 0, True, True)

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                heard = self._notify.watch(_DEBOUNCE_MS, _STEP_MS, 0, self._ending)
            except WatchfilesRustInternalError:
                # RustNotify repeats its first error forever, so a new instance must replace it.
                self._reopen()
            else:
                if isinstance(heard, set):
                    self._inbox.put(heard)
        self._notify.close()

    def _reopen(self) -> None:
        self._notify.close()
        while not self._ending.is_set():
            try:
                self._notify = self._open()
            except (OSError, WatchfilesRustInternalError):
                self._ending.wait(_RETRY_SECONDS)
            else:
                self._inbox.put({_LOST})
                return

    def _tell(self, kind: Kind, place: str) -> Change:
        try:
            path = Path(place).relative_to(self._root).as_posix()
        except ValueError:
            return EVERYTHING
        if path == ".":
            return EVERYTHING
        if kind is Kind.deleted:
            return Change(path, is_dir=None)
        try:
            return Change(path, is_dir=stat.S_ISDIR(os.lstat(place).st_mode))
        except OSError:
            return Change(path, is_dir=None)
