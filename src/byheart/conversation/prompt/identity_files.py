"""Identity files: texts such as USER.md that say who speaks with whom, read for each context."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from byheart.settings import Settings

# What comes after so many bytes is not read: it would not fit into any prompt.
LONGEST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class IdentityFile:
    """A file as it is now, or why there is nothing to be had of it."""

    path: str
    text: str
    modified_at: datetime
    trouble: str | None = None


def read_identity_files(settings: Settings, space: str) -> Iterator[IdentityFile]:
    """Read what the settings name, as far as it may be needed; it is of the owner's space alone."""
    for path in settings.identity_files if space == settings.space else ():
        try:
            found = Path(path).stat()
            changed = datetime.fromtimestamp(found.st_mtime, UTC)
            # Whoever opens a pipe waits until somebody writes into it.
            text = _read(Path(path)) if stat.S_ISREG(found.st_mode) else "\0"
        except OSError as error:
            said = (error.strerror or "it cannot be read").lower()
            yield IdentityFile(path, "", datetime.fromtimestamp(0, UTC), said)
            continue
        trouble = "it is not a text" if "\0" in text else None if text else "there is nothing in it"
        yield IdentityFile(path, "" if trouble else text, changed, trouble)


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(LONGEST_BYTES)
    # A character that was cut in two is no reason to refuse the rest.
    return data.decode("utf-8-sig", errors="replace").strip()
