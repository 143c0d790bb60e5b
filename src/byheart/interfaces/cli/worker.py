"""Define `worker`, which makes the vectors that saves leave to it."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING

import click

import byheart
from byheart.interfaces.cli.model_files import get_missing_model
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.progress import Bar
from byheart.interfaces.cli.screen import count, open_screen, print_json, remark
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb
from byheart.startup.dataclass_types import dataclass

if TYPE_CHECKING:  # keeps numpy out of the import of the help
    from byheart.model import EmbeddedShare
    from byheart.store import MemoryStore

_TELL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Worked:
    """Count the chunks that a worker embedded, those that were refused, and those that wait."""

    embedded: int
    refused: int
    pending_vectors: int


@click.command(
    "worker",
    cls=Verb,
    examples=(
        "byheart worker",
        "byheart worker --once",
        "BYHEART_DB_PATH=postgresql://db.example.com/memory byheart worker --batch 128",
    ),
)
@flag("--once", is_flag=True, help="End when no chunk is left to embed.")
@flag(
    "--batch",
    type=click.IntRange(1, 1000),
    default=64,
    show_default=True,
    metavar="N",
    help="The number of chunks to claim and embed at a time.",
)
@flag(
    "--lease",
    type=click.FloatRange(1, 86_400),
    metavar="SECONDS",
    help="The time after which other workers take over a share that was not finished; by default "
    "20 times the time that a share takes.",
)
@click.pass_obj
def worker_command(invocation: Invocation, once: bool, batch: int, lease: float | None) -> None:
    """Make the vectors of saved texts until Ctrl-C, in all spaces.

    With the setting embed_on_save=false, saves leave their vectors to workers. Any number of
    workers can share a PostgreSQL store: each claims other chunks, and others take over the share
    of a worker that crashed.
    """
    from byheart.interfaces.embedding_worker import EmbeddingWorker

    settings = settings_of(invocation)
    ended = threading.Event()
    with byheart.open(settings=settings, create=False) as store:
        if not store.admin.uses_earlier_model():
            get_missing_model(invocation, settings)
        store.admin.load_model()
        if not once:
            remark(invocation, "waiting for chunks to embed (stop with Ctrl-C)")
        _end_on_signals(ended)
        with Bar("embedding") as bar:
            tally = _Tally(invocation, store, bar)
            EmbeddingWorker(store, batch, lease, tally.add).run(ended, once=once)
        done = tally.worked()
    if invocation.json:
        print_json(done)
    else:
        open_screen().line(_describe(done))


def _describe(done: Worked) -> str:
    refused = f", {done.refused:,} refused" if done.refused else ""
    return f"{count(done.embedded, 'chunk')} embedded{refused}, {done.pending_vectors:,} waiting"


def _end_on_signals(ended: threading.Event) -> None:
    """End after the current share on the first signal, and at once on the second."""

    def end(_number: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


class _Tally:
    """Count the work of this process, and show it: on a terminal always, else once a minute."""

    def __init__(self, invocation: Invocation, store: MemoryStore, bar: Bar) -> None:
        self._invocation = invocation
        self._store = store
        self._bar = bar
        self._embedded = self._refused = self._told = 0
        self._told_at = time.monotonic()

    def add(self, share: EmbeddedShare) -> None:
        """Add a share."""
        self._embedded += share.made
        self._refused += share.refused
        self._bar.show(self._embedded, None, count(self._embedded, "chunk"))
        now = time.monotonic()
        if now - self._told_at >= _TELL_SECONDS:
            if self._embedded > self._told and not self._bar.is_shown:
                remark(self._invocation, _describe(self.worked()))
            self._told_at, self._told = now, self._embedded

    def worked(self) -> Worked:
        """Count everything."""
        return Worked(self._embedded, self._refused, self._store.admin.count_pending())
