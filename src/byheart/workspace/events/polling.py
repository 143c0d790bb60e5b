"""Scan a tree repeatedly, where the system does not report changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from byheart.errors import Unreadable
from byheart.workspace.paths import lies_within
from byheart.workspace.regular_file import SeenFile
from byheart.workspace.rules.ignoring import IgnoreRules
from byheart.workspace.walking import Unseen, walk

_REST = 10
"""A look is followed by a rest of so many times its length: at most a tenth of one processor."""


class Polling:
    """Compare each scan with the one before."""

    def __init__(self, root: Path, rules: IgnoreRules, poll_seconds: float) -> None:
        self._root = root
        self._rules = rules
        self._poll_seconds = poll_seconds
        self._known: dict[str, SeenFile] = {}
        self._begin()
        self._advance(float("inf"))

    def take(self, timeout_seconds: float) -> set[str]:
        """Continue the scan for this long, and return the differences once it is complete."""
        until = time.monotonic() + timeout_seconds
        if self._walk is None:
            if until < self._due:
                time.sleep(timeout_seconds)
                return set()
            time.sleep(max(0.0, self._due - time.monotonic()))
            self._begin()
        return self._advance(until)

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _begin(self) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._unseen: set[str] = set()
        self._spent_seconds = 0.0
        self._walk: Iterator[SeenFile] | None = walk(self._root, self._rules, self._keep)

    def _keep(self, unseen: Unseen) -> None:
        self._unseen.add(unseen.path)

    def _advance(self, until: float) -> set[str]:
        """Walk until a given time; return the changes if the walk is complete."""
        assert self._walk is not None
        began = time.monotonic()
        whole = False
        try:
            for seen in self._walk:
                self._seen[seen.path] = seen
                if time.monotonic() >= until:
                    break
            else:
                whole = True
        except Unreadable:  # the root is gone, and other code handles that
            self._seen = dict(self._known)
            whole = True
        now = time.monotonic()
        self._spent_seconds += now - began
        if not whole:
            return set()
        self._walk = None
        self._due = now + max(self._poll_seconds, _REST * self._spent_seconds)
        return self._compare()

    def _compare(self) -> set[str]:
        # An unreadable path is not treated as deleted.
        for path, seen in self._known.items():
            if lies_within(path, self._unseen):
                self._seen.setdefault(path, seen)
        changed = {
            path
            for path in self._known.keys() | self._seen.keys()
            if self._known.get(path) != self._seen.get(path)
        }
        self._known = self._seen
        return changed
