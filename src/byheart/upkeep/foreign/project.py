"""Project: which one a folder belongs to; all worktrees of a repository belong to one."""

from __future__ import annotations

import ntpath
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from byheart.upkeep.foreign.pieces import label

_POINTER = re.compile(r"gitdir:[ \t]*(.+?)\s*\Z")
_HASH_DIGITS = 6
_LONGEST_NAME = 80


@lru_cache(maxsize=256)
def project_of(folder: str) -> str | None:
    """Name the project of a folder: its repository's name, and a hash of where that is."""
    if not folder.strip():
        return None
    home = _repository(Path(folder)) if Path(folder).is_absolute() else None
    place = folder.rstrip("/\\") or folder if home is None else str(home)
    # A path may come from another system: this splits at both kinds of slash.
    name = ntpath.basename(place.removesuffix("/.git").removesuffix("\\.git"))
    name = (label(name.removesuffix(".git")) or "root")[:_LONGEST_NAME]
    return f"{name}-{sha256(place.encode(errors='replace')).hexdigest()[:_HASH_DIGITS]}"


def _repository(folder: Path) -> Path | None:
    """Find the folder that all worktrees of a repository share."""
    try:
        for each in (folder, *folder.parents):
            found = each / ".git"
            if found.is_dir():
                return found.resolve()
            if found.is_file():
                return _shared(found)
    except OSError:  # not to be read is as good as not there
        return None
    return None


def _shared(pointer: Path) -> Path | None:
    """Follow the file that a worktree has in the place of a repository."""
    target = _POINTER.match(pointer.read_text(encoding="utf-8", errors="replace"))
    if target is None:
        return None
    own = (pointer.parent / target[1]).resolve()
    common = own / "commondir"
    if common.is_file():
        return (own / common.read_text(encoding="utf-8", errors="replace").strip()).resolve()
    return own  # a submodule: a repository of its own
