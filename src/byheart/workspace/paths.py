"""Paths: how those below one root lie to each other, as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator


def lies_within(path: str, folders: Collection[str]) -> bool:
    """Say whether a path is one of some folders, or lies below one; "" is the root."""
    return "" in folders or any(each in folders for each in climb(path))


def climb(path: str) -> Iterator[str]:
    """Give a path and each folder above it, without the root."""
    while path:
        yield path
        path = path.rpartition("/")[0]
