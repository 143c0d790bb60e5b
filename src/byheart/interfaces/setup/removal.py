"""Find everything that Byheart wrote on a machine, and say how the program itself is removed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from byheart.interfaces.setup.clients import CLIENTS, Machine
from byheart.interfaces.setup.completion_files import SHELLS, completion_file
from byheart.interfaces.setup.hooks import USUAL_TOOLS, hooks_of_claude_code
from byheart.interfaces.setup.launching import NAME, Running, exists
from byheart.interfaces.setup.registration import Registration, survey, unregister
from byheart.settings import Settings, default_config_path
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Name a folder or file that Byheart wrote, with its size."""

    what: str
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """Say which clients no longer start Byheart, which files are left, and how to go on."""

    clients: tuple[Registration, ...]
    left: tuple[Place, ...]
    program: str
    dry_run: bool


def uninstall(
    machine: Machine, running: Running, settings: Settings, *, dry_run: bool
) -> Uninstalled:
    """Undo what `setup` wrote for the user and for the project in this folder."""
    # In the home folder, a file of the project may be the file of the user.
    undone = {each.path: each for each in _undo(machine, dry_run=dry_run)}
    return Uninstalled(
        tuple(undone.values()), tuple(find_places(settings)), name_removal(running), dry_run
    )


def _undo(machine: Machine, *, dry_run: bool) -> Iterator[Registration]:
    for project in (False, True):
        for state in survey(machine, project=project):
            if state.set_up:
                client = CLIENTS[state.client]
                yield unregister(client, machine, project=project, dry_run=dry_run)
            if state.hooks is not None and state.hooks.set_up:
                hooks = hooks_of_claude_code(USUAL_TOOLS)
                yield unregister(hooks, machine, project=project, dry_run=dry_run)


def find_places(settings: Settings) -> Iterator[Place]:
    """Find the folders and files that hold memories, models, settings and logs."""
    if "://" not in settings.db_path:
        store = Path(settings.db_path).expanduser().absolute()
        beside = sorted(store.parent.glob(f"{store.name}*"))
        if beside:
            yield Place("memories", str(store), sum(map(_size, beside)))
    for what, path in (
        ("attached files", settings.files_dir),
        ("models and index copies", settings.cache_dir),
        ("settings", default_config_path()),
        ("logs and running servers", platformdirs.user_state_path(NAME, appauthor=False)),
        *((f"completion for {shell}", completion_file(shell)) for shell in SHELLS),
    ):
        if path.exists():
            yield Place(what, str(path), _size(path))


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def name_removal(running: Running) -> str:
    """Name the command that removes the program, by the tool that installed it."""
    prefix = Path(running.prefix)
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool uninstall {NAME}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx uninstall {NAME}"
    if exists("uv") and not (Path(running.executable).parent / "pip").exists():
        return shlex.join(("uv", "pip", "uninstall", "--python", running.executable, NAME))
    return shlex.join((running.executable, "-m", "pip", "uninstall", NAME))
