"""Define API keys, and the JSON form of all value types at every interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from byheart.errors import Hint, Spelling, spell_hint

Access = Literal["read", "write"]

ACCESSES: tuple[Access, ...] = ("read", "write")


@dataclass(frozen=True, slots=True)
class Token:
    """An API key: the space that it opens for network access, and how much it may do there.

    `last_used_at` is exact to a minute.
    """

    token_id: str
    name: str
    access: Access
    space: str
    session_id: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new API key with its secret, which is not stored and cannot be shown again."""

    token: Token
    secret: str


@cache
def _field_names(noun: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(noun))


def to_wire(value: Any, spelling: Spelling = str) -> Any:
    """Turn value types into JSON values, in the one form that every interface shows.

    `spelling` spells the operations that remarks and hints name.
    """
    if value is None or isinstance(value, str | int | float):  # the most frequent case
        return spell_hint(value, spelling) if isinstance(value, Hint) else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_wire(getattr(value, name), spelling) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_wire(each, spelling) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(each, spelling) for each in value]
    return value
