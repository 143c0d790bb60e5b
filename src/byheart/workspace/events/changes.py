"""What was heard of a change, before and after the rules were asked."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol

from byheart.workspace.rules.ignoring import IgnoreRules


@dataclass(frozen=True, slots=True)
class Change:
    """Name a path that changed, relative to the root; "" stands for everything."""

    path: str
    is_dir: bool | None
    """None if nobody can say any more."""


EVERYTHING = Change("", is_dir=True)


class Source(Protocol):
    """Hear of changes below a root; after "" it knows no more and is to be opened anew."""

    def take(self, timeout_seconds: float) -> set[str]:
        """Wait for changes and take all there are; an empty set may come early."""

    def close(self) -> None:
        """Release everything."""


def sift(
    changes: Set[Change], rules: IgnoreRules, renew: Callable[[str], None] = lambda _: None
) -> set[str]:
    """Give what is not ignored, and the folders whose rules changed once `renew` had them."""
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
