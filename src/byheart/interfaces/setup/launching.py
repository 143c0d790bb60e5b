"""Find a command by which a client starts Byheart, and which still exists tomorrow."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

NAME = "byheart"
# uv and pipx run programs from cache folders that they may clear at any time.
_UV_CACHE = late_pattern(r"(archive|environments|builds)-v\d+")


@dataclass(frozen=True, slots=True)
class Launch:
    """Hold a program and its arguments."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """Describe the running program: how it was called, and the environment it runs in."""

    called: str
    executable: str
    prefix: str


def see_running() -> Running:
    """Describe the program that is running now."""
    return Running(sys.argv[0], sys.executable, sys.prefix)


def find_launch(
    running: Running,
    db: str | None = None,
    space: str | None = None,
    *,
    shared: bool = False,
    verb: str = "mcp",
) -> Launch:
    """Find the command that starts a verb of Byheart, by default the MCP server.

    With `shared`, the command must also work on other people's machines, if possible.
    """
    command, *first = _find_program(running, shared=shared)
    flags = [] if db is None else ["--db", _absolute(db)]
    flags += [] if space is None else ["--space", space]
    return Launch(command, (*first, verb, *flags))


def exists(command: str) -> bool:
    """Tell whether a command of a configuration can be started."""
    return shutil.which(os.path.expanduser(command)) is not None  # noqa: PTH111 - may be no path


def _find_program(running: Running, *, shared: bool) -> Sequence[str]:
    parts = Path(running.prefix).parts
    if any(_UV_CACHE.fullmatch(part) for part in parts):
        return (_find("uvx", shared=shared), NAME)
    if "pipx" in parts and ({".cache", "cache"} & set(parts)):
        return (_find("pipx", shared=shared), "run", NAME)
    own = _find_executable(running)
    if own is None:
        return (running.executable, "-m", NAME)
    found = shutil.which(NAME)
    if shared and found is not None and Path(found).samefile(own):
        return (NAME,)
    return (str(own),)


def _find(name: str, *, shared: bool) -> str:
    # Desktop programs are not started from a shell, and often do not see the user's PATH.
    return name if shared else shutil.which(name) or name


def _find_executable(running: Running) -> Path | None:
    """Find the file that was called, without following links: a link outlives its target."""
    beside = Path(running.executable).parent
    for candidate in (
        *((running.called,) if Path(running.called).stem == NAME else ()),
        beside / NAME,
        beside / f"{NAME}.exe",
    ):
        if found := shutil.which(candidate):
            return Path(found).absolute()
    return None


def _absolute(db: str) -> str:
    """Make the path of a store absolute: a client may start the program in any folder."""
    return db if "://" in db else str(Path(db).expanduser().absolute())
