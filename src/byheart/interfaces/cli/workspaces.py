"""Define `index` and `watch`, which turn the files of folders into memories."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from byheart.errors import ByheartError, InvalidInput, StoreUnreachable
from byheart.interfaces.cli.errors import FAILURE
from byheart.interfaces.cli.model_files import open_embedding_store
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.progress import Bar, duration
from byheart.interfaces.cli.screen import (
    Part,
    Screen,
    count,
    open_screen,
    print_json,
    remark,
    warn,
)
from byheart.interfaces.cli.store import open_store, settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Indexed, IndexProgress

if TYPE_CHECKING:
    from byheart.store import MemoryStore

_SHOWN_ERRORS = 10
_ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@click.command(
    "index",
    cls=Verb,
    examples=(
        "byheart index ~/notes",
        "byheart index",
        "byheart index ~/notes --explain ~/notes/.env",
        "byheart index ~/notes --drop",
    ),
)
@click.argument("path", required=False)
@flag("--prune", is_flag=True, help="Remove missing files even if the whole folder is empty.")
@flag("--embed/--no-embed", default=True, help="Compute vectors at once (the default), or later.")
@flag("--explain", metavar="FILE", help="Say which rule decides whether FILE is indexed.")
@flag("--drop", is_flag=True, help="Remove the folder; its memories are forgotten.")
@click.pass_context
def index_command(
    ctx: click.Context, path: str | None, prune: bool, embed: bool, explain: str | None, drop: bool
) -> None:
    """Index the files of a folder as memories; again, only changed files.

    Without PATH, all indexed folders are checked again. Hidden files, files named by .gitignore and
    .byheartignore, secrets, binaries and files over 10 MB are ignored.
    """
    invocation: Invocation = ctx.obj
    if explain is not None:
        _explain(invocation, path, explain)
    elif drop:
        _drop(invocation, path)
    else:
        if not _index(invocation, path, prune, embed):
            ctx.exit(FAILURE)


def _index(invocation: Invocation, path: str | None, prune: bool, embed: bool) -> bool:
    """Index one folder or all; return whether every file could be read."""
    reports: list[Indexed] = []
    whole = True
    with open_embedding_store(invocation, create=path is not None) as store:
        paths = [path] if path is not None else [each.root for each in store.workspaces.list()]
        if not paths:
            raise InvalidInput("no folder was indexed yet", "name one: byheart index PATH")
        for each in paths:
            with Bar("indexing") as bar:
                try:
                    report = store.index(each, prune, embed, on_progress=_shown_on(bar))
                except KeyboardInterrupt:
                    bar.close()
                    remark(invocation, "\ninterrupted: run the same command again to go on")
                    raise
                except ByheartError as error:
                    if path is not None:
                        raise
                    warn(invocation, str(error))
                    whole = False
                    continue
            whole = whole and not report.errors
            reports.append(report)
            if not invocation.json:
                _show(invocation, report)
    if invocation.json:
        print_json(reports[0] if path is not None else reports)
    return whole


def _shown_on(bar: Bar) -> Callable[[IndexProgress], None]:
    begun: list[float] = []

    def show(progress: IndexProgress) -> None:
        if not progress.vectors_total:
            rate = progress.chunks / max(bar.seconds, 0.001)
            bar.show(
                progress.files,
                progress.files_total,
                f"{progress.files:,} of {count(progress.files_total, 'file')}, "
                f"{count(progress.chunks, 'chunk')}, {rate:,.0f} chunks/s",
            )
            return
        if not begun:
            begun.append(bar.seconds)
        seconds = max(bar.seconds - begun[0], 0.001)
        rate = progress.vectors / seconds
        left = (progress.vectors_total - progress.vectors) / rate if rate else 0
        bar.show(
            progress.vectors,
            progress.vectors_total,
            f"{progress.vectors:,} of {count(progress.vectors_total, 'chunk')} embedded, "
            f"{rate:,.0f} chunks/s",
            seconds_left=left,
        )

    return show


def _show(invocation: Invocation, report: Indexed) -> None:
    screen = open_screen()
    screen.line(Part(report.root, "name"), Part(_elapsed(report), "dim"))
    screen.line(_counts(report), indent=1)
    _show_errors(screen, report)
    _show_redacted(screen, report)
    if report.degraded:
        warn(invocation, report.degraded)
    if report.pending_vectors:
        remark(
            invocation,
            f"{count(report.pending_vectors, 'chunk')} can be found by keyword only, until "
            "byheart doctor --fix makes the vectors",
        )


def _show_errors(screen: Screen, report: Indexed) -> None:
    for error in report.errors[:_SHOWN_ERRORS]:
        path = Part(error.path, gives_way=True)
        screen.line(Part("✗", "bad"), path, Part(error.reason, "dim"), indent=1)
    if len(report.errors) > _SHOWN_ERRORS:
        more = len(report.errors) - _SHOWN_ERRORS
        screen.line(Part(f"and {count(more, 'other')}: see --json", "dim"), indent=1)


def _show_redacted(screen: Screen, report: Indexed) -> None:
    """Name the files in whose memories secrets were replaced by marks."""
    if not report.redacted_files:
        return
    secrets = count(report.secrets_redacted, "secret")
    screen.line(f"{secrets} replaced in {count(len(report.redacted_files), 'file')}:", indent=1)
    for each in report.redacted_files[:_SHOWN_ERRORS]:
        kinds = ", ".join(each.secrets)
        screen.line(Part(each.path, gives_way=True), Part(kinds, "dim"), indent=2)
    if len(report.redacted_files) > _SHOWN_ERRORS:
        more = len(report.redacted_files) - _SHOWN_ERRORS
        screen.line(Part(f"and {count(more, 'other')}: see --json", "dim"), indent=2)


def _elapsed(report: Indexed) -> str:
    if report.elapsed_ms < 1000:
        return f"{report.elapsed_ms:.0f} ms"
    seconds = report.elapsed_ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


def _counts(report: Indexed) -> str:
    parts = [
        f"{count(report.files_indexed, 'file')} indexed ({count(report.chunks, 'chunk')})",
        f"{report.files_skipped:,} unchanged",
    ]
    parts += [
        f"{number:,} {word}"
        for number, word in (
            (report.files_empty, "without text"),
            (report.files_moved, "moved"),
            (report.files_removed, "removed"),
            (report.files_restored, "found again"),
            (report.files_forgotten, "left out, as they were forgotten"),
            (len(report.errors), "not read"),
        )
        if number
    ]
    return ", ".join(parts)


def _explain(invocation: Invocation, path: str | None, file: str) -> None:
    from byheart.workspace import IgnoreRules, escape, explain

    root = _find_root(invocation, path, file)
    rules = IgnoreRules(root, store=Path(settings_of(invocation).db_path))
    decision = explain(root, file, rules=rules)
    if invocation.json:
        print_json(decision)
        return
    verdict = Part("left out", "bad") if decision.ignored else Part("indexed", "good")
    where = f"({decision.where})" if decision.where else ""
    open_screen().line(Part(escape(file), "name"), verdict, decision.rule, Part(where, "dim"))


def _find_root(invocation: Invocation, path: str | None, file: str) -> Path:
    """Find the folder whose rules apply: the enclosing workspace, or else the named folder.

    Without either, it is the working folder for files in it, and the file's own folder
    otherwise.
    """
    from byheart.workspace import read_path
    from byheart.workspace.indexing import innermost, whole_path

    folder = whole_path(read_path(file).parent)
    here = whole_path(Path())
    otherwise = here if folder.is_relative_to(here) else folder
    named = otherwise if path is None else read_path(path)
    meant = folder if path is None else whole_path(named)
    try:
        with open_store(invocation) as store:
            around = innermost(store.workspaces.list(), meant)
    except StoreUnreachable:  # nothing is indexed yet, but the question is still valid
        return named
    return named if around is None else Path(around.root)


def _drop(invocation: Invocation, path: str | None) -> None:
    if path is None:
        raise click.UsageError("name the folder to remove: byheart index PATH --drop")
    with open_store(invocation) as store:
        forgotten = store.workspaces.drop(path)
    if invocation.json:
        print_json({"forgotten": forgotten})
    else:
        open_screen().line(f"removed {path}: {count(forgotten, 'memory')} forgotten")


@click.command(
    "watch",
    cls=Verb,
    examples=("byheart watch ~/notes", "byheart watch ~/project ~/notes", "byheart watch"),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.pass_obj
def watch_command(invocation: Invocation, paths: Sequence[str]) -> None:
    """Index folders and keep them fresh until Ctrl-C.

    Without PATH, all indexed folders are watched. A saved file is found within a second. If another
    process already watches a folder, this one waits.
    """
    with open_embedding_store(invocation, create=bool(paths)) as store:
        chosen = list(paths) or [each.root for each in store.workspaces.list()]
        if not chosen:
            raise InvalidInput("no folder was indexed yet", "name one: byheart watch PATH")
        _watch(invocation, store, chosen)


def _watch(invocation: Invocation, store: MemoryStore, paths: Sequence[str]) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def watch(path: str) -> None:
        try:
            store.workspaces.watch(
                path,
                stop,
                lambda report: _tell(invocation, report),
                on_turn=lambda watched_by: _tell_turn(invocation, path, watched_by),
            )
        except BaseException as error:  # noqa: BLE001 - raised again where it can be shown
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=watch, args=(path,), name="byheart-watch") for path in paths]
    with _ended_in_order():
        for thread in threads:
            thread.start()
        try:
            stop.wait()
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    if failures:
        raise failures[0]


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Treat a closed terminal and a stopped service like Ctrl-C, the first time.

    The process ends after the current batch; a second signal must not interrupt the store
    meanwhile.
    """
    # Background processes and nohup ignore some of these signals; that must stay so.
    former = {
        each: handler
        for each in _ENDINGS
        if (handler := signal.getsignal(each)) not in (signal.SIG_IGN, None)
    }

    def handle_with(handler: Any) -> None:
        for each in former:
            signal.signal(each, handler)

    def interrupt(_number: int, _frame: Any) -> None:
        handle_with(signal.SIG_IGN)  # before another signal can arrive
        raise KeyboardInterrupt

    handle_with(interrupt)
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def _tell_turn(invocation: Invocation, path: str, watched_by: str | None) -> None:
    """Say whether this process watches a folder, or waits for another process to end."""
    if watched_by is None:
        remark(invocation, f"watching {path} (stop with Ctrl-C)")
        return
    process = watched_by.rsplit("/", 2)[1]
    remark(
        invocation,
        f"standing by: {path} is watched by process {process} already (stop with Ctrl-C)",
    )


def _tell(invocation: Invocation, report: Indexed) -> None:
    if invocation.json:
        print_json(report)
        return
    screen = open_screen()
    now = f"{datetime.now().astimezone():%H:%M:%S}"
    screen.line(Part(now, "dim"), _counts(report), Part(report.root, "dim"))
    _show_errors(screen, report)
