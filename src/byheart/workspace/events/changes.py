"""Represent changes of paths, and filter them by the ignore rules."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Protocol

from byheart.startup.dataclass_types import dataclass
from byheart.workspace.rules.ignoring import IgnoreRules


@dataclass(frozen=True, slots=True)
class Change:
    """Name a path that changed, relative to the root; "" means everything."""

    path: str
    is_dir: bool | None
    """None if it is unknown, because the path no longer exists."""


EVERYTHING = Change("", is_dir=True)


class Source(Protocol):
    """Report changes below a root; after it reports "", reopen it, since it lost track."""

    def take(self, timeout_seconds: float) -> set[str]:
        """Wait for changes and return all of them; may return an empty set early."""

    def close(self) -> None:
        """Release all resources."""


def sift(
    changes: Set[Change], rules: IgnoreRules, renew: Callable[[str], None] = lambda _: None
) -> set[str]:
    """Return the changed paths that are not ignored, and folders whose rules changed.

    `renew` is called first for each folder whose rules changed.
    """
    refreshed = (rules.refresh(change.path) for change in changes)
    folders = {folder for folder in refreshed if folder is not None}
    if "" in folders:
        return {""}
    for folder in folders:
        renew(folder)
    return folders | {change.path for change in changes if not _is_ignored(change, rules)}


def _is_ignored(change: Change, rules: IgnoreRules) -> bool:
    kinds = (True, False) if change.is_dir is None else (change.is_dir,)
    return all(rules.decide(change.path, is_dir=kind).ignored for kind in kinds)
