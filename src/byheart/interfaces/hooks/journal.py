"""The journal: what went wrong in hooks, one line each, in the platform's folder for such files."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from byheart.system.private_files import make_private_folder, open_private

# Then it is begun anew, and the one before is kept.
_LARGEST_BYTES = 1_000_000


def journal_path() -> Path:
    """Give the file that hooks write to."""
    return platformdirs.user_state_path("byheart", appauthor=False) / "hooks.log"


def note(event: str, error: BaseException | str) -> None:
    """Write down what happened; where that cannot be written either, nothing more can be done."""
    with contextlib.suppress(OSError):
        path = journal_path()
        make_private_folder(path.parent)
        if path.exists() and path.stat().st_size > _LARGEST_BYTES:
            path.replace(path.with_suffix(".log.1"))
        told = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        # What went wrong may quote what was said: it is nobody else's.
        with open(path, "a", encoding="utf-8", errors="replace", opener=open_private) as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {event} {' '.join(told.split())}\n")


class JournalHandler(logging.Handler):
    """Send what the engine logs to the journal, and nothing to the agent's screen."""

    def __init__(self, event: str) -> None:
        super().__init__(logging.WARNING)
        self._event = event

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        note(self._event, record.getMessage())
