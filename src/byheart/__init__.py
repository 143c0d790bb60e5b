"""Long-term memory for AI agents, on your own machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byheart.conversation.prompt import unquote
    from byheart.errors import ByheartError, Conflict, InvalidInput, NotFound
    from byheart.memory.batches import Progress
    from byheart.model import (
        ChunkHit,
        ContextAnswer,
        Hit,
        Memory,
        MemoryHit,
        RecallAnswer,
        SaveResult,
        SearchAnswer,
        SectionHit,
        to_wire,
    )
    from byheart.opening import open  # noqa: A004
    from byheart.settings import Settings, load_settings
    from byheart.store import MemoryStore

# Written out, because `importlib.metadata` takes about half as long to find it as all of
# `byheart --help`. `scripts/check_release.py` compares it with pyproject.toml.
__version__ = "0.1.0"

# Imported when first used: `byheart --help` needs none of them. Other nouns are in `byheart.model`,
# other errors in `byheart.errors`.
_HOMES = {
    "ByheartError": "byheart.errors",
    "ChunkHit": "byheart.model",
    "Conflict": "byheart.errors",
    "ContextAnswer": "byheart.model",
    "Hit": "byheart.model",
    "InvalidInput": "byheart.errors",
    "Memory": "byheart.model",
    "MemoryHit": "byheart.model",
    "MemoryStore": "byheart.store",
    "NotFound": "byheart.errors",
    "Progress": "byheart.memory.batches",
    "RecallAnswer": "byheart.model",
    "SaveResult": "byheart.model",
    "SearchAnswer": "byheart.model",
    "SectionHit": "byheart.model",
    "Settings": "byheart.settings",
    "load_settings": "byheart.settings",
    "open": "byheart.opening",
    "to_wire": "byheart.model",
    "unquote": "byheart.conversation.prompt",
}

__all__ = [
    "ByheartError",
    "ChunkHit",
    "Conflict",
    "ContextAnswer",
    "Hit",
    "InvalidInput",
    "Memory",
    "MemoryHit",
    "MemoryStore",
    "NotFound",
    "Progress",
    "RecallAnswer",
    "SaveResult",
    "SearchAnswer",
    "SectionHit",
    "Settings",
    "load_settings",
    "open",
    "to_wire",
    "unquote",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
