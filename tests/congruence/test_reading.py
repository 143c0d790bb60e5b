"""The PostgreSQL store lists and reads what the SQLite store does."""

from __future__ import annotations

from random import Random

import pytest

from tests.congruence.conftest import EVERYTHING, Filled
from tests.congruence.made_store import SESSIONS, SPACES

_ODD_NAMES = ("none.md", "a\0b", "\\u0000", "\\\0", "b\U0010fffe", "\"'", "mem_1@2", "%", "é#0")


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> str:
    given: str = request.param
    return given


def test_memories_are_listed_in_the_same_order(filled: Filled, space: str) -> None:
    twins = filled.twins
    for filters in filled.filters:
        for forgotten in (False, True):
            for offset in (0, 7):
                twins.ask(
                    "list",
                    limit=1000 if EVERYTHING else 25,
                    offset=offset,
                    forgotten=forgotten,
                    space=space,
                    **filters,
                )
        twins.ask("search", granularity="coarse", space=space, **filters)


def test_memories_their_versions_and_histories_are_read_alike(filled: Filled, space: str) -> None:
    twins, known = filled.twins, filled.known
    chosen = known[space] if EVERYTHING else Random(1).sample(known[space], 60)
    for memory_id in chosen:
        twins.ask("get", memory_id, space=space)
        twins.ask("get", f"{memory_id}@1", space=space)
        history = twins.ask("history", memory_id, space=space)
        twins.ask("expand", f"{memory_id}#0", around=1, space=space)
        twins.ask("expand", f"{memory_id}#2", space=space)
        if len(history) > 1:
            twins.ask("get", f"{memory_id}@2", space=space)


def test_files_are_read_by_path_alike(filled: Filled, space: str) -> None:
    for name in ("src/a.py", "a.py", "draft [1].md", "docs/a_b.md", "docs/a_b.md:1", *_ODD_NAMES):
        filled.twins.ask("get", name, space=space)
        filled.twins.ask("expand", name, space=space)


def test_a_space_does_not_read_the_memories_of_another(filled: Filled) -> None:
    for space, ids in filled.known.items():
        for other in {*SPACES, "nowhere"} - {space}:
            for memory_id in ids[:3]:
                filled.twins.ask("get", memory_id, space=other)
                filled.twins.ask("history", memory_id, space=other)


def test_sessions_are_the_same(filled: Filled, space: str) -> None:
    twins = filled.twins
    for agent in (None, "a", "z"):
        twins.do("sessions.list", agent, space=space)
    for session in (*SESSIONS, None, "none"):
        twins.ask("sessions.stats", session, space=space)
    for session in (*SESSIONS, "none"):
        for latest in (False, True):
            twins.ask(
                "sessions.transcript", session, limit=15, offset=3, latest=latest, space=space
            )
        twins.ask("sessions.transcript", session, role="tool", space=space)
        twins.ask("sessions.resume", session, space=space)
        twins.ask("sessions.resume", session, task_code="T1", space=space)
        twins.ask("sessions.forget", session, space=space)


def test_entities_are_the_same(filled: Filled, space: str) -> None:
    for prefix in (None, "a", "A", "b\U0010fffe", "東", "É", "_"):
        for offset in (0, 2):
            filled.twins.do("entities.list", prefix, limit=30, offset=offset, space=space)


def test_the_figures_of_the_stores_are_the_same(filled: Filled) -> None:
    for space in (*SPACES, "nowhere"):
        filled.twins.do("status", space=space)
        filled.twins.do("admin.dedupe", space=space)


def test_the_stores_were_not_empty(filled: Filled) -> None:
    """The comparisons say something: there are memories of every sort."""
    twins = filled.twins
    for space in SPACES:
        state = twins.do("status", space=space).index
        assert state.chunks > 150
        assert state.pending_vectors == 0
        assert twins.do("list", forgotten=True, space=space).total >= 3
    for filters in filled.filters:
        found = [twins.do("list", space=space, **filters).total for space in SPACES]
        assert any(found), filters
