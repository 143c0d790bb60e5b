"""Register Byheart with a client, preview the change, or undo it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple

from byheart.errors import ByheartError, InvalidInput
from byheart.interfaces.setup.clients import CLIENTS, Client, Machine
from byheart.interfaces.setup.config_file import (
    Changed,
    backup_of,
    read_text,
    replace_text,
    require_writable,
    restore_text,
)
from byheart.interfaces.setup.hooks import USUAL_TOOLS, hooks_of_claude_code, is_complete
from byheart.interfaces.setup.launching import NAME, Launch, exists
from byheart.interfaces.setup.servers import Entry, Misshapen, Unsafe
from byheart.model import Finding
from byheart.model.address_secrets import hide_secrets, hide_secrets_in
from byheart.startup.dataclass_types import dataclass

# The client that can call Byheart by itself, through hooks.
CALLING = "claude-code"
Action = Literal["added", "updated", "unchanged", "removed", "restored", "absent"]
_MOST_ATTEMPTS = 5
# The diff shows only the changed part of a longer line (a file may be a single line), and this many
# characters around it: the text nearby may be the key of another server.
_LONGEST_LINE, _SHOWN_AROUND = 300, 3


@dataclass(frozen=True, slots=True)
class Registration:
    """Describe how a client's configuration changed, or would change with `dry_run`.

    `command` is the command that the client starts from now on; if the entry was removed, it is the
    command that the client started before. Passwords are hidden here and in `diff`. `hooks` tells
    how the file with the client's hooks changed, if that was to change too.
    """

    client: str
    title: str
    path: str
    action: Action
    dry_run: bool
    command: tuple[str, ...]
    diff: str
    backup: str | None
    then: str
    hooks: Registration | None = None


@dataclass(frozen=True, slots=True)
class HooksState:
    """Describe the hooks of a client: whether they call Byheart, and whether they are complete."""

    path: str
    set_up: bool
    complete: bool
    command: tuple[str, ...] | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class ClientState:
    """Describe a client: whether it is on this machine, and whether Byheart is registered.

    `hooks` is set for a client that can call Byheart by itself.
    """

    client: str
    title: str
    path: str
    found: bool
    set_up: bool
    command: tuple[str, ...] | None
    problem: str | None
    hooks: HooksState | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """Hold the text of a file before and after a change; `None` means no file."""

    action: Action
    before: str | None
    after: str | None
    command: tuple[str, ...]
    restores: bool = False


def register(
    client: Client, machine: Machine, launch: Launch, *, project: bool, dry_run: bool
) -> Registration:
    """Tell a client how to start Byheart; the rest of its file stays as it is."""
    path = _path(client, machine, project=project)
    entry = client.entry(launch)
    plan = partial(_adding, client, path, entry, launch)
    return _carry_out(client, path, plan, shared=project, dry_run=dry_run)


def unregister(client: Client, machine: Machine, *, project: bool, dry_run: bool) -> Registration:
    """Remove from a client's file what `register` added."""
    path = _path(client, machine, project=project)
    plan = partial(_removing, client, path)
    return _carry_out(client, path, plan, shared=project, dry_run=dry_run)


def survey(machine: Machine, *, project: bool) -> tuple[ClientState, ...]:
    """Check for every client whether it is on this machine, and whether Byheart is registered."""
    states = []
    for client in CLIENTS.values():
        path = client.path(machine, project=project)
        if path is None:
            continue
        held = _look(client, path)
        state = ClientState(
            *(client.name, client.title, str(path), client.is_here(machine)),
            *(held.entry is not None, held.command, held.problem),
        )
        if client.name == CALLING:
            state = replace(state, hooks=_survey_hooks(machine, project=project))
        states.append(state)
    return tuple(states)


def _survey_hooks(machine: Machine, *, project: bool) -> HooksState:
    hooks = hooks_of_claude_code(USUAL_TOOLS)
    path = _path(hooks, machine, project=project)
    held = _look(hooks, path)
    complete = held.entry is not None and is_complete(held.entry)
    return HooksState(str(path), held.entry is not None, complete, held.command, held.problem)


class _Held(NamedTuple):
    """Hold a client's entry for Byheart, the command it starts, and a problem with it, if any."""

    entry: Entry | None = None
    command: tuple[str, ...] | None = None
    problem: str | None = None


def _look(client: Client, path: Path) -> _Held:
    try:
        entry = client.servers.read(read_text(path) or "")
    except (ValueError, ByheartError) as error:
        reason = error.message if isinstance(error, ByheartError) else f"unreadable: {error}"
        return _Held(problem=reason)
    if entry is None:
        return _Held()
    command = _command(entry)
    gone = bool(command) and not exists(command[0])
    shown = tuple(map(hide_secrets, command))
    return _Held(entry, shown, f"{command[0]} is not there any more" if gone else None)


def examine(machine: Machine) -> Iterator[Finding]:
    """Find clients that start Byheart by a command that no longer exists."""
    for project in (False, True):
        for state in survey(machine, project=project):
            flag = " --project" if project else ""
            for each, what in ((state, ""), (state.hooks, " --hooks")):
                if each is not None and each.set_up and each.problem is not None:
                    yield Finding(
                        f"client {state.client}",
                        False,
                        f"{each.path} starts {NAME} by a command that fails: {each.problem}",
                        f"run: byheart setup {state.client}{what}{flag}",
                    )


