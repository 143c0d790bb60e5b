"""Read identity files: texts such as USER.md that describe user and agent, for each context."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass

# Only this many bytes are read, since more would not fit into any prompt.
LONGEST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class IdentityFile:
    """Hold the current text of a file, or the reason why it cannot be used."""

    path: str
    text: str
    modified_at: datetime
    trouble: str | None = None


def read_identity_files(settings: Settings, space: str) -> Iterator[IdentityFile]:
    """Read the files that the settings name; they belong to the owner's space only."""
    for path in settings.identity_files if space == settings.space else ():
        try:
            found = Path(path).stat()
            changed = datetime.fromtimestamp(found.st_mtime, UTC)
            # Opening a pipe would wait for a writer, so open regular files only.
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
    # The limit may cut a character in two, so replace invalid bytes.
    return data.decode("utf-8-sig", errors="replace").strip()
