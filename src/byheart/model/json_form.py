"""Turn value types into the JSON form that every interface shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from byheart.errors import Hint, Spelling, spell_hint


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
