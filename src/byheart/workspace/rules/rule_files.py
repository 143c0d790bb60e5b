"""Read `.gitignore` and similar files once, and match every file below them."""

from __future__ import annotations

import os
import stat
from dataclasses import field, replace
from pathlib import Path

from byheart.startup.dataclass_types import dataclass
from byheart.workspace.rules.globs import Glob, parse_line

# No hand-written file is larger. Git's own limit of 100 MB takes minutes to compile.
_LONGEST_FILE_BYTES = 500_000


@dataclass(frozen=True, slots=True)
class RuleFile:
    """Hold the patterns of one file, grouped for fast lookup; the last match decides."""

    where: str
    skip: int = 0
    """The number of characters of a path that lead to the folder of the file."""
    lead: str = ""
    """For a file above the root: the path from its folder to the root, with a slash."""
    by_name: dict[str, list[Glob]] = field(default_factory=dict)
    by_extension: dict[str, list[Glob]] = field(default_factory=dict)
    others: list[Glob] = field(default_factory=list)

    def add(self, glob: Glob) -> None:
        """Store a pattern in the group where matching paths look it up."""
        if glob.name is not None:
            self.by_name.setdefault(glob.name, []).append(glob)
        elif glob.ending is not None:
            extension = glob.ending[glob.ending.rindex(".") :]
            self.by_extension.setdefault(extension, []).append(glob)
        else:
            self.others.append(glob)

    def find(self, path: str, name: str, *, is_dir: bool) -> Glob | None:
        """Return the last pattern that matches a path below the file's folder."""
        candidates = [self.others]
        if name in self.by_name:
            candidates.append(self.by_name[name])
        dot = name.rfind(".")
        if dot >= 0 and name[dot:] in self.by_extension:
            candidates.append(self.by_extension[name[dot:]])
        found: Glob | None = None
        from_here = self.lead + path[self.skip :]
        for globs in candidates:
            for glob in reversed(globs):
                if found is not None and glob.line < found.line:
                    break
                if (is_dir or not glob.only_folders) and glob.matches(name, from_here):
                    found = glob
                    break
        return found


def read_rules(file: Path, where: str, *, skip: int = 0, lead: str = "") -> RuleFile | None:
    """Read a rule file; None if it does not exist or cannot be read."""
    text = read_short_file(file)
    if not text:
        return None
    rules = RuleFile(where, skip, lead)
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        glob = parse_line(line, number)
        if glob is not None:
            rules.add(glob)
    return rules


def read_exclude(folder: Path, where: str, *, skip: int = 0, lead: str = "") -> RuleFile | None:
    """Read the repository's own rules from `info/exclude`."""
    try:
        link = os.lstat(folder / ".git")
    except OSError:
        return None
    git = folder / ".git"
    if stat.S_ISREG(link.st_mode):
        # In a worktree or submodule, `.git` is a file that names the repository's location.
        git = folder / read_short_file(git).partition("gitdir:")[2].strip()
        common = read_short_file(git / "commondir").strip()
        git = git / common if common else git
    rules = read_rules(git / "info" / "exclude", where, skip=skip, lead=lead)
    return replace(rules, where=f"{where}/info/exclude") if rules else None


def read_short_file(file: Path) -> str:
    """Read a small regular file without following links; a missing file is empty."""
    try:
        handle = os.open(file, os.O_RDONLY | _FLAGS)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        with os.fdopen(handle, "rb", closefd=False) as opened:
            data = opened.read(_LONGEST_FILE_BYTES)
    except OSError:
        return ""
    finally:
        os.close(handle)
    return data.decode("utf-8", "surrogateescape")


# Windows has none of these flags. O_NONBLOCK: opening a pipe must not wait for its other end.
_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
