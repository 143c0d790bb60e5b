"""Watching: a folder heard, or looked through where nobody tells, as long as one waits."""

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
    """Have the operating system tell of changes, in the way that costs it least."""
    if sys.platform == "linux":
        return FolderWatches(root, rules)
    # Imported here: it brings asyncio along, a tenth of a second, which Linux can do without.
    from byheart.workspace.events.tree_watch import TreeWatch

    return TreeWatch(root, rules)


class Watch:
    """Tell which paths of a folder changed since one looked last.

    Enter it before looking at the folder for the first time, so that nothing falls in between.
    One thread at a time may use it, the same that uses its rules.
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
        """Say why the folder is not watched, and what to do; None while it is."""
        return self._trouble

    def wait(self, timeout_seconds: float, stop: threading.Event | None = None) -> set[str]:
        """Wait for changes and give their paths, folders standing for all below, "" for all."""
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
        return set()  # what was heard so far waits for the next call

    def _hand_on(self) -> set[str]:
        changed, self._pending = self._pending, set()
        return _without_nested(changed)

    def _take(self, timeout_seconds: float) -> bool:
        """Wait for something to hand on; say whether there was something."""
        if self._source is None:
            time.sleep(timeout_seconds)
            return False
        try:
            fresh = self._source.take(timeout_seconds)
        except OSError:  # no room for the folders that appeared
            fresh = {EVERYTHING.path}
        self._is_stale = self._is_stale or EVERYTHING.path in fresh
        self._pending |= fresh
        return bool(fresh)

    def _check_root(self, now: float) -> None:
        """Open everything anew if the root is another folder, or its source lost its way."""
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
            except (OSError, RuntimeError) as error:  # as the one or the other source says it
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
    """Tell one folder from another at the same path; None if there is none."""
    try:
        found = root.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _without_nested(paths: set[str]) -> set[str]:
    """Leave out what lies below another of the paths."""
    if "" in paths:
        return {""}
    return {path for path in paths if not lies_within(path.rpartition("/")[0], paths)}
