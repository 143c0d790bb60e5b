"""Filters: which memories a verb means, from what the caller said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from byheart.model import checks as check
from byheart.model.memories import Filter, Match

_MATCHES: tuple[Match, ...] = ("any", "all")


class ContextFilters(TypedDict, total=False):
    """What a caller may say about memories that a session sees; left out means no restriction."""

    kind: str | Sequence[str] | None
    origin: str | Sequence[str] | None
    agent_id: str | None
    session_iter: int | str | None
    task_code: str | None
    tags: Sequence[str] | None
    entities: Sequence[str] | None
    match: str
    path: str | None
    min_importance: float | None
    created_after: datetime | str | None
    created_before: datetime | str | None
    as_of: datetime | str | None
    include_expired: bool
    space: str | None


class FilterFields(ContextFilters, total=False):
    """What a caller may say about the memories meant; left out means no restriction."""

    session_id: str | None
    include_global: bool


FILTER_FIELDS: tuple[str, ...] = (
    *ContextFilters.__annotations__,
    *("session_id", "include_global"),
)


def of_session(session_id: str | None, space: str) -> Filter:
    """Mean what belongs to a session itself, and nothing global."""
    return Filter(space, session_id=session_id, include_global=False)


def make_filter(given: Mapping[str, Any], default_space: str) -> Filter:
    """Build a filter from the fields given; a field that does not exist is refused."""
    check.check_names(given, FILTER_FIELDS, "filter")
    space = given.get("space")
    return Filter(
        space=default_space if space is None else check.check_label("space", space),
        session_id=check.check_optional_label("session_id", given.get("session_id")),
        include_global=check.check_bool("include_global", given.get("include_global", True)),
        kind=check.check_kinds(given.get("kind")),
        origin=check.check_origins(given.get("origin")),
        agent_id=check.check_optional_label("agent_id", given.get("agent_id")),
        session_iter=check.check_session_iter(given.get("session_iter")),
        task_code=check.check_optional_label("task_code", given.get("task_code")),
        tags=check.check_labels("tags", given.get("tags")),
        entities=check.check_labels("entities", given.get("entities")),
        match=check.check_choice("match", given.get("match", "any"), _MATCHES),
        path=check.check_optional_text("path", given.get("path"), check.LONGEST_PATH),
        min_importance=check.check_importance("min_importance", given.get("min_importance")),
        created_after=check.check_moment("created_after", given.get("created_after")),
        created_before=check.check_moment("created_before", given.get("created_before")),
        as_of=check.check_moment("as_of", given.get("as_of")),
        include_expired=check.check_bool("include_expired", given.get("include_expired", False)),
    )


def filter_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the filter's fields out of all that a verb was given."""
    return {name: value for name, value in given.items() if name in FILTER_FIELDS}
