"""Write a filter as SQL, which selects the same memories as `View.select` does with arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from byheart.model import Filter
from byheart.model.fields import FILTERS
from byheart.model.spellings import spelling_key
from byheart.model.times import to_micros
from byheart.startup.late_patterns import late_pattern

_Part = tuple[str, list[object]]
_Query = tuple[str, tuple[object, ...]]
_Writer = Callable[[str, Any, Filter], _Part]

_ANCHORS = ("/", "~")
_GLOB_SIGNS = late_pattern(r"[*?\[]")


def where_clause(where: Filter, now: int) -> tuple[str, list[object]]:
    """Say which rows of `memories m` a filter lets through."""
    clauses = [f"m.forgotten_at IS {'NOT ' if where.forgotten else ''}NULL"]
    values: list[object] = []
    parts = [*_comparisons(where), *_times(where, now)]
    parts.extend((f"m.memory_no IN ({query})", list(each)) for query, each in subqueries(where))
    for clause, each in parts:
        clauses.append(clause)
        values.extend(each)
    return " AND ".join(clauses), values


def _comparisons(where: Filter) -> Iterator[_Part]:
    """Compile the filters that compare one column with what was given."""
    for name, column, write in _COMPARED:
        given = getattr(where, name)
        if given is not None and given != ():
            yield write(f"m.{column}", given, where)


def _session(column: str, given: object, where: Filter) -> _Part:
    glob = f" OR {column} IS NULL" if where.include_global else ""
    return f"({column} = ?{glob})", [given]


def _any_of(column: str, given: Any, _where: Filter) -> _Part:
    return f"{column} IN ({_marks(given)})", list(given)


def _subtags(column: str, given: Any, _where: Filter) -> _Part:
    # The sign behind "-" ends the range of tags that begin with the one given.
    return f"({column} = ? OR {column} >= ? AND {column} < ?)", [given, f"{given}-", f"{given}."]


def _scope(column: str, given: object, _where: Filter) -> _Part:
    return f"{column} IS {'' if given == 'global' else 'NOT '}NULL", []


def _unset(column: str, given: object, _where: Filter) -> _Part:
    return f"{column} IS {'' if given else 'NOT '}NULL", []


def _compared_by(sign: str) -> _Writer:
    def write(column: str, given: object, _where: Filter) -> _Part:
        value = to_micros(given) if isinstance(given, datetime) else given
        return f"{column} {sign} ?", [value]

    return write


_WRITERS: Mapping[str, _Writer] = {
    "equals": _compared_by("="),
    "at_least": _compared_by(">="),
    "below": _compared_by("<"),
    "any_of": _any_of,
    "subtags": _subtags,
    "session": _session,
    "scope": _scope,
    "unset": _unset,
}
# The space comes first: most indexes of the database begin with it.
_COMPARED = [
    (name, field.name, _WRITERS[asked.operator])
    for name, (asked, field) in sorted(FILTERS.items(), key=lambda item: not item[1][0].always)
    if asked.operator in _WRITERS
]


# Another memory superseded it; or it ended, or has not begun, at the moment in question.
_OUTDATED = (
    "(m.superseded_at IS NOT NULL AND m.superseded_at <= ? OR "
    "m.valid_until IS NOT NULL AND m.valid_until <= ? OR "
    "m.valid_from IS NOT NULL AND m.valid_from > ?)"
)


def _times(where: Filter, now: int) -> list[_Part]:
    """Compile what decides whether a text is valid: replaced, superseded, expired."""
    parts: list[_Part] = []
    if where.as_of is not None:
        now = to_micros(where.as_of)
        parts.append(
            ("m.since_at <= ? AND (m.replaced_at IS NULL OR m.replaced_at > ?)", [now, now])
        )
    else:
        parts.append(("m.replaced_at IS NULL", []))
    if where.superseded is not None:
        parts.append((_OUTDATED if where.superseded else f"NOT {_OUTDATED}", [now] * 3))
    if not where.include_expired:
        parts.append(("(m.expires_at IS NULL OR m.expires_at > ?)", [now]))
    return parts


def subqueries(where: Filter) -> list[_Query]:
    """List the queries whose memories must all contain a hit: tags, entities, path, metadata."""
    return [*_asked_for(("labels", "path", "pairs"), where)]


def labelled(where: Filter) -> list[_Query]:
    """List queries that an index answers by reading their memories' entries and no others.

    Each lists the memories with some labels or below a folder. If a path has to be compared with
    all paths, the memories that have a path are listed instead.
    """
    queries = [*_asked_for(("labels",), where)]
    if where.path is not None:
        named = _folder(where.path) is not None
        queries.append(_under_path(where.path, where) if named else (_PATHS, (where.space,)))
    return queries


def _asked_for(operators: Sequence[str], where: Filter) -> Iterator[_Query]:
    for name, operator, write in _SUBQUERIES:
        if operator in operators and getattr(where, name) not in (None, ()):
            yield write(getattr(where, name), where)


def _tagged(given: Sequence[str], where: Filter) -> _Query:
    names = tuple(dict.fromkeys(given))
    query = f"SELECT memory_no FROM tags WHERE tag IN ({_marks(names)})"
    return query + _having(where, len(names)), names


# SQLite reads the paths of an index, which has no memories without one.
_PATHS = "SELECT memory_no FROM memories WHERE space = ? AND path IS NOT NULL"


def _under_path(given: str, where: Filter) -> _Query:
    folder = _folder(given)
    if folder is not None:
        # The sign behind "/" ends the range of paths in a folder.
        below = (where.space, f"{folder}/", f"{folder}0")
        query = f"{_PATHS} AND path >= ? AND path < ?"
        if given.endswith("/"):
            return query, below
        # One condition with OR would compare all paths.
        return f"{_PATHS} AND path = ? UNION ALL {query}", (where.space, folder, *below)
    patterns = _path_patterns(given)
    globs = " OR ".join(["glob(?, path)"] * len(patterns))
    return f"{_PATHS} AND ({globs})", (where.space, *patterns)


def _folder(path: str) -> str | None:
    """Give the folder or file that a path filter names exactly, without its final slash."""
    anchored = path.startswith(_ANCHORS) or path[1:3] == ":/"
    return path.removesuffix("/") if anchored and not _GLOB_SIGNS.search(path) else None


def _path_patterns(path: str) -> list[str]:
    """Return the globs of a path filter: a relative path matches below any folder.

    A path that ends in a slash matches everything in that folder. A path that looks like a glob
    may also be a file's own name: `draft [1].md`.
    """
    path = path.removeprefix("./")
    spellings = dict.fromkeys((path, _GLOB_SIGNS.sub(r"[\g<0>]", path)))
    patterns = [
        pattern
        for each in spellings
        for pattern in ([f"{each}*"] if path.endswith("/") else [each, f"{each}/*"])
    ]
    anchored = path.startswith((*_ANCHORS, "*")) or path[1:3] == ":/"
    return patterns if anchored else [*patterns, *(f"*/{each}" for each in patterns)]


def _about(given: Sequence[str], where: Filter) -> _Query:
    """Ask for the memories about entities, each under any of its spellings."""
    keys = tuple(dict.fromkeys(spelling_key(name) for name in given))
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


def _with_pairs(given: Sequence[tuple[str, str]], where: Filter) -> _Query:
    """Ask for the memories whose metadata has all keys with these values."""
    query = "SELECT memory_no FROM memories WHERE space = ? AND metadata <> '{}'"
    values: list[object] = [where.space]
    for key, text in given:
        clause, compared = _is_value(text)
        pair = f"SELECT 1 FROM json_each(metadata) AS pair WHERE key = ? AND {clause}"
        query += f" AND EXISTS ({pair})"
        values += [key, *compared]
    return query, tuple(values)


def _is_value(text: str) -> _Part:
    """Compare a pair of an object with a value, which is given as JSON."""
    value = json.loads(text)
    if value is None or isinstance(value, bool):
        return "type = ?", [text]
    if isinstance(value, str):
        return "type = 'text' AND value = ?", [value]
    # Without the case, PostgreSQL would cast texts as well.
    number = "CASE WHEN type IN ('integer', 'real') THEN CAST(value AS NUMERIC) = ? END"
    return number, [value]


def _having(where: Filter, count: int) -> str:
    return f" GROUP BY memory_no HAVING count(*) = {count}" if where.match == "all" else ""


def _marks(values: tuple[object, ...]) -> str:
    return ", ".join("?" * len(values))


# Labels are in tables of their own, a path is a pattern, and metadata is an object.
_TABLES: Mapping[str, Callable[[Any, Filter], _Query]] = {
    "tags": _tagged,
    "entities": _about,
    "path": _under_path,
    "metadata": _with_pairs,
}
_SUBQUERIES = [
    (name, asked.operator, _TABLES[field.name])
    for name, (asked, field) in FILTERS.items()
    if asked.operator in ("labels", "path", "pairs")
]
