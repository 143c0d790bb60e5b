"""Show the progress of long work on stderr: as a bar on a terminal, else as lines."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


# Where there is no terminal, a line is written after this time, and then each time it has passed.
_SECONDS_PER_LINE = 10.0
# Before this share is done, an estimate of the rest is hours off.
_LEAST_SHARE = 0.01


class Bar:
    """Show a progress bar with the remaining time; without a terminal, a line now and then."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._shown: tuple[Progress, TaskID] | None = None
        self._started = self._told = time.monotonic()
        # Work may have phases, which begin again at zero: when this one began, and what was done.
        self._phase_began = self._last_shown = self._started
        self._done = 0.0

    @property
    def seconds(self) -> float:
        """Return the elapsed time; never zero."""
        return max(time.monotonic() - self._started, 0.001)

    @property
    def is_shown(self) -> bool:
        """Say whether the bar is visible."""
        return self._shown is not None

    def __enter__(self) -> Bar:
        self._started = self._told = time.monotonic()
        self._phase_began = self._last_shown = self._started
        self.open()
        return self

    def open(self) -> None:
        """Show the bar, unless it is shown already or there is no terminal."""
        if self._shown is None and sys.stderr.isatty():
            self._open()

    def _open(self) -> None:
        # rich takes longer to import than most commands run, so it is imported only for a visible
        # bar.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._shown = progress, progress.add_task(self._title, total=None, note="")
        progress.start()

    def show(
        self, done: float, total: float | None, note: str, *, seconds_left: float | None = None
    ) -> None:
        """Move the bar and describe the work done; without a total, the bar only runs."""
        if done < self._done:
            self._phase_began = self._last_shown
        self._done, self._last_shown = done, time.monotonic()
        if self._shown is None and (sys.stderr.isatty() or not self._is_time_for_a_line()):
            return
        if seconds_left is None and total and total * _LEAST_SHARE <= done < total:
            # Work comes in batches of several seconds, too few for rich's own estimate.
            seconds = self._last_shown - self._phase_began
            seconds_left = seconds * (total - done) / done
        if seconds_left is not None:
            note += f", {duration(seconds_left)} left"
        if self._shown is None:
            click.echo(f"{self._title}: {note}", err=True)
            return
        progress, task = self._shown
        progress.update(task, completed=done, total=total, note=note)

    def _is_time_for_a_line(self) -> bool:
        now = time.monotonic()
        if now - self._told < _SECONDS_PER_LINE:
            return False
        self._told = now
        return True

    def close(self) -> None:
        """Remove the bar, so that other lines can be written."""
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def duration(seconds: float) -> str:
    """Format a duration: `8 s`, `2:05 min`, `1:02 h`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02} h"
