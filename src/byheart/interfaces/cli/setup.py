"""Define `setup`, which connects clients to Byheart and shows the connected ones."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from byheart.errors import InvalidInput
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import Column, Part, Screen, open_screen, print_json
from byheart.interfaces.cli.store import overrides
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.setup.clients import CLIENTS, Machine, this_machine
from byheart.interfaces.setup.hooks import USUAL_TOOLS, VERB, hooks_of_claude_code
from byheart.interfaces.setup.installed_plugins import enabled_plugin
from byheart.interfaces.setup.launching import find_launch, see_running
from byheart.interfaces.setup.registration import (
    CALLING,
    ClientState,
    HooksState,
    Registration,
    register,
    survey,
    unregister,
)
from byheart.model.address_secrets import has_secret
from byheart.settings import SettingRow, Settings, describe_settings, load_settings

# The settings that decide what a client sees, and the flags that pass them to the client.
_DECISIVE = {"db_path": "--db", "space": "--space"}
_KEEP_PASSWORD = "every user's own ~/.pgpass can hold it (see docs/postgres.md)"


@click.command(
    "setup",
    cls=Verb,
    examples=(
        "byheart setup",
        "byheart setup claude-code --dry-run",
        "byheart setup cursor --project --space work",
        "byheart setup claude-code --hooks",
        "byheart setup codex --undo",
    ),
)
@click.argument("client", type=click.Choice(list(CLIENTS)), required=False, metavar="[CLIENT]")
@flag("--project", is_flag=True, help="Set up the project in this folder, not the user.")
@flag("--dry-run", is_flag=True, help="Show the change only.")
@flag("--undo", is_flag=True, help="Remove what setup added.")
@flag(
    "--hooks",
    is_flag=True,
    help="Set up the hooks of Claude Code too: it then remembers by itself.",
)
@click.pass_obj
def setup_command(
    invocation: Invocation,
    client: str | None,
    project: bool,
    dry_run: bool,
    undo: bool,
    hooks: bool,
) -> None:
    """Set up a client, such as Claude Code, to use Byheart over MCP.

    CLIENT is claude-code, claude-desktop, cursor, codex, vscode, gemini, windsurf, zed or opencode.
    Without it, list the clients, whether each is set up, and whether its hooks are. --undo removes
    the hooks too; with --hooks, it removes the hooks alone. --db, --space, BYHEART_DB_PATH and
    BYHEART_SPACE apply to the client as well. A changed file is copied first, with the suffix
    .byheart-backup.
    """
    machine = this_machine()
    if hooks and client != CALLING:
        raise click.UsageError("hooks are for Claude Code: byheart setup claude-code --hooks")
    if client is None:
        if undo or dry_run:
            raise click.UsageError(f"say which client: {', '.join(CLIENTS)}")
        _show_states(invocation, survey(machine, project=project))
    elif undo:
        done = _undo(client, machine, project=project, dry_run=dry_run, hooks=hooks)
        _show(invocation, done, hooks_alone=hooks)
    else:
        # Read the settings first, so that invalid ones are refused before anything is written.
        around = _from_environment(invocation)
        settings = load_settings(overrides(invocation))
        db = settings.db_path if "db_path" in around else invocation.db
        space = settings.space if "space" in around else invocation.space
        with_password = db is not None and has_secret(db)
        if project and with_password:
            raise InvalidInput(
                "everyone who can read the files of the project would see the database password",
                f"leave it out of the address; {_KEEP_PASSWORD}",
            )
        launch = find_launch(see_running(), db, space, shared=project)
        remarks = list(map(_carried, around.values()))
        if project and around:
            remarks.append("this applies to everyone who shares the file")
        if with_password:
            holds = "would hold" if dry_run else "now holds"
            remarks.append(
                f"the file {holds} the database password, and lists of processes show it: better "
                f"leave it out of the address; {_KEEP_PASSWORD}"
            )
        if project and Path(launch.command).is_absolute():
            remarks.append("others who share this file may not have the program at that place")
        if client == CALLING and (plugin := enabled_plugin(machine)):
            remarks.append(
                f"the plugin {plugin} is enabled and brings the same server and hooks: keep one "
                f"of them; to undo this: byheart setup {CALLING} --undo"
            )
        put = partial(register, machine=machine, project=project)
        called: Registration | None = None
        if hooks:
            calls = hooks_of_claude_code(_tools(settings))
            by = find_launch(see_running(), db, space, shared=project, verb=VERB)
            # Change neither file if the other one cannot be changed.
            put(CLIENTS[client], launch=launch, dry_run=True)
            called = put(calls, launch=by, dry_run=dry_run)
        done = put(CLIENTS[client], launch=launch, dry_run=dry_run)
        _show(invocation, replace(done, hooks=called), remarks)


def _undo(
    client: str, machine: Machine, *, project: bool, dry_run: bool, hooks: bool
) -> Registration:
    """Remove the server and the hooks, or the hooks alone."""
    calls = hooks_of_claude_code(_tools(Settings()))
    take = partial(unregister, machine=machine, project=project, dry_run=dry_run)
    if hooks:
        return take(calls)
    done = take(CLIENTS[client])
    called = take(calls) if client == CALLING else None
    return done if called is None or called.action == "absent" else replace(done, hooks=called)


def _tools(settings: Settings) -> str:
    """Name the tools after which Claude Code calls the hook; other tools start no process."""
    usual = settings.capture_tools == Settings().capture_tools
    return USUAL_TOOLS if usual else "*"


def _from_environment(invocation: Invocation) -> dict[str, SettingRow]:
    """Find settings from this shell's environment: clients do not inherit its variables."""
    return {
        row.key: row
        for row in describe_settings(overrides(invocation))
        if row.key in _DECISIVE and row.source.startswith("environment ")
    }


