"""Watch a tree folder by folder; ignored folders are never registered (Linux)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from byheart.workspace.events import inotify
from byheart.workspace.events.changes import EVERYTHING, Change, sift
from byheart.workspace.events.inotify import Event, Inotify
from byheart.workspace.paths import lies_within
from byheart.workspace.rules.ignoring import IgnoreRules

_APPEARED = inotify.CREATED | inotify.MOVED_TO
_VANISHED = inotify.DELETED | inotify.MOVED_FROM
_ROOT_TOUCHED = (
    inotify.SELF_DELETED | inotify.SELF_MOVED | inotify.UNMOUNTED | inotify.RELEASED
)  # fmt: skip
_FEW = 16
_NO_ROOM = (errno.ENOSPC, errno.ENOMEM)


class FolderWatches:
    """Keep one registration for each folder that is not ignored."""

    def __init__(self, root: Path, rules: IgnoreRules, handle: Inotify | None = None) -> None:
        self._root = root
        self._rules = rules
        self._device = root.stat().st_dev
        self._handle = Inotify() if handle is None else handle
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        try:
            if not self._register(""):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(root))
        except BaseException:
            self.close()
            raise

    @property
    def folders(self) -> frozenset[str]:
        """Name the registered folders."""
        return frozenset(self._numbers)

    def take(self, timeout_seconds: float) -> set[str]:
        """Wait for changes, register new folders, and return all paths that are not ignored."""
        events = self._handle.take(timeout_seconds)
        if not events:
            return set()
        if inotify.OVERFLOW in events:
            return {EVERYTHING.path}
        return sift(self._follow(events), self._rules, self._renew)

    def close(self) -> None:
        """Release all registrations."""
        self._handle.close()

    def _renew(self, folder: str) -> None:
        """Register folders that are no longer ignored, and release those that now are."""
        former = {path for path in self._numbers if lies_within(path, {folder})}
        for path in former - self._register(folder):
            self._release(path)

    def _follow(self, events: Iterable[Event]) -> set[Change]:
        # The order within a batch does not matter: vanished folders are released first, then new
        # ones are registered as they are on disk now. Every later change causes its own event.
        changes: set[Change] = set()
        vanished: set[str] = set()
        appeared: set[str] = set()
        for event in events:
            folder = self._paths.get(event.number)
            if folder is None:
                continue
            if not event.name:
                if not folder and event.mask & _ROOT_TOUCHED:
                    changes.add(EVERYTHING)
                elif event.mask & inotify.RELEASED:
                    # A folder renamed over this one replaces it without a "created" event.
                    vanished.add(folder)
                    appeared.add(folder)
                continue
            path = _join(folder, event.name)
            if path is None:
                continue
            is_dir = bool(event.mask & inotify.IS_FOLDER)
            if is_dir and event.mask & _VANISHED:
                vanished.add(path)
            if is_dir and event.mask & _APPEARED:
                appeared.add(path)
            if is_dir and event.mask & inotify.ATTRIBUTES:
                if path in self._numbers:
                    continue
                appeared.add(path)  # the folder may have become readable
            changes.add(Change(path, is_dir))
        self._release_all(vanished)
        self._forget_rules(appeared)
        registered: set[str] = set()
        for path in sorted(appeared):
            if path not in registered:
                registered |= self._register(path)
        # Report folders after registering them, so that a scan that starts now misses nothing.
        return changes | {Change(path, is_dir=True) for path in appeared & registered}

    def _forget_rules(self, folders: set[str]) -> None:
        # Each call goes through all known rules, so many folders are forgotten at once.
        for folder in folders if len(folders) <= _FEW else ("",):
            self._rules.forget(folder)

    def _register(self, folder: str) -> set[str]:
        """Register a folder and its subfolders, and return their paths."""
        registered = set()
        waiting = [folder]
        while waiting:
            path = waiting.pop()
            # Register before listing: a folder created in between is then in both, not in neither.
            if self._rules.decide(path, is_dir=True).ignored or not self._add(path):
                continue
            registered.add(path)
            waiting.extend(self._list_folders(path))
        return registered

    def _add(self, path: str) -> bool:
        place = self._place(path)
        try:
            found = place.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_dev != self._device:
                return False
            number = self._handle.add(os.fsencode(place))
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise
            return False  # gone again, or unreadable and so without visible files
        # The kernel numbers folders, not paths: a moved folder returns under its old number.
        former_path = self._paths.get(number)
        if former_path is not None and former_path != path:
            del self._numbers[former_path]
        former_number = self._numbers.get(path)
        if former_number is not None and former_number != number:
            self._release(path)
        self._paths[number] = path
        self._numbers[path] = number
        return True

    def _list_folders(self, path: str) -> Iterator[str]:
        try:
            with os.scandir(self._place(path)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        child = _join(path, os.fsencode(entry.name))
                        if child is not None:
                            yield child
        except OSError:
            return

    def _release_all(self, vanished: set[str]) -> None:
        vanished = vanished & self._numbers.keys()
        if vanished:
            gone = [path for path in self._numbers if lies_within(path, vanished)]
            for path in gone:
                self._release(path)

    def _release(self, path: str) -> None:
        number = self._numbers.pop(path, None)
        if number is not None:
            del self._paths[number]
            self._handle.remove(number)

    def _place(self, path: str) -> Path:
        return self._root / path


def _join(folder: str, name: bytes) -> str | None:
    """Return the path of a name, or None if it is not UTF-8: such files are not indexed."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    return f"{folder}/{text}" if folder else text
