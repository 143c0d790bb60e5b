"""A filter as SQL: the same meaning as `View.allowed`, for listings and for what columns lack."""

from __future__ import annotations

import re

from byheart.model import Filter
from byheart.model.times import to_micros

_GLOB_SIGNS = re.compile(r"[*?\[]")


def where_clause(where: Filter, now: int) -> tuple[str, list[object]]:
    """Say which rows of `memories m` a filter lets through."""
    clauses = [f"m.forgotten_at IS {'NOT ' if where.forgotten else ''}NULL", "m.space = ?"]
    values: list[object] = [where.space]
    parts: list[tuple[str, list[object]]] = []
    if where.session_id is not None:
        glob = " OR m.session_id IS NULL" if where.include_global else ""
        parts.append((f"(m.session_id = ?{glob})", [where.session_id]))
    if where.kind:
        parts.append((f"m.kind IN ({_marks(where.kind)})", list(where.kind)))
    if where.origin:
        parts.append((f"m.origin IN ({_marks(where.origin)})", list(where.origin)))
    parts.extend(
        (f"m.{column} = ?", [getattr(where, column)])
        for column in ("agent_id", "session_iter", "task_code")
        if getattr(where, column) is not None
    )
    if where.min_importance is not None:
        parts.append(("m.importance >= ?", [where.min_importance]))
    parts.extend(_times(where, now))
    parts.extend((f"m.memory_no IN ({query})", list(each)) for query, each in subqueries(where))
    for clause, each in parts:
        clauses.append(clause)
        values.extend(each)
    return " AND ".join(clauses), values


def _times(where: Filter, now: int) -> list[tuple[str, list[object]]]:
    parts: list[tuple[str, list[object]]] = []
    if where.created_after is not None:
        parts.append(("m.created_at >= ?", [to_micros(where.created_after)]))
    if where.created_before is not None:
        parts.append(("m.created_at < ?", [to_micros(where.created_before)]))
    if where.as_of is not None:
        now = to_micros(where.as_of)
        parts.append(
            ("m.since_at <= ? AND (m.replaced_at IS NULL OR m.replaced_at > ?)", [now, now])
        )
    else:
        parts.append(("m.replaced_at IS NULL", []))
    if where.superseded is not None:
        superseded = "m.superseded_at IS NOT NULL AND m.superseded_at <= ?"
        parts.append((superseded if where.superseded else f"NOT ({superseded})", [now]))
    if not where.include_expired:
        parts.append(("(m.expires_at IS NULL OR m.expires_at > ?)", [now]))
    return parts


def subqueries(where: Filter) -> list[tuple[str, tuple[object, ...]]]:
    """List the queries whose memories must all contain a hit: tags, entities, path."""
    queries: list[tuple[str, tuple[object, ...]]] = []
    if where.tags:
        names = tuple(dict.fromkeys(where.tags))
        query = f"SELECT memory_no FROM tags WHERE tag IN ({_marks(names)})"
        queries.append((query + _having(where, len(names)), names))
    if where.entities:
        queries.append(_about(where))
    if where.path is not None:
        patterns = _path_patterns(where.path)
        globs = " OR ".join(["path GLOB ?"] * len(patterns))
        queries.append(
            (
                f"SELECT memory_no FROM memories WHERE space = ? AND ({globs})",
                (where.space, *patterns),
            )
        )
    return queries


def _path_patterns(path: str) -> list[str]:
    """Read a path filter: a relative one is looked for below any folder, a folder is all in it.

    What looks like a pattern may be the name of a file as it stands: `draft [1].md`.
    """
    path = path.removeprefix("./")
    spellings = dict.fromkeys((path, _GLOB_SIGNS.sub(r"[\g<0>]", path)))
    patterns = [
        pattern
        for each in spellings
        for pattern in ([f"{each}*"] if path.endswith("/") else [each, f"{each}/*"])
    ]
    anchored = path.startswith(("/", "*", "~")) or path[1:3] == ":/"
    return patterns if anchored else [*patterns, *(f"*/{each}" for each in patterns)]


def _about(where: Filter) -> tuple[str, tuple[object, ...]]:
    """Ask for the memories about entities, each under any of its spellings."""
    keys = tuple(dict.fromkeys(name.casefold() for name in where.entities))
    query = (
        "WITH named AS MATERIALIZED ("
        f"SELECT key, entity_no FROM entities WHERE space = ? AND key IN ({_marks(keys)}) UNION "
        f"SELECT key, entity_no FROM entity_aliases WHERE space = ? AND key IN ({_marks(keys)})) "
        "SELECT memory_no FROM memory_entities WHERE entity_no IN (SELECT entity_no FROM named)"
    )
    if where.match == "all":
        # Two spellings of one entity ask for it once; one that nothing is named asks in vain.
        query += (
            " GROUP BY memory_no HAVING count(*) = (SELECT count(DISTINCT entity_no) FROM named) "
            f"AND (SELECT count(*) FROM named) = {len(keys)}"
        )
    return query, (where.space, *keys) * 2


def _having(where: Filter, count: int) -> str:
    return f" GROUP BY memory_no HAVING count(*) = {count}" if where.match == "all" else ""


def _marks(values: tuple[object, ...]) -> str:
    return ", ".join("?" * len(values))
