"""Explain why a file is indexed or ignored."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from byheart.errors import InvalidInput, NotFound, Unreadable
from byheart.workspace.paths import escape, is_writable, read_path
from byheart.workspace.reading import read_file
from byheart.workspace.regular_file import describe
from byheart.workspace.rules.ignoring import BUILT_IN, Decision, IgnoreRules
from byheart.workspace.walking import identify

CONTENT = "its content"


def explain(root: Path, path: str | Path, *, rules: IgnoreRules | None = None) -> Decision:
    """Explain why a file or folder is indexed or ignored; this also reads the file."""
    rules = rules or IgnoreRules(root)
    device, _ = identify(rules.root)
    try:
        return _explain_found(rules, _place_below(rules.root, path), device)
    except OSError as error:
        shown = escape(str(path))
        raise Unreadable(f"{shown} {describe(error)}", "check who may read it") from error


def _explain_found(rules: IgnoreRules, path: str, device: int) -> Decision:
    at = rules.root
    details = at.stat()
    for part in path.split("/") if path else ():
        at = at / part
        details = at.lstat()
        if stat.S_ISLNK(details.st_mode):
            return Decision(True, "link: what it points to counts by its own name", BUILT_IN)
        if details.st_dev != device:
            return Decision(True, "on another file system than the root", BUILT_IN)
    if not is_writable(path):
        return Decision(True, "its name is not UTF-8", BUILT_IN)
    is_dir = stat.S_ISDIR(details.st_mode)
    decision = rules.decide(path, is_dir=is_dir, size_bytes=None if is_dir else details.st_size)
    if decision.ignored:
        return decision
    if is_dir:
        os.scandir(at).close()  # raises if the folder may not be listed
        return decision
    if not stat.S_ISREG(details.st_mode):
        return Decision(True, "not a regular file", BUILT_IN)
    try:
        text = read_file(rules.root, path).text
    except Unreadable as error:
        return Decision(True, str(error).removeprefix("is "), CONTENT)
    return decision if text.strip() else Decision(True, "without text", CONTENT)


def _place_below(root: Path, path: str | Path) -> str:
    """Return the path below the root; `path` may be relative to the working folder or the root."""
    given = read_path(path)
    existing = [each for each in (given, root / given) if _may_be_there(each)]
    # Links above the root do not matter; links below the root do.
    for candidate in existing:
        normal = Path(os.path.abspath(candidate))  # noqa: PTH100 - links must stay
        for base in (root, *_other_names(root, normal)):
            if normal.is_relative_to(base):
                relative = normal.relative_to(base).as_posix()
                return "" if relative == "." else relative
    if not existing:
        raise NotFound(f"there is no file {escape(str(path))}", f"name a file in {root}")
    raise InvalidInput(f"{escape(str(path))} is outside of {root}", f"name a file in {root}")


def _may_be_there(path: Path) -> bool:
    """Check whether a file exists; also true if permissions forbid the check."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
    return True


def _other_names(root: Path, path: Path) -> Iterator[Path]:
    """Yield the parents of a path that are the same folder as the root under another name."""
    for folder in path.parents:
        try:
            if folder.samefile(root):
                yield folder
        except OSError:
            continue
