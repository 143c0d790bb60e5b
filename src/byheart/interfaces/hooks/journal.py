"""Log errors of hooks, one line each, in the platform's folder for state files."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from byheart.interfaces.cli.hints import for_terminal
from byheart.system.private_files import make_private_folder, open_private

# A larger log is rotated: the previous file is kept as `hooks.log.1`.
_LARGEST_BYTES = 1_000_000


def journal_path() -> Path:
    """Return the file that hooks write to."""
    return platformdirs.user_state_path("byheart", appauthor=False) / "hooks.log"


def note(event: str, error: BaseException | str) -> None:
    """Log an error; ignore it if the log cannot be written, since there is no other place."""
    with contextlib.suppress(OSError):
        path = journal_path()
        make_private_folder(path.parent)
        if path.exists() and path.stat().st_size > _LARGEST_BYTES:
            path.replace(path.with_suffix(".log.1"))
        said = for_terminal(str(error))
        told = said if isinstance(error, str) else f"{type(error).__name__}: {said}"
        # The file is private because an error may quote the conversation.
        with open(path, "a", encoding="utf-8", errors="replace", opener=open_private) as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {event} {' '.join(told.split())}\n")


class JournalHandler(logging.Handler):
    """Write the engine's log messages to the journal, not to the agent's screen."""

    def __init__(self, event: str) -> None:
        super().__init__(logging.WARNING)
        self._event = event

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        note(self._event, record.getMessage())
