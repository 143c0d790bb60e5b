"""Watch a folder through system events, or by polling where there are none."""

from __future__ import annotations

import errno
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from byheart.workspace.events.changes import EVERYTHING, Source
from byheart.workspace.events.folder_watches import FolderWatches
from byheart.workspace.events.mounts import find_silent_filesystem
from byheart.workspace.events.polling import Polling
from byheart.workspace.paths import lies_within
from byheart.workspace.rules.ignoring import IgnoreRules

POLL_SECONDS = 2.0

_QUIET_SECONDS = 0.03
"""So long without another change, and a burst counts as over."""
_BURST_SECONDS = 0.2
"""So long at most a burst is gathered."""
_STEP_SECONDS = 0.1
"""So often `stop` is looked at."""
_ROOT_SECONDS = 0.5
"""So often it is asked whether the root is still the same folder: the system does not tell when a
folder above it is moved, or something is mounted over it."""

_Identity = tuple[int, int]


def listen(root: Path, rules: IgnoreRules) -> Source:
    """Let the operating system report changes, in the cheapest way for the platform."""
    if sys.platform == "linux":
        return FolderWatches(root, rules)
    # Imported here because it loads asyncio, which takes 0.1 seconds and is not needed on Linux.
    from byheart.workspace.events.tree_watch import TreeWatch

    return TreeWatch(root, rules)


class Watch:
    """Report which paths of a folder changed since the last call.

    Enter the context before the first scan of the folder, so that no change is missed in
    between. Only one thread at a time may use it, the same thread that uses its rules.
    """

    def __init__(
        self,
        root: Path,
        rules: IgnoreRules,
        *,
        polling: bool = False,
        poll_seconds: float = POLL_SECONDS,
        listen: Callable[[Path, IgnoreRules], Source] = listen,
    ) -> None:
        self._root = root.resolve()
        self._rules = rules
        self._polling = polling
        self._poll_seconds = poll_seconds
        self._listen = listen
        self._source: Source | None = None
        self._identity: _Identity | None = None
        self._is_stale = False
        self._root_due = 0.0
        self._trouble: str | None = None
        self._pending: set[str] = set()

    def __enter__(self) -> Self:
        self._identity = _identify(self._root)
        self._open()
        self._root_due = time.monotonic() + _ROOT_SECONDS
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def trouble(self) -> str | None:
        """Explain why the folder is not watched, and what to do; None while it is watched."""
        return self._trouble

    def wait(self, timeout_seconds: float, stop: threading.Event | None = None) -> set[str]:
        """Wait for changes and return their paths; a folder includes all below, "" is the root."""
        until = time.monotonic() + timeout_seconds
        begun = latest = 0.0
        while stop is None or not stop.is_set():
            now = time.monotonic()
            self._check_root(now)
            if self._pending and not begun:
                begun = latest = now
            if begun and (now - latest >= _QUIET_SECONDS or now - begun >= _BURST_SECONDS):
                return self._hand_on()
            step = _QUIET_SECONDS if begun else _STEP_SECONDS
            if self._take(max(0.0, min(step, until - now))):
                latest = time.monotonic()
            elif now >= until:
                return self._hand_on()
        return set()  # the next call returns the changes collected so far

    def _hand_on(self) -> set[str]:
        changed, self._pending = self._pending, set()
        return _without_nested(changed)

    def _take(self, timeout_seconds: float) -> bool:
        """Wait for changes to report; return whether there were any."""
        if self._source is None:
            time.sleep(timeout_seconds)
            return False
        try:
            fresh = self._source.take(timeout_seconds)
        except OSError:  # the system limit does not allow watching the new folders
            fresh = {EVERYTHING.path}
        self._is_stale = self._is_stale or EVERYTHING.path in fresh
        self._pending |= fresh
        return bool(fresh)

    def _check_root(self, now: float) -> None:
        """Reopen the source if the root is now another folder or the source lost track."""
        if now < self._root_due and not self._is_stale:
            return
        self._root_due = now + _ROOT_SECONDS
        identity = _identify(self._root)
        if identity == self._identity and not self._is_stale:
            return
        self._identity = identity
        self._close()
        self._rules.forget()
        self._open()
        self._pending = {EVERYTHING.path}

    def _open(self) -> None:
        self._is_stale = False
        if self._identity is None:
            self._trouble = f"{self._root} is not there: it is watched again once it is back."
            return
        filesystem = find_silent_filesystem(self._root)
        if self._polling:
            self._poll(None)
        elif filesystem is not None:
            self._poll(f"a {filesystem} file system does not tell of changes made elsewhere")
        else:
            try:
                self._source = self._listen(self._root, self._rules)
                self._trouble = None
            except (OSError, RuntimeError) as error:  # each source raises one of these
                self._poll(_explain(error))

    def _poll(self, reason: str | None) -> None:
        self._source = Polling(self._root, self._rules, self._poll_seconds)
        self._trouble = reason and (
            f"{self._root} cannot be watched and is looked through every"
            f" {self._poll_seconds:g} s instead: {reason}"
        )

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None


def _explain(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOSPC:
        return (
            "the system's limit of watched folders is reached; raise it with"
            " `sudo sysctl fs.inotify.max_user_watches=524288` and start again"
        )
    if number == errno.EMFILE:
        return (
            "the system's limit of watchers is reached; raise it with"
            " `sudo sysctl fs.inotify.max_user_instances=1024` and start again"
        )
    return f"the system says: {error}"


def _identify(root: Path) -> _Identity | None:
    """Return the identity of the folder at a path; None if there is none."""
    try:
        found = root.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _without_nested(paths: set[str]) -> set[str]:
    """Leave out paths that are below another of the paths."""
    if "" in paths:
        return {""}
    return {path for path in paths if not lies_within(path.rpartition("/")[0], paths)}
