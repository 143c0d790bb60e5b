"""Open the store of a command."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import byheart
from byheart.errors import StoreUnreachable
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
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        **({"filename": settings.log_file} if settings.log_file else {"stream": sys.stderr}),
    )
    return settings


def open_store(invocation: Invocation) -> MemoryStore:
    """Open the store."""
    settings = settings_of(invocation)
    check_store(settings, create=False)
    return byheart.open(settings=settings)


def check_store(settings: Settings, *, create: bool) -> None:
    """Raise if the store does not exist and must not be created: the path may be mistyped."""
    if not create and "://" not in settings.db_path and not Path(settings.db_path).exists():
        raise StoreUnreachable(
            f"there is no store at {settings.db_path}",
            "check the path, or make one with: byheart save TEXT",
        )
