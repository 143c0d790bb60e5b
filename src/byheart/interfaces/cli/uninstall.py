"""Define `uninstall`, which undoes what `setup` wrote and names what is left."""

from __future__ import annotations

import sys

import click

from byheart.interfaces.cli.forget import yes
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    open_screen,
    print_json,
    remark,
    size,
)
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.setup.clients import this_machine
from byheart.interfaces.setup.launching import see_running
from byheart.interfaces.setup.removal import Uninstalled, uninstall


@click.command(
    "uninstall",
    cls=Verb,
    examples=("byheart uninstall --dry-run", "byheart uninstall", "byheart uninstall --yes"),
)
@flag("--dry-run", is_flag=True, help="Show only what would change and what is left.")
@yes
@click.pass_obj
def uninstall_command(invocation: Invocation, dry_run: bool, yes: bool) -> None:
    """Undo what setup wrote, and name the folders that are left.

    Memories, models and settings stay: the answer names their folders, which you delete yourself,
    and the command that removes the program.
    """
    settings = settings_of(invocation)
    planned = uninstall(this_machine(), see_running(), settings, dry_run=True)
    if dry_run or not (planned.clients and _agreed(invocation, planned, yes)):
        _show(invocation, planned)
        return
    _show(invocation, uninstall(this_machine(), see_running(), settings, dry_run=False))


def _agreed(invocation: Invocation, planned: Uninstalled, yes: bool) -> bool:
    if yes:
        return True
    if invocation.json or not sys.stdin.isatty():
        remark(invocation, "nothing was changed yet: add --yes to do it")
        return False
    for each in planned.clients:
        click.echo(f"   {each.title}  {each.path}", err=True)
    return click.confirm(f"Remove Byheart from {count(len(planned.clients), 'file')}?", err=True)


def _show(invocation: Invocation, done: Uninstalled) -> None:
    if invocation.json:
        print_json(done)
        return
    screen = open_screen()
    if not done.clients:
        screen.line("no client is set up to start Byheart")
    elif done.dry_run:
        screen.line("these files would no longer start Byheart:")
    else:
        screen.line("these files no longer start Byheart:")
    for each in done.clients:
        screen.line(Part(each.title, "name"), Part(each.path, "dim"), indent=1)
    _show_places(screen, done)
    screen.line("to remove the program:")
    screen.whole(Part(done.program, "name"), indent=1)


def _show_places(screen: Screen, done: Uninstalled) -> None:
    if not done.left:
        return
    screen.line("these stay; delete what you do not want to keep:")
    for each in done.left:
        screen.line(Part(each.what, "name"), size(each.bytes), indent=1)
        screen.whole(Part(each.path, "dim"), indent=2)  # a path that is cut cannot be deleted