def _path(client: Client, machine: Machine, *, project: bool) -> Path:
    path = client.path(machine, project=project)
    if path is None:
        raise InvalidInput(
            f"{client.title} has no configuration of its own for a project",
            f"leave --project out: byheart setup {client.name}",
        )
    return path


def _adding(client: Client, path: Path, entry: Entry, launch: Launch) -> _Change:
    before = read_text(path)
    held = _read(client, path, before or "")
    command = (launch.command, *launch.args)
    if held is not None and "url" not in held:
        if (held.get("command"), held.get("args")) == (launch.command, list(launch.args)):
            return _Change("unchanged", before, before, command)
        # An entry written by hand may omit fields that the client does not need: only the command
        # is updated.
        entry = {name: value for name, value in entry.items() if name in ("command", "args")}
    try:
        after = client.servers.put(before or "", entry)
    except (Unsafe, ValueError) as error:
        raise ByheartError(
            f"{path} is written in a way that cannot be edited safely; it was left as it is",
            hide_secrets_in(client.servers.advise(before or "", entry)),
        ) from error
    return _Change("added" if held is None else "updated", before, after, command)


def _removing(client: Client, path: Path) -> _Change:
    before = read_text(path)
    held = _read(client, path, before or "")
    if before is None or held is None:
        return _Change("absent", before, before, ())
    was = read_text(backup_of(path))
    if _gives(client, was, held, before):
        earlier = client.servers.read(was or "")
        if earlier is not None:
            return _Change("restored", before, was, _command(earlier), restores=True)
        return _Change("removed", before, was, _command(held), restores=True)
    return _Change("removed", before, _without(client, path, before), _command(held))


def _gives(client: Client, was: str | None, entry: Entry, text: str) -> bool:
    """Tell whether adding the entry to the backup gives the text: then the backup is restored."""
    try:
        return client.servers.put(was or "", entry) == text
    except (Unsafe, ValueError):
        return False  # the backup is from another change


def _without(client: Client, path: Path, text: str) -> str:
    try:
        return client.servers.remove(text)
    except (Unsafe, ValueError) as error:
        raise ByheartError(
            f"{path} is written in a way that cannot be edited safely; it was left as it is",
            f"take what it says about {NAME} out yourself",
        ) from error


def _read(client: Client, path: Path, text: str) -> Entry | None:
    try:
        return client.servers.read(text)
    except Misshapen as error:
        raise ByheartError(
            f"{path} is not as {client.title} keeps it: {error}; it was left as it is",
            "correct the file and run the command again",
        ) from error
    except ValueError as error:
        raise ByheartError(
            f"{path} is not valid {client.servers.language.upper()}: {error}; it was left as it is",
            "correct the file and run the command again",
        ) from error


def _carry_out(
    client: Client, path: Path, plan: Callable[[], _Change], *, shared: bool, dry_run: bool
) -> Registration:
    for _ in range(_MOST_ATTEMPTS):
        change = plan()
        if change.after != change.before:
            require_writable(path)
        try:
            backup = None if dry_run else _write(path, change, shared=shared)
            break
        except Changed:
            continue  # the client wrote its file just now: plan again
    else:
        raise _contended(client, path)
    return Registration(
        client=client.name,
        title=client.title,
        path=str(path),
        action=change.action,
        dry_run=dry_run,
        command=tuple(map(hide_secrets, change.command)),
        diff=_diff(path, change),
        backup=None if backup is None else str(backup),
        then=client.then,
    )


def _write(path: Path, change: _Change, *, shared: bool) -> Path | None:
    if change.restores and change.before is not None:
        restore_text(path, change.before, change.after)
    elif change.after is not None and change.after != change.before:
        return replace_text(path, change.before, change.after, shared=shared)
    return None


def _diff(path: Path, change: _Change) -> str:
    before, after = (
        hide_secrets_in(text or "").splitlines() for text in (change.before, change.after)
    )
    if before == after and change.before != change.after:
        return f"--- {path}\n+++ {path}\nonly the password in the address changes"
    _shorten_alike(before, after)
    # The diff shows one line of context: the text nearby may be the key of another server.
    lines = difflib.unified_diff(before, after, str(path), str(path), n=1, lineterm="")
    return "\n".join(lines)


def _shorten_alike(before: list[str], after: list[str]) -> None:
    """Shorten the common beginning and end of changed long lines; keep every changed part."""
    gone, new = (
        [at for at, line in enumerate(own) if len(line) > _LONGEST_LINE and line not in others]
        for own, others in ((before, after), (after, before))
    )
    for old_at, new_at in zip(gone, new, strict=False):
        pair = before[old_at], after[new_at]
        start = max(0, _count_alike(*pair) - _SHOWN_AROUND)
        cut = max(0, _count_alike(*(line[start:][::-1] for line in pair)) - _SHOWN_AROUND)
        before[old_at], after[new_at] = (
            ("…" if start else "") + line[start : len(line) - cut] + ("…" if cut else "")
            for line in pair
        )


def _count_alike(one: str, other: str) -> int:
    """Count the characters of the common beginning of two lines."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _command(entry: Entry) -> tuple[str, ...]:
    args = entry.get("args", ())
    said = (entry.get("command"), *(args if isinstance(args, list) else ()))
    return tuple(str(each) for each in said if each is not None)


def _contended(client: Client, path: Path) -> ByheartError:
    return ByheartError(
        f"{client.title} keeps writing {path}; it was left as it is",
        f"quit {client.title} and run the command again",
    )
