"""Compare paths below one root as text, and check that they are valid text."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from byheart.errors import InvalidInput
from byheart.model.checks import show


def lies_within(path: str, folders: Collection[str]) -> bool:
    """Check whether a path is one of the folders or below one; "" is the root."""
    return "" in folders or any(each in folders for each in climb(path))


def climb(path: str) -> Iterator[str]:
    """Yield a path and each folder above it, without the root."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def is_writable(name: str) -> bool:
    """Check whether a name can be stored as UTF-8 text."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def escape(path: str) -> str:
    """Escape a path whose bytes are not UTF-8."""
    return path if is_writable(path) else os.fsencode(path).decode("utf-8", "backslashreplace")


def read_path(path: str | Path) -> Path:
    """Convert a user's path to a `Path`, and expand `~`."""
    if not isinstance(path, str | Path) or not str(path).strip():
        raise InvalidInput(f"{show(path)} names no file or folder", "the one you are in is `.`")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInput(
            f"{path}: there is no such user", "write ./~… if the name begins with a tilde"
        ) from error
