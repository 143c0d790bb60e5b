"""Turn value types into the JSON form that every interface shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from byheart.errors import Hint, Spelling, spell_hint

# Values of these very types are JSON values; a subclass of `str` may be a hint.
_PLAIN = frozenset((str, int, float, bool, type(None)))


@cache
def _field_names(noun: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(noun))


def to_wire(value: Any, spelling: Spelling = str) -> Any:
    """Turn value types into JSON values, in the one form that every interface shows.

    `spelling` spells the operations that remarks and hints name.
    """
    if type(value) in _PLAIN:  # the most frequent case
        return value
    if isinstance(value, str | int | float):
        return spell_hint(value, spelling) if isinstance(value, Hint) else value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        named = [(name, getattr(value, name)) for name in _field_names(type(value))]
        return {
            name: each if type(each) in _PLAIN else to_wire(each, spelling) for name, each in named
        }
    if isinstance(value, Mapping):
        return {str(key): to_wire(each, spelling) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(each, spelling) for each in value]
    return value
