"""Build filters from the fields that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.model import checks as check
from byheart.model.fields import FILTER_FIELDS as FILTER_FIELDS
from byheart.model.fields import FILTERS
from byheart.model.memories import ContextFilters as ContextFilters
from byheart.model.memories import Filter
from byheart.model.memories import FilterFields as FilterFields

# Computed once, because every search makes a filter.
_NOT_GIVEN = {
    name: asked.check(name, asked.default)
    for name, (asked, _) in FILTERS.items()
    if name != "space"
}


def of_session(session_id: str | None, space: str) -> Filter:
    """Select the memories of a session itself, without global ones."""
    return Filter(space, session_id=session_id, include_global=False)


def make_filter(given: Mapping[str, Any], default_space: str) -> Filter:
    """Build a filter from the fields given; a field that does not exist is refused."""
    check.check_names(given, FILTER_FIELDS, "filter")
    if given.get("space") is None:
        given = {**given, "space": default_space}
    checked = {name: FILTERS[name][0].check(name, value) for name, value in given.items()}
    return Filter(**_NOT_GIVEN | checked)
