"""Keep a prompt in a file until it is stored, so that a time limit cannot lose it.

A hook writes the file before it loads the engine, and deletes it when the prompt is in the store.
Later hooks store the prompts whose hooks are gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from byheart.startup.dataclass_types import dataclass
from byheart.system.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from byheart.settings import Settings
    from byheart.store import MemoryStore

# After this time, a process with the number of the hook is another one.
_LONGEST_HOOK_SECONDS = 600
# The transcript may have noted the prompt a little before the hook did.
_APART = timedelta(minutes=1)
_MOST_TURNS = 1000


@dataclass(frozen=True, slots=True)
class Spooled:
    """Hold a prompt without its secrets, and where it belongs."""

    session_id: str
    text: str
    project: str | None
    store: str
    space: str
    at: str


def spool_folder() -> Path:
    """Return the folder of the prompts that are not stored yet."""
    return platformdirs.user_state_path("byheart", appauthor=False) / "spool"


def keep_prompt(settings: Settings, session_id: str, text: str, project: str | None) -> Path | None:
    """Write a prompt to a private file; return `None` if that is not possible."""
    at = datetime.now(UTC).isoformat()
    waiting = Spooled(session_id, text, project, str(settings.db_path), settings.space, at)
    path = spool_folder() / f"{time.time_ns()}-{os.getpid()}.json"
    fresh = path.with_suffix(".part")
    with contextlib.suppress(OSError):
        make_private_folder(path.parent)
        with open(fresh, "w", encoding="utf-8", opener=open_private) as file:
            json.dump(asdict(waiting), file)
        fresh.replace(path)  # a reader never sees half of a prompt
        return path
    return None


def store_waiting(store: MemoryStore, settings: Settings) -> None:
    """Store the prompts of this store and space whose hooks have ended without doing so."""
    from byheart.interfaces.hooks.situation import keep_said

    for path, prompt in _waiting(settings):
        said = store.sessions.transcript(
            prompt.session_id, limit=_MOST_TURNS, latest=True, role="user"
        ).turns
        begins = datetime.fromisoformat(prompt.at) - _APART
        if not any(each.content == prompt.text and each.created_at >= begins for each in said):
            keep_said(store, prompt.session_id, prompt.project, "user", prompt.text, prompt.at)
        path.unlink(missing_ok=True)


def _waiting(settings: Settings) -> Iterator[tuple[Path, Spooled]]:
    for path in sorted(spool_folder().glob("*.json")):
        written, _, process = path.stem.partition("-")
        with contextlib.suppress(OSError, ValueError, TypeError):
            if _is_running(int(process), time.time() - int(written) / 1e9):
                continue
            prompt = Spooled(**json.loads(path.read_text(encoding="utf-8")))
            if (prompt.store, prompt.space) == (str(settings.db_path), settings.space):
                yield path, prompt


def _is_running(process: int, age_seconds: float) -> bool:
    if age_seconds > _LONGEST_HOOK_SECONDS or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
