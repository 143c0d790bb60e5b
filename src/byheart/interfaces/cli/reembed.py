"""Define `reembed`, which changes the embedding model while the store stays in use."""

from __future__ import annotations

import click

from byheart.interfaces.cli.hints import for_terminal
from byheart.interfaces.cli.model_files import get_missing_model
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import count, open_screen, print_json, remark
from byheart.interfaces.cli.store import open_store, settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.model import Reembedding


@click.command(
    "reembed",
    cls=Verb,
    examples=("byheart reembed", "byheart reembed --rollback", "byheart reembed --discard-old"),
)
@flag("--rollback", is_flag=True, help="Go back to the previous model at once.")
@flag(
    "--keep-old/--discard-old",
    default=True,
    help="Keep the vectors of other models (the default), or drop them.",
)
@click.pass_obj
def reembed_command(invocation: Invocation, rollback: bool, keep_old: bool) -> None:
    """Switch the store to the embedding model that the settings name.

    Set the model first, for example with: byheart config set embedding_model BAAI/bge-small-en-v1.5

    The new vectors are computed beside the old ones. Searches and saves use the old model until all
    new vectors exist. After an interruption, run the command again to continue.
    """
    if not rollback:
        get_missing_model(invocation, settings_of(invocation))
    with open_store(invocation) as store, Bar("embedding") as bar:
        watch = _Watch(bar)
        try:
            done = store.admin.reembed(on_progress=watch.show, rollback=rollback, keep_old=keep_old)
        except KeyboardInterrupt:
            bar.close()
            remark(
                invocation,
                f"\ninterrupted: {watch.said}; the store is searched as before, and "
                "byheart reembed goes on from here",
            )
            raise
    if invocation.json:
        print_json(done)
    else:
        _show(done)


class _Watch:
    """Show the progress, the speed and the remaining time."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._first: int | None = None
        self.said = "nothing done yet"

    def show(self, done: int, total: int) -> None:
        """Move the bar; the work of an earlier run does not count for the speed of this one."""
        if self._first is None:
            self._first = done
        now = done - self._first
        self.said = f"{done:,} of {count(total, 'chunk')} done"
        rate = f", {now / self._bar.seconds:,.0f}/s" if now else ""
        self._bar.show(now, total - self._first, f"{done:,} of {count(total, 'chunk')}{rate}")


def _show(done: Reembedding) -> None:
    screen = open_screen()
    if done.made or done.reused:
        known = f", {done.reused:,} were known" if done.reused else ""
        screen.line(f"embedded {count(done.made, 'text')} of {count(done.chunks, 'chunk')}{known}")
    for sentence in for_terminal(done.message).split("; "):
        screen.line(sentence)
