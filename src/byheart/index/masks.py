"""Compile filters to masks over the arrays of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from byheart.index.columns import NEVER, NONE, Array, Codes, MemoryColumns
from byheart.model import Filter
from byheart.model.fields import FILTERS
from byheart.model.times import to_micros
from byheart.startup.late_numpy import NDArray, np

Mask = NDArray["np.bool_"]


def compare_columns(
    rows: MemoryColumns, codes: Mapping[str, Codes], where: Filter
) -> Iterator[Mask]:
    """Give a mask for each filter that compares one array with a given value."""
    for name, array, compare in _COMPARED:
        given = getattr(where, name)
        if given is not None and given != ():
            yield compare(getattr(rows, array), given, codes.get(array), where)


def _is_session(column: Array, given: str, codes: Codes, where: Filter) -> Mask:
    inside = _equals(column, given, codes, where)
    return inside | (column == NONE) if where.include_global else inside


def _has_scope(column: Array, given: str, _codes: object, _where: Filter) -> Mask:
    found: Mask = (column == NONE) == (given == "global")
    return found


def _is_any_of(column: Array, given: Sequence[str], codes: Codes, where: Filter) -> Mask:
    found: Mask = np.logical_or.reduce([_equals(column, each, codes, where) for each in given])
    return found


def _has_subtags(column: Array, given: str, codes: Codes, _where: Filter) -> Mask:
    tags = [code for tag, code in codes.numbers.items() if f"{tag}-".startswith(f"{given}-")]
    return np.isin(column, tags)


def _equals(column: Array, given: Any, codes: Codes | None, _where: Filter) -> Mask:
    found: Mask = column == (given if codes is None else codes.find(given))
    return found


def _at_least(column: Array, given: Any, _codes: object, _where: Filter) -> Mask:
    found: Mask = column >= (to_micros(given) if isinstance(given, datetime) else given)
    return found


def _below(column: Array, given: Any, _codes: object, _where: Filter) -> Mask:
    found: Mask = column < (to_micros(given) if isinstance(given, datetime) else given)
    return found


def _unset(column: Array, given: bool, _codes: object, _where: Filter) -> Mask:
    found: Mask = (column == NEVER) == given
    return found


_MASKS: Mapping[str, Callable[..., Mask]] = {
    "equals": _equals,
    "at_least": _at_least,
    "below": _below,
    "any_of": _is_any_of,
    "subtags": _has_subtags,
    "session": _is_session,
    "scope": _has_scope,
    "unset": _unset,
}
# The space is compared once for all searches of it.
_COMPARED = [
    (name, about.array, _MASKS[asked.operator])
    for name, (asked, about) in FILTERS.items()
    if about.array is not None and asked.operator in _MASKS and not asked.always
]
