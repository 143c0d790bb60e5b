"""The counts kept with the memories agree with the memories, whatever was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from byheart import MemoryStore
from tests.clocks import Machine, on_machine
from tests.conftest import OpenStore
from tests.databases import database as database

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"kind": "fact"},
    {"kind": ["fact", "note", "nothing"]},
    {"scope": "global"},
    {"scope": "session", "kind": "fact"},
    {"session_id": "s1"},
    {"session_id": "s1", "include_global": False},
    {"session_id": "s1", "kind": "note"},
    {"session_id": "unknown"},
    {"include_expired": True},
    {"include_expired": True, "kind": "fact"},
    {"agent_id": "anna"},
    {"tags": ["red"]},
    {"tags": ["red", "blue"]},
    {"tags": ["red", "blue"], "match": "all"},
    {"tags": ["red"], "kind": "fact", "scope": "global"},
    {"tags": ["unknown"]},
    {"entities": ["Marie Curie"]},
    {"entities": ["Marie Curie"], "tags": ["blue"]},
    {"path": "docs/"},
    {"path": "/home/docs/2.md"},
    {"path": "docs/", "tags": ["red"], "include_expired": True},
    {"language": "de"},
    {"origin": "agent"},
    {"forgotten": True},
)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with on_machine(Machine()) as machine:
        yield machine


def check_totals(*stores: MemoryStore) -> None:
    """Compare each total, told with a page of one memory, with the memories of a whole page."""
    for store in stores:
        for space in ("default", "other"):
            for given in FILTERS:
                whole = store.list(limit=1000, space=space, **given)
                assert not whole.has_more
                one = store.list(limit=1, space=space, **given)
                assert one.total == len(whole.memories), (space, given)
        assert all(each.ok for each in store.admin.doctor() if each.check == "memory counts")


def test_totals_follow_every_change_of_memories(open_store: OpenStore, machine: Machine) -> None:
    store, another = open_store(), open_store()
    check_totals(store)
    saved = store.save_many(
        {
            "content": f"text {number}",
            "kind": "fact" if number % 3 else "note",
            "session_id": "s1" if number % 2 else None,
            "agent_id": "anna" if number % 5 else None,
            "tags": ["red", "blue"][number % 2 :] if number % 4 else (),
            "entities": ["Marie Curie"] if number % 3 else ["Paris"],
            "path": f"/home/docs/{number}.md" if number % 3 else None,
            "language": "de" if number % 4 else "en",
            "ttl_days": 1 if number in (3, 4, 6) else None,
        }
        for number in range(12)
    )
    names = [each.memory_id for each in saved]
    store.save("elsewhere", space="other", kind="fact")
    store.log("s1", "user", "said in a session")
    check_totals(store, another)
    store.update(names[0], kind="fact")
    another.update(names[1], content="another text")
    store.update(names[3], tags=["blue"], entities=["Paris"], language="de")
    check_totals(store, another)
    store.forget(names[2])
    store.forget(names[5], hard=True)
    check_totals(store, another)
    store.restore(names[2])
    store.supersede(names[7], by=names[8])
    check_totals(store, another)
    machine.wait(days=2)  # three memories expire, and no transaction tells
    check_totals(store, another)
    store.admin.cleanup(dry_run=False)
    machine.wait(days=60)
    store.save("this save erases some of what has expired")
    check_totals(store, another)
    store.sessions.forget("s1", hard=True, dry_run=False)
    check_totals(store, another)


def test_a_transaction_that_fails_changes_no_count(store: MemoryStore) -> None:
    memory_id = store.save("kept").memory_id

    def remove_and_fail() -> None:
        with store._storage.writing(store.space) as writer:
            [held] = writer.memories.held([memory_id], store.space)
            writer.memories.remove_text(held.memory_no)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        remove_and_fail()
    check_totals(store)
    assert store.list(limit=1).total == 1


@pytest.mark.parametrize("database", ["postgres"])
def test_a_statement_changes_each_count_once(store: MemoryStore) -> None:
    store.save_many({"content": f"text {number}"} for number in range(50))
    changes = (
        "SELECT n_tup_upd FROM pg_stat_xact_user_tables "
        "WHERE relid = CAST('memory_counts' AS regclass)"
    )
    with store._storage._backend.writing(store.space) as connection:  # type: ignore[attr-defined]
        before = connection.get(changes)
        connection.run("UPDATE memories SET forgotten_at = 1 WHERE memory_no % 2 = 0")
        assert connection.get(changes) == before + 1
    assert store.list(limit=1).total == 25
    check_totals(store)
