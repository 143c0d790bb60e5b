"""The fields that verbs take by name, typed for callers: they agree with `model/fields.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict


class ContextFilters(TypedDict, total=False):
    """List the filters for memories that a session sees; a missing one restricts nothing."""

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
    """List all filters; a missing one restricts nothing."""

    session_id: str | None
    include_global: bool


class ChangedFields(TypedDict, total=False):
    """List the fields that `update` can change; a field that is not given stays as it is."""

    content: str
    kind: str
    title: str | None
    summary: str | None
    source: str
    session_id: str | None
    agent_id: str | None
    session_iter: int | str | None
    task_code: str | None
    tags: Iterable[str] | None
    entities: Iterable[str] | None
    importance: float | None
    ttl_days: float | None
    expires_at: datetime | str | None
    metadata: Mapping[str, Any] | None
    path: str | None
    origin: str | None
