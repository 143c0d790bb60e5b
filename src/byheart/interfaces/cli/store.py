"""Open the store of a command."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import byheart
from byheart.interfaces.cli.verb import Invocation
from byheart.settings import Settings, load_settings

if TYPE_CHECKING:  # keeps numpy out of the import of the help
    from byheart.store import MemoryStore


def overrides(invocation: Invocation) -> Mapping[str, object]:
    """Return the settings that were given as flags."""
    return {"db_path": invocation.db, "space": invocation.space}


def settings_of(invocation: Invocation, **flags: object) -> Settings:
    """Read the settings, including flags, and configure logging."""
    settings = load_settings({**overrides(invocation), **flags})
    level = "debug" if invocation.debug else settings.log_level
    configure_logging(settings, level.upper())
    return settings


def configure_logging(settings: Settings, level: str | int) -> None:
    """Write the log to the file of the settings, or to stderr."""
    logging.basicConfig(
        level=level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        **({"filename": settings.log_file} if settings.log_file else {"stream": sys.stderr}),
    )


def open_store(invocation: Invocation) -> MemoryStore:
    """Open the store; refuse a missing one, whose path may be mistyped."""
    return byheart.open(settings=settings_of(invocation), create=False)


def whole_id(store: MemoryStore, name: str) -> str:
    """Return the id of the memory that a user named by its first letters."""
    return store.admin.complete_id(name)


def shown_ids(store: MemoryStore, memory_ids: Sequence[str]) -> Mapping[str, str]:
    """Shorten ids for people; programs that read a pipe get them whole."""
    if not sys.stdout.isatty():
        return {each: each for each in memory_ids}
    return store.admin.short_ids(memory_ids)
