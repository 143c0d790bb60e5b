"""Every error Byheart raises.

ByheartError                     what happened, and what to do next
├── InvalidInput                 the caller's value is not allowed; nothing was written
│   ├── QuerySyntaxError         a raw query is not valid FTS5 syntax
│   ├── SettingsError            a setting is unknown or has a bad value
│   └── TooManyChunks            a text becomes more chunks than one text may have
├── NotFound                     no such memory, chunk or session
├── Conflict                     another memory stands in the way; nothing was written
│   └── VersionConflict          somebody else changed the memory since it was read
├── Unreadable                   a file or folder cannot be read; the others are
│   └── NotText                  a file is binary, or a secret key
├── EmbeddingError               text could not be turned into vectors
│   ├── EmbedderUnavailable      the provider is not there (not installed, not reachable, no key)
│   └── ModelFilesError          the model's files are missing, damaged or not the ones pinned
└── StoreError                   the database could not do what was asked; the data is unchanged
    ├── StoreBusy                another process kept the write lock for too long
    ├── StoreDamaged             the file is not a database, or a corrupt one
    ├── StoreFull                no space left on the disk
    ├── StoreReadOnly            the store can be read but not written
    ├── StoreTooNew              written by a newer version of Byheart
    └── StoreUnreachable         the file or folder cannot be opened
"""

from __future__ import annotations


class ByheartError(Exception):
    """Say what happened (`message`) and what to do next (`hint`)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidInput(ByheartError):
    """Refuse a value that is not allowed."""


class QuerySyntaxError(InvalidInput):
    """Refuse a raw query, saying where it stops being valid."""

    def __init__(self, message: str, hint: str = "", position: int | None = None) -> None:
        super().__init__(message, hint)
        self.position = position


class SettingsError(InvalidInput):
    """Refuse a setting."""


class TooManyChunks(InvalidInput):
    """Refuse a text that becomes more chunks than one text may have; `content_hash` says which."""

    def __init__(self, message: str, hint: str = "", content_hash: str = "") -> None:
        super().__init__(message, hint)
        self.content_hash = content_hash


class NotFound(ByheartError):
    """Name something that is not in the store."""


class Conflict(ByheartError):
    """Refuse a change that another memory stands in the way of."""


class VersionConflict(Conflict):
    """Refuse a change that would overwrite what the caller has not seen."""


class Unreadable(ByheartError):
    """Report a file or folder that cannot be read, by its reason.

    It is so `for_now` if it may become readable without changing: a right, a disk, a program.
    """

    def __init__(self, message: str, hint: str = "", *, for_now: bool = False) -> None:
        super().__init__(message, hint)
        self.for_now = for_now


class NotText(Unreadable):
    """Report a file that holds nothing to remember."""


class EmbeddingError(ByheartError):
    """Report that text could not be turned into vectors."""


class EmbedderUnavailable(EmbeddingError):
    """Report that the provider is not there."""


class ModelFilesError(EmbeddingError):
    """Report missing, damaged or unexpected model files."""


class StoreError(ByheartError):
    """Report that the database could not do what was asked."""


class StoreBusy(StoreError):
    """Report that the write lock was not to be had in time."""


class StoreDamaged(StoreError):
    """Report a file that is not a sound database."""


class StoreFull(StoreError):
    """Report that the disk is full."""


class StoreReadOnly(StoreError):
    """Report a write to a store that can only be read."""


class StoreTooNew(StoreError):
    """Report a store from a newer version."""


class StoreUnreachable(StoreError):
    """Report a path that cannot be opened."""
