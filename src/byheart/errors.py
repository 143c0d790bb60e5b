"""Define every error that Byheart raises.

ByheartError                     what happened, and what to do next
├── InvalidInput                 the caller's value is not allowed; nothing was written
│   ├── QuerySyntaxError         a raw query is not valid FTS5 syntax
│   ├── SettingsError            a setting is unknown or has a bad value
│   └── TooManyChunks            a text becomes more chunks than one text may have
├── NotFound                     no such memory, chunk or session
├── Conflict                     another memory prevents the change; nothing was written
│   └── VersionConflict          another caller changed the memory after it was read
├── Unreadable                   a file or folder cannot be read; the other files are
│   └── NotText                  a file is binary, or a secret key
├── EmbeddingError               text could not be turned into vectors
│   ├── EmbedderUnavailable      the provider is unavailable (not installed, not reachable, no key)
│   └── ModelFilesError          the model's files are missing, damaged or not the pinned ones
└── StoreError                   the database could not do the operation; the data is unchanged
    ├── StoreBusy                another process kept the write lock for too long
    ├── StoreDamaged             the file is no database, or a corrupt one
    ├── StoreFull                no space left on the disk
    ├── StoreReadOnly            the store can be read but not written
    ├── StoreTooNew              written by a newer version of Byheart
    └── StoreUnreachable         the file or folder cannot be opened
"""

from __future__ import annotations


class ByheartError(Exception):
    """Report what happened (`message`) and what to do next (`hint`)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidInput(ByheartError):
    """Refuse a value that is not allowed."""


class QuerySyntaxError(InvalidInput):
    """Refuse a raw query; `position` is where its syntax becomes invalid."""

    def __init__(self, message: str, hint: str = "", position: int | None = None) -> None:
        super().__init__(message, hint)
        self.position = position


class SettingsError(InvalidInput):
    """Refuse an unknown setting or a bad value."""


class TooManyChunks(InvalidInput):
    """Refuse a text that has too many chunks; `content_hash` identifies the text."""

    def __init__(self, message: str, hint: str = "", content_hash: str = "") -> None:
        super().__init__(message, hint)
        self.content_hash = content_hash


class NotFound(ByheartError):
    """Report a memory, chunk or session that is not in the store."""


class Conflict(ByheartError):
    """Refuse a change that another memory prevents."""


class VersionConflict(Conflict):
    """Refuse a change that would overwrite a version that the caller has not seen."""


class Unreadable(ByheartError):
    """Report a file or folder that cannot be read, with the reason.

    `for_now` means that the file may become readable without a change to it, for example if a
    permission, a disk or a missing program was the reason.
    """

    def __init__(self, message: str, hint: str = "", *, for_now: bool = False) -> None:
        super().__init__(message, hint)
        self.for_now = for_now


class NotText(Unreadable):
    """Report a file that is binary or a secret key, and so has no text to remember."""


class EmbeddingError(ByheartError):
    """Report that text could not be turned into vectors."""


class EmbedderUnavailable(EmbeddingError):
    """Report that the embedding provider is unavailable."""


class ModelFilesError(EmbeddingError):
    """Report missing, damaged or unexpected model files."""


class StoreError(ByheartError):
    """Report that a database operation failed."""


class StoreBusy(StoreError):
    """Report that the write lock was not available in time."""


class StoreDamaged(StoreError):
    """Report a file that is no database, or a corrupt one."""


class StoreFull(StoreError):
    """Report that the disk is full."""


class StoreReadOnly(StoreError):
    """Report a write to a read-only store."""


class StoreTooNew(StoreError):
    """Report a store that a newer version of Byheart has written."""


class StoreUnreachable(StoreError):
    """Report a file or folder that cannot be opened."""
