"""Define `copy`, which copies a whole store between files and PostgreSQL databases."""

from __future__ import annotations

import click

from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import count, open_screen, print_json, remark, warn
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Copied, CopyProgress

_TITLES = {
    "copying": "texts copied",
    "checking": "texts compared",
    "searching": "searches compared",
}
_SHOWN_DAMAGED = 10


@click.command(
    "copy",
    cls=Verb,
    examples=(
        "byheart copy memory.db postgresql://byheart@db.example.com/team",
        "byheart copy postgresql://byheart@db.example.com/team laptop.db",
    ),
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_obj
def copy_command(invocation: Invocation, source: str, target: str) -> None:
    """Copy a whole store to a new file, or to an empty PostgreSQL database.

    FROM and TO are files or addresses that begin with postgresql://. The copy has everything:
    memories with earlier texts, vectors, history, sessions, pins, entities, workspaces, and API
    keys, which go on working. FROM is only read. TO has to be empty.

    At the end all rows are compared, and 50 searches. An interrupted copy goes on when the same
    command is run again; do not use TO before that. Passwords are better kept in the file that
    PGPASSFILE names than in an address.
    """
    if invocation.db is not None or invocation.space is not None:
        raise click.UsageError("copy takes two stores, FROM and TO, and no --db or --space")
    # Imported here, because the help needs none of it.
    from byheart.opening import copy_store

    with Bar("copying") as bar:

        def show(progress: CopyProgress) -> None:
            note = f"{progress.done:,} of {progress.total:,} {_TITLES[progress.step]}"
            bar.show(progress.done, progress.total, note)

        try:
            settings = settings_of(invocation)
            copied = copy_store(source, target, settings=settings, on_progress=show)
        except KeyboardInterrupt:
            bar.close()
            remark(invocation, "\ninterrupted: run the same command again to go on")
            raise
    if invocation.json:
        print_json(copied)
    else:
        _show(invocation, copied)


def _show(invocation: Invocation, copied: Copied) -> None:
    rows = copied.rows
    screen = open_screen()
    went_on = ", continuing an earlier copy" if copied.resumed else ""
    screen.line(
        f"copied {count(copied.memories, 'memory')} of {count(copied.spaces, 'space')} "
        f"to {copied.target}{went_on}"
    )
    screen.line(
        f"compared {count(sum(rows.values()), 'row')} ({count(rows['vectors'], 'vector')}, "
        f"API keys: {rows['tokens']:,}) and the answers of {copied.searches:,} searches: "
        "all the same"
    )
    if copied.damaged:
        shown = ", ".join(copied.damaged[:_SHOWN_DAMAGED])
        more = " …" * (len(copied.damaged) > _SHOWN_DAMAGED)
        warn(invocation, f"damaged in both stores, because FROM had them so: {shown}{more}")