def _carried(row: SettingRow) -> str:
    variable = row.source.removeprefix("environment ")
    return (
        f"{variable} is set in this shell, and clients do not pass it on: "
        f"{_DECISIVE[row.key]} {shlex.quote(str(row.value))} says the same there"
    )


def _show(
    invocation: Invocation,
    done: Registration,
    remarks: Sequence[str] = (),
    *,
    hooks_alone: bool = False,
) -> None:
    if invocation.json:
        print_json(done)
        return
    screen = open_screen()
    for each in filter(None, (done, done.hooks)):
        if each.dry_run and each.diff:
            _show_diff(screen, each.diff)
        else:
            of_hooks = hooks_alone or each is done.hooks
            _show_change(screen, each, _told_of_hooks(each) if of_hooks else _told(each))
    indent = 0 if done.dry_run and done.diff else 1
    for remark in remarks:
        screen.line(remark, indent=indent)


def _show_change(screen: Screen, done: Registration, told: str) -> None:
    screen.line(Part("✓", "good"), Part(done.title, "name"), told)
    screen.line(Part(done.path, "dim"), indent=1)
    if done.backup:
        screen.line(Part(f"as it was: {done.backup}", "dim"), indent=1)
    if done.action in ("added", "updated", "unchanged"):
        screen.line(Part(f"it starts: {shlex.join(done.command)}", "dim"), indent=1)
    if done.action in ("added", "updated"):
        screen.line(done.then, indent=1)


def _told(done: Registration) -> str:
    earlier = f" ({shlex.join(done.command)})" if done.command else ""
    return {
        "added": "is set up",
        "updated": "is set up again",
        "unchanged": "is set up already",
        "removed": "does not know of Byheart any more",
        "restored": f"has the entry back that was there before{earlier}",
        "absent": "was not set up",
    }[done.action]


def _told_of_hooks(done: Registration) -> str:
    return {
        "added": "calls Byheart by itself",
        "updated": "calls Byheart by itself, by other hooks than before",
        "unchanged": "calls Byheart by itself already",
        "removed": "does not call Byheart by itself any more",
        "restored": "has the hooks back that were there before",
        "absent": "did not call Byheart by itself",
    }[done.action]


def _show_diff(screen: Screen, diff: str) -> None:
    for line in diff.splitlines():
        if line.startswith(("---", "+++", "@@")):
            screen.whole(Part(line, "dim"))
        else:
            screen.whole(Part(line, {"+": "good", "-": "bad"}.get(line[:1], "plain")))  # type: ignore[arg-type]


def _show_states(invocation: Invocation, states: Sequence[ClientState]) -> None:
    if invocation.json:
        print_json(states)
        return
    screen = open_screen()
    screen.table(
        (
            Column("CLIENT", style="name"),
            Column("FOUND"),
            Column("SETUP"),
            Column("HOOKS"),
            Column("FILE", wide=True, style="dim"),
        ),
        [
            (
                state.client,
                "yes" if state.found else "no",
                "yes" if state.set_up else "no",
                _told_of(state.hooks),
                _from_home(state.path),
            )
            for state in states
        ],
    )
    # Below the table, because a narrow terminal cuts its last column.
    for state in states:
        for problem in _problems(state):
            screen.line(f"{state.client}: {problem}")
    if not any(state.set_up for state in states):
        screen.line(f"to set one up: byheart setup {states[0].client}")


def _told_of(hooks: HooksState | None) -> str:
    if hooks is None:
        return "-"
    if not hooks.set_up:
        return "no"
    return "yes" if hooks.complete else "in part"


def _problems(state: ClientState) -> list[str]:
    """List what is wrong with a client's server and its hooks, each problem once."""
    problems = (state.problem, state.hooks.problem if state.hooks else None)
    return list(dict.fromkeys(filter(None, problems)))


def _from_home(path: str) -> str:
    """Write a path in the home folder with ~, so that it fits on a narrow terminal."""
    home = Path.home()
    return str(Path("~") / Path(path).relative_to(home)) if home in Path(path).parents else path
