"""Validity: a fact that ended is kept, says so, and stands below those that are true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from byheart.errors import InvalidInput
from byheart.model import MODES
from byheart.store import MemoryStore
from tests.clocks import Machine, on_machine
from tests.conftest import OpenStore
from tests.databases import database as database

PORT = "The server listens on port {}."


@pytest.fixture
def machine() -> Iterator[Machine]:
    with on_machine(Machine()) as machine:
        yield machine


def ids(store: MemoryStore, **asked: object) -> list[str]:
    return [hit.memory_id for hit in store.search("server port", **asked).results]  # type: ignore[arg-type]


def test_a_fact_that_ended_comes_last_and_says_so(store: MemoryStore) -> None:
    ended = store.save("The port of the server: port 8080.", valid_until="2024-03-01").memory_id
    later = store.save("The port of the server: 9090.", valid_from="2090-01-01").memory_id
    now = store.save("Our server has a port, and it is 8081.", valid_from="2024-03-01").memory_id
    for mode in MODES:
        found = ids(store, mode=mode)
        assert found[0] == now
        assert set(found[1:]) == {ended, later}
    hit = store.search("server port").results[1]
    assert (hit.valid_until or hit.valid_from) is not None
    assert store.recall("server port").details[0].id == now
    receipt = store.context("s", "server port").receipt
    assert [item.memory_id for item in receipt.items] == [now]


def test_as_of_asks_for_the_facts_that_were_true_then(store: MemoryStore) -> None:
    old = store.save(PORT.format(8080), valid_from="2023-01-01", valid_until="2024-03-01").memory_id
    new = store.save(PORT.format(8081), valid_from="2024-03-01").memory_id
    undated = store.save(PORT.format(8082)).memory_id
    assert ids(store, as_of="2023-06-01") == [old]
    assert ids(store, as_of="2024-06-01") == [new, old]
    assert set(ids(store)[:2]) == {new, undated}
    assert ids(store, as_of="2022-06-01") == []


def test_a_changed_beginning_counts_in_a_search_as_of_a_time(store: MemoryStore) -> None:
    memory_id = store.save(PORT.format(8080)).memory_id
    store.update(memory_id, valid_from="2023-01-01")
    assert ids(store, as_of="2023-06-01") == [memory_id]
    store.update(memory_id, valid_from=None)
    assert ids(store, as_of="2023-06-01") == []
    assert ids(store) == [memory_id]


def test_an_end_that_passes_takes_effect_at_its_moment(
    machine: Machine, open_store: OpenStore
) -> None:
    store = open_store()
    end = machine.now() + timedelta(hours=2)
    ending = store.save("The server port is 8080, the server port.", valid_until=end).memory_id
    other = store.save(PORT.format(8081)).memory_id
    assert ids(store) == [ending, other]
    machine.wait(hours=3)
    assert ids(store) == [other, ending]


def test_superseding_closes_the_old_memory_and_undoing_opens_it(store: MemoryStore) -> None:
    old = store.save(PORT.format(8080)).memory_id
    new = store.save(PORT.format(8081)).memory_id
    store.supersede(old, new)
    closed = store.get(old)
    assert closed.valid_until is not None
    assert ids(store) == [new, old]
    event = store.history(old)[-1]
    assert event.changes["valid_until"]["from"] is None
    store.supersede(old)
    assert store.get(old).valid_until is None
    assert set(ids(store)) == {old, new}


def test_a_superseded_memory_ends_when_its_successor_begins(store: MemoryStore) -> None:
    old = store.save(PORT.format(8080), valid_from="2023-01-01").memory_id
    new = store.save(PORT.format(8081), valid_from="2024-03-01").memory_id
    third = store.save(PORT.format(8082), valid_from="2023-09-01").memory_id
    store.supersede(old, new)
    assert store.get(old).valid_until == datetime(2024, 3, 1, tzinfo=UTC)
    store.supersede(old, third)
    assert store.get(old).valid_until == datetime(2023, 9, 1, tzinfo=UTC)
    store.supersede(old)
    assert store.get(old).valid_until is None


def test_undoing_gives_an_earlier_end_back(store: MemoryStore) -> None:
    old = store.save(PORT.format(8080), valid_until="2090-01-01").memory_id
    new = store.save(PORT.format(8081)).memory_id
    store.supersede(old, new)
    assert store.get(old).valid_until < datetime(2089, 1, 1, tzinfo=UTC)  # type: ignore[operator]
    store.supersede(old)
    assert store.get(old).valid_until == datetime(2090, 1, 1, tzinfo=UTC)
    store.supersede(old, new)
    store.update(old, valid_until="2021-01-01")
    store.supersede(old)
    assert store.get(old).valid_until == datetime(2021, 1, 1, tzinfo=UTC), "somebody chose this"


def test_a_pinned_fact_that_ended_is_left_out_of_prompts(store: MemoryStore) -> None:
    memory_id = store.save(PORT.format(8080), valid_until="2024-03-01").memory_id
    store.pin(memory_id)
    [left_out] = store.context("s").receipt.left_out
    assert (left_out.memory_id, left_out.reason) == (memory_id, "not valid")
    assert "2024-03-01" in left_out.tells


def test_a_validity_that_ends_before_it_begins_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="not after valid_from"):
        store.save("x", valid_from="2024-03-01", valid_until="2024-03-01")
    memory_id = store.save("x", valid_from="2024-03-01").memory_id
    with pytest.raises(InvalidInput, match="not after valid_from"):
        store.update(memory_id, valid_until="2023-01-01")


def test_exports_keep_validity(store: MemoryStore, open_store: OpenStore, tmp_path: Path) -> None:
    memory_id = store.save(
        PORT.format(8080), valid_from="2023-01-01", valid_until="2024-03-01"
    ).memory_id
    store.export(tmp_path / "all.jsonl")
    store.export(tmp_path / "vault", format="markdown")
    for number, source in enumerate(("all.jsonl", "vault")):
        other = open_store(tmp_path / f"{number}.db")
        other.import_(tmp_path / source)
        kept = other.get(memory_id)
        assert kept.valid_from == datetime(2023, 1, 1, tzinfo=UTC)
        assert kept.valid_until == datetime(2024, 3, 1, tzinfo=UTC)
