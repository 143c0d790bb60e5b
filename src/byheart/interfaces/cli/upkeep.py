"""Define `status` and `doctor`, which show the state of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from byheart.errors import ByheartError, StoreDamaged
from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.model_files import get_missing_model
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    open_screen,
    print_json,
    remark,
    size,
    warn,
)
from byheart.interfaces.cli.store import open_store, settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.interfaces.setup.clients import this_machine
from byheart.interfaces.setup.registration import examine as examine_clients
from byheart.model import STALE_SECONDS, Finding, Status, Workspace
from byheart.system import clock
from byheart.upkeep.doctor import report_damage

if TYPE_CHECKING:
    from byheart.store import MemoryStore


@click.command("status", cls=Verb, examples=("byheart status", "byheart status --json"))
@click.pass_obj
def status_command(invocation: Invocation) -> None:
    """Show the contents of the store, and what does not work now."""
    with open_store(invocation) as store:
        status = store.status()
    if invocation.json:
        print_json(status)
        return
    screen = open_screen()
    for name, value in _facts(status):
        screen.line(Part(f"{name:10}", "dim"), value)
    for workspace in status.workspaces:
        screen.line(Part(f"{'workspace':10}", "dim"), *_describe(screen, workspace))
    warn(invocation, status.degraded)
    if status.remark:
        remark(invocation, status.remark)


_PLACES = {"memory": "", "database": ", ranked with postings and vectors in the database"}


def _facts(status: Status) -> list[tuple[str, str]]:
    index = status.index
    waiting = f", {count(index.pending_vectors, 'chunk')} waiting" if index.pending_vectors else ""
    writable = "" if status.writable else ", read-only"
    wanted = status.wanted_model
    differs = f" (the settings name {wanted})" if status.remark else ""
    return [
        ("store", f"{status.store} (schema {status.schema_version}{writable})"),
        ("space", f"{status.space} (of {count(status.spaces, 'space')})"),
        ("memories", f"{index.memories:,} in {count(status.sessions, 'session')}"),
        ("chunks", f"{index.chunks:,}{_PLACES[index.kept_in]}"),
        ("vectors", f"{status.vectors:,} of model {index.model or 'none yet'}{differs}{waiting}"),
        ("size", f"{size(status.size_bytes)}, and {size(status.index_bytes)} of search index"),
    ]


def _describe(screen: Screen, workspace: Workspace) -> list[Part | str]:
    """Describe the files of a workspace, their age, and the process that watches it."""
    failed = f" ({workspace.failed:,} not read)" if workspace.failed else ""
    at = screen.moment(workspace.indexed_at)
    looked = f"looked at {at}" if at else "not yet looked at to its end"
    parts: list[Part | str] = [workspace.root, count(workspace.files, "file") + failed, looked]
    if workspace.watched_by is None or workspace.beat_at is None:
        return [*parts, Part("not watched", "dim")]
    age = (clock.now() - workspace.beat_at).total_seconds()
    who = workspace.watched_by.rsplit("/", 2)[1]
    if abs(age) > STALE_SECONDS:  # the clock may have been set back since
        heard = screen.moment(workspace.beat_at)
        return [*parts, Part(f"not watched: process {who} was last heard of {heard}", "bad")]
    behind = f", {count(workspace.behind, 'file')} behind" if workspace.behind else ""
    parts.append(Part(f"watched by process {who}{behind}", "good"))
    return [*parts, Part(workspace.trouble, "bad")] if workspace.trouble else parts


@click.command(
    "doctor",
    cls=Verb,
    examples=("byheart doctor", "byheart doctor --fix", "byheart doctor --rebuild --optimize"),
)
@flag("--fix", is_flag=True, help="Repair derived data: vectors, keyword entries, leftovers.")
@flag("--rebuild", is_flag=True, help="Rebuild all indexes from the saved texts.")
@flag("--optimize", is_flag=True, help="Compact the store; drop vectors of models not in use.")
@click.pass_context
def doctor_command(ctx: click.Context, fix: bool, rebuild: bool, optimize: bool) -> None:
    """Check the store, its model and its settings; repair them with --fix.

    The exit code is 1 if a check fails.
    """
    invocation: Invocation = ctx.obj
    try:
        with open_store(invocation) as store:
            if fix:
                _embed_pending(invocation, store)
            findings = store.admin.doctor(fix=fix, rebuild=rebuild, optimize=optimize)
    except StoreDamaged as error:  # it cannot even be opened
        findings = (report_damage(error),)
    # The interface checks the clients, because they belong to the machine, not to the store.
    findings += tuple(examine_clients(this_machine()))
    if invocation.json:
        print_json(findings)
    else:
        screen = open_screen()
        for finding in findings:
            _show(screen, finding)
    if not all(finding.ok for finding in findings):
        ctx.exit(FAILURE)


def _embed_pending(invocation: Invocation, store: MemoryStore) -> None:
    """Compute missing vectors with a progress bar, since that may take long."""
    total = store.status().index.pending_vectors
    if total:  # a store with all its vectors needs no model
        get_missing_model(invocation, settings_of(invocation))
    try:
        with Bar("embedding") as bar:
            store.admin.embed_pending(
                lambda made: bar.show(made, max(made, total), f"{made:,} of {total:,} chunks")
            )
    except ByheartError:
        return  # the doctor reports the same problem among its findings


def _show(screen: Screen, finding: Finding) -> None:
    mark = Part("✓", "good") if finding.ok else Part("✗", "bad")
    detail = "" if finding.ok and finding.message == "in order" else finding.message
    screen.line(mark, finding.check, Part(detail, "dim" if finding.ok else "plain"))
    if finding.hint:
        screen.line(Part(finding.hint, "dim"), indent=1)
