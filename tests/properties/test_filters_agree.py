"""A filter means the same as SQL and as masks over the arrays, for any filter and any rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import apsw
import numpy as np
import pytest

from byheart.index import masks
from byheart.index.columns import Codes
from byheart.model import Filter, Memory
from byheart.model.fields import FILTERS
from byheart.model.filters import make_filter
from byheart.storage.sql import filters as clauses
from byheart.storage.sql.filters import where_clause
from byheart.store import MemoryStore
from tests.clocks import Machine, on_machine

_ROWS, _FILTERS_TRIED = 120, 1500
_SPACES = ("home", "away")
# One value for each field that a save may or may not be given.
_GIVEN: dict[str, list[Any]] = {
    "kind": ["note", "fact", "report"],
    "session_id": [None, "s1", "s2"],
    "agent_id": [None, "a", "b"],
    "session_iter": [None, 0, 1, "v2"],
    "task_code": [None, "T1", "T2"],
    "tags": [None, ["red"], ["red", "blue"], ["blue"]],
    "entities": [[], ["Anna"], ["Anna", "Bob"], ["Bob", "anna"]],
    "path": [None, "src/a.py", "/home/x/src/b.py", "draft [1].md"],
    "importance": [None, 0, 5, 7.5],
    "language": [None, "de", "de-AT", "zh-Hant"],
    "origin": [None, "user", "agent", "tool", "file", "import"],
    "ttl_days": [None, None, 0.5, 40],
    "trusted": [None, True, False],
    "valid_from": [None, None, "2026-03-05", "2090-01-01"],  # some begin later
    "valid_until": [None, None, "2091-01-01"],
    "source": ["manual", "wiki", "mail"],
    "metadata": [
        *(None, {"n": 1}, {"n": 1.0, "x": "1"}, {"n": True}, {"n": "1"}, {"n": None, "x": 'a"b'}),
        *({"x": [1]}, {"x": {"n": 1}}, {"a.b": "deep", "$.n": 2.5}, {"n": 2**60 + 1, "x": "\0"}),
    ],
}
# Values that no row has.
_STRANGE: dict[str, Any] = {
    "kind": "message",
    "session_id": "s9",
    "agent_id": "z",
    "session_iter": 77,
    "task_code": "T9",
    "tags": "green",
    "entities": "Nobody",
    "path": "nowhere/*",
    "language": "zh",
    "source_label": "news",
}


@pytest.fixture
def machine() -> Iterator[Machine]:
    with on_machine(Machine()) as machine:
        yield machine


def fill(store: MemoryStore, machine: Machine, chance: random.Random) -> None:
    """Save memories of every sort, then change, supersede, forget and expire some of them."""
    saved: dict[str, list[str]] = {space: [] for space in _SPACES}
    for number in range(_ROWS):
        machine.wait(hours=chance.choice([1, 7]))
        space = chance.choice(_SPACES)
        given = {name: chance.choice(values) for name, values in _GIVEN.items()}
        kept = store.save(f"Text {number} of a memory.", space=space, **given)
        saved[space].append(kept.memory_id)
    for space, ids in saved.items():
        for at, memory_id in enumerate(ids):
            machine.wait(hours=1)
            if at % 5 == 0:
                store.update(memory_id, content=f"Another text {at} of it.", space=space)
            if at % 7 == 0 and at + 1 < len(ids):
                store.supersede(memory_id, ids[at + 1], space=space)
            if at % 11 == 0:
                store.forget(memory_id, space=space)


def make_up(chance: random.Random, memories: list[Memory], start: datetime) -> dict[str, Any]:
    """Make a filter of a few parts, with values that rows have and some that no row has."""
    given: dict[str, Any] = {}
    for name in chance.sample(list(FILTERS), chance.randint(0, 4)):
        asked, field = FILTERS[name]
        own = [getattr(memory, field.name) for memory in memories]
        values = [value for value in own if value is not None and value != ()]
        strange = [_STRANGE[name]] if name in _STRANGE else []
        if name in ("include_global", "include_expired") or asked.operator == "unset":
            given[name] = chance.choice([True, False])
        elif name == "match":
            given[name] = chance.choice(["any", "all"])
        elif name == "as_of":
            given[name] = start + timedelta(hours=chance.randint(-10, 900))
        elif name == "scope":
            given[name] = chance.choice(["session", "global"])
        elif asked.operator == "pairs":
            pairs = [pair for value in values for pair in value.items()]
            simple = [pair for pair in pairs if not isinstance(pair[1], dict | list)]
            picked = chance.sample(simple, chance.randint(1, 2))
            given[name] = dict([*picked, *([("missing", None)] if chance.random() < 0.1 else [])])
        elif asked.operator == "labels":
            labels = sorted({label for value in values for label in value}) + strange
            given[name] = chance.sample(labels, chance.randint(1, min(3, len(labels))))
        elif asked.operator == "path":
            given[name] = chance.choice([*values, *strange, "src/", "*.py", "/home", "/home/x/"])
        elif asked.operator == "any_of":
            given[name] = chance.sample(sorted({*values, *strange}), chance.randint(1, 2))
        else:
            given[name] = chance.choice([*values, *strange])
    return given


def found_by_sql(connection: Any, where: Filter, now: int) -> set[int]:
    clause, values = where_clause(where, now)
    rows = connection.execute(f"SELECT m.memory_no FROM memories m WHERE {clause}", values)
    return {row[0] for row in rows}


def found_by_masks(index: Any, where: Filter) -> set[int]:
    view = index._view
    slots = np.flatnonzero(index._select(where).chunks)
    return set(view.memories.memory_nos.take(view.chunks.owner.take(slots)).tolist())


def test_sql_and_masks_let_the_same_memories_through(store: MemoryStore, machine: Machine) -> None:
    chance = random.Random(20261)
    start = machine.now()
    fill(store, machine, chance)
    memories = [
        memory
        for space in _SPACES
        for memory in store.list(limit=1000, space=space, include_expired=True).memories
    ]
    narrowed: Counter[str] = Counter()
    with store._storage.searching("default") as reader:
        connection, now = reader._connection, reader._now  # type: ignore[attr-defined]
        for _ in range(_FILTERS_TRIED):
            given = make_up(chance, memories, start)
            where = replace(
                make_filter(given, chance.choice(_SPACES)),
                superseded=chance.choice([None, True, False]),
            )
            expected = found_by_sql(connection, where, now)
            assert found_by_masks(reader.index, where) == expected, where
            if expected:
                narrowed.update(given.keys())
    # Each filter was tried, and together with others still let something through.
    assert {name for name, count in narrowed.items() if count >= 10} == set(FILTERS)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("de", {"de", "de-AT", "de-x-own"}),
        ("de-AT", {"de-AT"}),
        ("d", set()),
        ("zh-Hant", {"zh-Hant", "zh-Hant-TW"}),
        ("fr", set()),
    ],
)
def test_subtags_are_compared_alike(given: str, found: set[str]) -> None:
    tags = ["de", "de-AT", "den", "de-x-own", "zh", "zh-Hans", "zh-Hant", "zh-Hant-TW", None]
    codes = Codes()
    column = np.array([codes.encode(tag) for tag in tags], np.int32)
    mask = masks._MASKS["subtags"](column, given, codes, Filter("home"))
    assert {tags[at] for at in np.flatnonzero(mask)} == found
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE texts (tag TEXT)")
    connection.executemany("INSERT INTO texts VALUES (?)", [(tag,) for tag in tags])
    clause, values = clauses._WRITERS["subtags"]("tag", given, Filter("home"))
    rows = connection.execute(f"SELECT tag FROM texts WHERE {clause}", values)
    assert {row[0] for row in rows} == found
