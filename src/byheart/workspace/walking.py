"""Walk a root: yield the files to index, and report paths that cannot be read.

Links are never followed. A link's target inside the root is walked under its own name; a target
outside the root is ignored. File systems mounted below the root are ignored too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from byheart.errors import Unreadable
from byheart.startup.dataclass_types import dataclass
from byheart.workspace.paths import escape, is_writable
from byheart.workspace.regular_file import SeenFile, explain_error, seen_as
from byheart.workspace.rules.ignoring import MAX_FILE_BYTES, IgnoreRules


@dataclass(frozen=True, slots=True)
class Unseen:
    """Name a path that could not be read; the known state of it, and below it, is kept."""

    path: str
    reason: str


OnError = Callable[[Unseen], None]


def walk(
    root: Path, rules: IgnoreRules, on_error: OnError, *, below: str = ""
) -> Iterator[SeenFile]:
    """Yield the files to index, sorted by path parts, after reading the rules anew.

    A file that is not yielded does not exist, unless an error at the end says the root was
    swapped.
    """
    rules.forget(below)
    identity = identify(root)
    yield from _walk(root, rules, on_error, below, identity[0])
    check_same(root, identity)


def _walk(
    root: Path, rules: IgnoreRules, on_error: OnError, below: str, device: int
) -> Iterator[SeenFile]:
    try:
        if below and not _is_folder_inside(root, below, device):
            return
    except (OSError, ValueError) as error:
        on_error(Unseen(below, explain_error(error)))
        return
    if rules.decide(below, is_dir=True).ignored:
        return
    # Keep one iterator per level on a stack, since paths go deeper than Python's recursion limit.
    levels = [iter(_entries(root, below, on_error))]
    while levels:
        entry = next(levels[-1], None)
        if entry is None:
            levels.pop()
            continue
        path, found = entry
        try:
            is_dir = found.is_dir(follow_symlinks=False)
            if rules.decide(path, is_dir=is_dir).ignored:
                continue
            if not (path.isascii() or is_writable(path)):
                on_error(Unseen(escape(path), "its name is not UTF-8"))
                continue
            details = found.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            on_error(Unseen(path, explain_error(error)))
            continue
        if details.st_dev != device:
            continue
        if is_dir:
            levels.append(iter(_entries(root, path, on_error)))
        elif stat.S_ISREG(details.st_mode) and details.st_size <= MAX_FILE_BYTES:
            yield seen_as(path, details)


def see(root: Path, rules: IgnoreRules, path: str) -> SeenFile | None:
    """Look at one file; return None if it is ignored or does not exist."""
    if rules.decide(path, is_dir=False).ignored:
        return None
    identity = identify(root)
    details = _look_at(root, path, identity[0])
    if details is None:
        check_same(root, identity)
        return None
    if rules.decide(path, is_dir=False, size_bytes=details.st_size).ignored:
        return None
    return seen_as(path, details)


def _look_at(root: Path, path: str, device: int) -> os.stat_result | None:
    """Return the details of a regular file inside the root, or None."""
    parent = path.rpartition("/")[0]
    try:
        if parent and not _is_folder_inside(root, parent, device):
            return None
        details = os.lstat(root / path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(explain_error(error), for_now=True) from error
    return details if details.st_dev == device and stat.S_ISREG(details.st_mode) else None


def _entries(root: Path, folder: str, on_error: OnError) -> list[tuple[str, os.DirEntry[str]]]:
    """List a folder, sorted by name."""
    lead = f"{folder}/" if folder else ""
    try:
        with os.scandir(root / folder) as listing:
            found = sorted(listing, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        if not folder:
            raise Unreadable(
                f"{root} cannot be listed: {explain_error(error)}",
                "give yourself read access to the folder",
            ) from error
        on_error(Unseen(folder, explain_error(error)))
        return []
    return [(lead + entry.name, entry) for entry in found]


def identify(root: Path) -> tuple[int, int]:
    """Return the file system and inode that tell a root from another folder at its path."""
    try:
        details = root.stat()
    except OSError as error:
        raise Unreadable(
            f"{root} cannot be looked at: {explain_error(error)}",
            "check that it is there and mounted",
            for_now=True,
        ) from error
    if not stat.S_ISDIR(details.st_mode):
        raise Unreadable(f"{root} is not a folder", "name the folder that the file is in")
    return details.st_dev, details.st_ino


def check_same(root: Path, identity: tuple[int, int]) -> None:
    """Raise if the root disappeared or was swapped: its missing files are not deleted then."""
    if identify(root) != identity:
        raise Unreadable(
            f"{root} became another folder while it was looked at", "try again", for_now=True
        )


def _is_folder_inside(root: Path, folder: str, device: int) -> bool:
    """Check that a path leads through real folders only, on the root's file system."""
    at = os.fspath(root)
    for part in folder.split("/"):
        at = f"{at}/{part}"
        try:
            details = os.lstat(at)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not stat.S_ISDIR(details.st_mode) or details.st_dev != device:
            return False
    return True
