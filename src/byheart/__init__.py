"""Long-term memory for AI agents, on your own machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byheart.errors import (
        ByheartError,
        EmbedderUnavailable,
        EmbeddingError,
        InvalidInput,
        ModelFilesError,
        NotFound,
        QuerySyntaxError,
        SettingsError,
        StoreBusy,
        StoreDamaged,
        StoreError,
        StoreFull,
        StoreReadOnly,
        StoreTooNew,
        StoreUnreachable,
    )
    from byheart.memory_store import MemoryStore, Progress
    from byheart.model import (
        Chunk,
        ChunkHit,
        ChunkWindow,
        Explanation,
        Finding,
        Heading,
        Hit,
        IndexState,
        Memory,
        MemoryHit,
        MemoryPage,
        SaveResult,
        SearchAnswer,
        SectionHit,
        Session,
        Status,
        WrittenFile,
        to_wire,
    )
    from byheart.opening import open  # noqa: A004
    from byheart.settings import Settings, load_settings

# Where each name lives. They are imported when first used: `byheart --help` needs none of them, and
# numpy alone takes a tenth of a second.
_HOMES = {
    "ByheartError": "byheart.errors",
    "Chunk": "byheart.model",
    "ChunkHit": "byheart.model",
    "ChunkWindow": "byheart.model",
    "EmbedderUnavailable": "byheart.errors",
    "EmbeddingError": "byheart.errors",
    "Explanation": "byheart.model",
    "Finding": "byheart.model",
    "Heading": "byheart.model",
    "Hit": "byheart.model",
    "IndexState": "byheart.model",
    "InvalidInput": "byheart.errors",
    "Memory": "byheart.model",
    "MemoryHit": "byheart.model",
    "MemoryPage": "byheart.model",
    "MemoryStore": "byheart.memory_store",
    "ModelFilesError": "byheart.errors",
    "NotFound": "byheart.errors",
    "Progress": "byheart.memory_store",
    "QuerySyntaxError": "byheart.errors",
    "SaveResult": "byheart.model",
    "SearchAnswer": "byheart.model",
    "SectionHit": "byheart.model",
    "Session": "byheart.model",
    "Settings": "byheart.settings",
    "SettingsError": "byheart.errors",
    "Status": "byheart.model",
    "StoreBusy": "byheart.errors",
    "StoreDamaged": "byheart.errors",
    "StoreError": "byheart.errors",
    "StoreFull": "byheart.errors",
    "StoreReadOnly": "byheart.errors",
    "StoreTooNew": "byheart.errors",
    "StoreUnreachable": "byheart.errors",
    "WrittenFile": "byheart.model",
    "load_settings": "byheart.settings",
    "open": "byheart.opening",
    "to_wire": "byheart.model",
}

__all__ = [
    "ByheartError",
    "Chunk",
    "ChunkHit",
    "ChunkWindow",
    "EmbedderUnavailable",
    "EmbeddingError",
    "Explanation",
    "Finding",
    "Heading",
    "Hit",
    "IndexState",
    "InvalidInput",
    "Memory",
    "MemoryHit",
    "MemoryPage",
    "MemoryStore",
    "ModelFilesError",
    "NotFound",
    "Progress",
    "QuerySyntaxError",
    "SaveResult",
    "SearchAnswer",
    "SectionHit",
    "Session",
    "Settings",
    "SettingsError",
    "Status",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnreachable",
    "WrittenFile",
    "load_settings",
    "open",
    "to_wire",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
