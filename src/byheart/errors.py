"""Define every error that Byheart raises, and the hints of errors.

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

A hint names operations as values (`Do`), so that each interface can spell them in its own way: as a
command, a request, a tool or a call.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Self


class Placeholder(str):
    """Stand for a value that the reader has to choose, such as a query."""

    __slots__ = ()


class Option:
    """Name a parameter of the call that failed, with the value that would help."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return f"{self.name}={_literal(self.value)}"


class Do:
    """Name an operation with its arguments; as a string, it is spelled for Python.

    `verb` is a method of `MemoryStore`, or a command without one, such as `model download`.
    """

    def __init__(self, verb: str, /, *values: object, **options: object) -> None:
        self.verb = verb
        self.values = values
        self.options = options

    @property
    def is_command(self) -> bool:
        """Tell whether only the command line has this operation."""
        return " " in self.verb

    def __str__(self) -> str:
        if self.is_command:
            return spell_shell(self.verb, self.values, self.options)
        given = [*map(_literal, self.values)]
        given += [str(Option(name, value)) for name, value in self.options.items()]
        return f"store.{self.verb}({', '.join(given)})"


class Private:
    """Hold a text for the owner of the store, and another one for callers over the network."""

    def __init__(self, text: str, instead: str) -> None:
        self.text = text
        self.instead = instead

    def __str__(self) -> str:
        return self.text


Step = Do | Option | Private
Spelling = Callable[[Step], str]


class Hint(str):
    """Hold a text that names operations; as a string, they are spelled for Python."""

    parts: tuple[str | Step, ...]

    def __new__(cls, *parts: str | Step) -> Self:
        """Join the parts; a part may be a hint itself."""
        hint = super().__new__(cls, "".join(map(str, parts)))
        flat: list[str | Step] = []
        for part in parts:
            flat += part.parts if isinstance(part, Hint) else (part,)
        hint.parts = tuple(flat)
        return hint

    def __add__(self, other: str) -> Hint:
        return Hint(self, other)

    def __radd__(self, other: str) -> Hint:
        return Hint(other, self)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts


def join_hints(separator: str, texts: Iterable[str | None]) -> Hint | None:
    """Join the texts that are not empty; return `None` if there is none."""
    parts: list[str] = []
    for text in filter(None, texts):
        parts += (separator, text) if parts else (text,)
    return Hint(*parts) if parts else None


def spell_hint(text: str, spelling: Spelling) -> str:
    """Spell the operations of a text for one interface."""
    if not isinstance(text, Hint):
        return text
    return "".join(part if isinstance(part, str) else spelling(part) for part in text.parts)


def name_store(location: str) -> Private:
    """Name a store in a message; callers over the network do not learn where it is."""
    return Private(location, "the store")


def spell_shell(command: str, values: Iterable[object], options: dict[str, object]) -> str:
    """Spell a command of the command line."""
    words = [
        str(value) if isinstance(value, Placeholder) else shlex.quote(str(value))
        for value in values
    ]
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(shlex.quote(str(value)))
    return " ".join(("byheart", command, *words))


def _literal(value: object) -> str:
    if isinstance(value, Placeholder):
        return value.lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


class ByheartError(Exception):
    """Report what happened (`message`) and what to do next (`hint`)."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        # The text of an error is often part of another one: a hint stays one.
        return Hint(self.message, " (", self.hint, ")") if self.hint else self.message


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
    """Report that a database operation failed.

    `undone` means that the database took the transaction back for a reason that may be gone the
    next time, such as a deadlock: nothing of it was committed.
    """

    undone = False


class StoreBusy(StoreError):
    """Report that the write lock was not available in time."""


class StoreDamaged(StoreError):
    """Report a file that is no database, or a corrupt one.

    `hint` may send the caller to the doctor; `remedy` is what the doctor itself answers.
    """

    def __init__(self, message: str, hint: str = "", remedy: str = "") -> None:
        super().__init__(message, hint)
        self.remedy = remedy


class StoreFull(StoreError):
    """Report that the disk is full."""


class StoreReadOnly(StoreError):
    """Report a write to a read-only store."""


class StoreTooNew(StoreError):
    """Report a store that a newer version of Byheart has written."""


class StoreUnreachable(StoreError):
    """Report a file or folder that cannot be opened."""
