"""Count the transactions and statements of each verb, so that they cannot grow unnoticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import byheart
from byheart.storage.sqlite.connection import SqliteConnection
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder
from tests.empty_store import make_empty

# These statements begin and end transactions, or set and ask for what belongs to a connection.
_FRAME = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK", "PRAGMA")
_BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks.md"


class Cost(NamedTuple):
    """The transactions of a call, how many of them write, and the statements within them."""

    transactions: int
    writing: int
    statements: int


# No call may cost more. Each text is a short sentence that names one entity; each query finds two.
LIMITS = {
    "opening a store": Cost(1, 0, 3),
    "the first save of a store": Cost(5, 2, 46),
    "a save": Cost(4, 1, 32),
    "a save of the same text": Cost(2, 0, 3),
    "an update of a field": Cost(2, 1, 15),
    "an update of the title": Cost(3, 1, 28),
    "an update of the text": Cost(3, 1, 23),
    "a logged turn": Cost(4, 1, 19),
    "the first search of a process": Cost(2, 0, 13),
    "a search": Cost(1, 0, 4),
    "a recall": Cost(2, 1, 14),
    "a get": Cost(1, 0, 3),
}


class Counter:
    """Record the statements of all connections to stores that are opened while it listens."""

    def __init__(self) -> None:
        self._statements: list[str] = []

    def listen(self, connection: apsw.Connection) -> None:
        if isinstance(connection, SqliteConnection):  # not the ledger of the usage statistics
            connection.exec_trace = self._hear

    def _hear(self, _cursor: object, statement: str, _values: object) -> bool:
        self._statements.append(statement.strip())
        return True

    def count(self, call: Callable[[], object]) -> Cost:
        self._statements.clear()
        call()
        begun = [each for each in self._statements if each.startswith(("BEGIN", "SAVEPOINT"))]
        return Cost(
            len(begun),
            sum("IMMEDIATE" in each for each in begun),
            sum(not each.startswith(_FRAME) for each in self._statements),
        )


@pytest.fixture
def counter() -> Iterator[Counter]:
    counter = Counter()
    apsw.connection_hooks.append(counter.listen)
    yield counter
    apsw.connection_hooks.remove(counter.listen)


@pytest.fixture
def used(counter: Counter, open_store: OpenStore) -> MemoryStore:
    """Give a store of which everything that happens only once has happened."""
    store = open_store()
    store.save("Anna likes green tea in the morning.")
    store.save("Bruno prefers coffee after lunch.")
    store.recall("who likes tea")
    return store


def check(name: str, cost: Cost) -> None:
    limit = LIMITS[name]
    assert all(map(int.__le__, cost, limit)), f"{name} costs {cost}, the limit is {limit}"


def test_opening_a_store_takes_one_transaction(
    counter: Counter, open_store: OpenStore, path: Path
) -> None:
    make_empty(path)
    open_store().close()  # sets the journal mode of the copied file
    check("opening a store", counter.count(open_store))


def test_the_first_save_also_records_how_to_open_the_model(counter: Counter, path: Path) -> None:
    text = "Anna likes green tea in the morning."
    with byheart.open(path, embedding_provider="hash") as store:
        check("the first save of a store", counter.count(lambda: store.save(text)))


def test_a_save_prepares_looks_up_vectors_writes_and_compares(
    counter: Counter, used: MemoryStore
) -> None:
    check("a save", counter.count(lambda: used.save("Clara drinks water all day.")))


def test_a_save_of_the_same_text_writes_nothing(counter: Counter, used: MemoryStore) -> None:
    used.save("Clara drinks water all day.")
    cost = counter.count(lambda: used.save("Clara drinks water all day."))
    check("a save of the same text", cost)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("an update of a field", {"importance": 0.9}),
        ("an update of the title", {"title": "Drinks"}),
        ("an update of the text", {"content": "Clara drinks juice all day."}),
    ],
)
def test_an_update_reads_and_writes_and_looks_up_vectors_if_it_needs_them(
    counter: Counter, used: MemoryStore, name: str, fields: dict[str, object]
) -> None:
    memory_id = used.save("Clara drinks water all day.").memory_id
    check(name, counter.count(lambda: used.update(memory_id, **fields)))  # type: ignore[arg-type]


def test_a_changed_memory_is_read_in_the_transaction_that_changes_it(
    counter: Counter, used: MemoryStore
) -> None:
    """A connection that is lost after the commit must not report that nothing was written."""
    one, two = (used.save(f"Clara drinks {each}.").memory_id for each in ("water", "juice"))
    assert counter.count(lambda: used.pin(one)).transactions == 1
    assert counter.count(lambda: used.unpin(one)).transactions == 1
    used.forget(one)
    assert counter.count(lambda: used.restore(one)).transactions == 1
    # The history says before how the superseding that is undone had changed the memory.
    assert counter.count(lambda: used.supersede(one, by=two)).transactions <= 2


def test_a_turn_costs_a_save_and_a_look_at_the_length_of_its_session(
    counter: Counter, used: MemoryStore
) -> None:
    used.log("s1", "user", "What does Clara drink all day long?")
    cost = counter.count(lambda: used.log("s1", "user", "And what does Bruno drink after lunch?"))
    check("a logged turn", cost)


def test_the_first_search_asks_for_the_model_before_it_embeds(
    counter: Counter, used: MemoryStore, open_store: OpenStore
) -> None:
    other = open_store()
    cost = counter.count(lambda: other.search("who likes tea"))
    check("the first search of a process", cost)


def test_a_search_reads_once_and_leaves_its_note_to_a_thread(
    counter: Counter, used: MemoryStore
) -> None:
    check("a search", counter.count(lambda: used.search("who likes tea")))


def test_a_recall_reads_once_and_notes_what_it_gave(counter: Counter, used: MemoryStore) -> None:
    check("a recall", counter.count(lambda: used.recall("who likes tea")))


def test_a_get_reads_once(counter: Counter, used: MemoryStore) -> None:
    memory_id = used.save("Clara drinks water all day.").memory_id
    check("a get", counter.count(lambda: used.get(memory_id)))


def test_a_save_still_makes_vectors_that_others_lack(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)
    store.save("Anna likes green tea in the morning.")
    watched.down = True
    late = store.save("Bruno prefers coffee after lunch.")
    assert late.pending_vectors == 1
    watched.down = False
    similar = store.save("Bruno prefers a coffee after lunch.").similar
    assert store.status().index.pending_vectors == 0
    assert [each.memory_id for each in similar] == [late.memory_id]


def test_a_recall_notices_that_another_process_has_switched_the_model(
    used: MemoryStore, open_store: OpenStore
) -> None:
    other = open_store(embedder=WatchedEmbedder(32, "another"))
    other.admin.reembed()
    answer = used.recall("who likes tea")
    assert answer.degraded is not None
    assert "another" in answer.degraded


def test_the_documented_costs_are_the_limits() -> None:
    section = _BENCHMARKS.read_text(encoding="utf-8").split("## What one call costs")[1]
    section = section.split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \|", section, re.MULTILINE)
    assert {name: Cost(*map(int, numbers)) for name, *numbers in rows} == LIMITS
