"""Two stores that are told the same, one of each database, and whose answers are compared.

Both read the same clock, which stands still during a call, and make the same ids. So answers are
equal down to ids and times.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import ByheartError
from byheart.model import ids, to_wire
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address
from byheart.storage.postgres.backend import PostgresBackend, PostgresStorage
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from byheart.transfer.copying import Copier
from tests.clocks import Machine, on_machine
from tests.large_spaces import NONE_LOCAL, LargeSpaces

# Values that depend on the machine or on the database.
_OWN = (
    *("elapsed_ms", "receipt_id", "store", "schema_version", "size_bytes", "index_bytes"),
    "kept_in",
)


START = Machine().true_time


class StillMachine(Machine):
    """A machine on which no time passes during a call."""

    def now(self) -> datetime:
        """Read the wall clock."""
        return self.true_time + self.wrong_by


class Twins:
    """A SQLite store and, as soon as there is one, a PostgreSQL store."""

    def __init__(self, **stores: MemoryStore) -> None:
        self.stores = stores
        self.machine = StillMachine()
        self.compared = 0
        self._next_id = 0

    def do(self, verb: str, *given: Any, **named: Any) -> Any:
        """Call a verb of both stores, compare the answers, and give the one of SQLite."""
        answer = self.ask(verb, *given, **named)
        if isinstance(answer, ByheartError):
            raise answer
        return answer

    def ask(self, verb: str, *given: Any, **named: Any) -> Any:
        """Do the same with a call that may fail: both stores give the same error then."""
        self.machine.wait(minutes=1)
        before, answers = self._next_id, {}
        for name, store in self.stores.items():
            with self._same_ids(before):
                answers[name] = _answer(store, verb, given, named)
            # Notes about what was given are to be seen by the next call.
            store._storage.settle()
        ours, theirs = answers["sqlite"], answers.get("postgres")
        if "postgres" not in answers:
            return ours
        self.compared += 1
        differing = differences(as_json(ours), as_json(theirs))
        assert not differing, "\n".join([f"{verb}{given}{named} differ:", *differing[:10]])
        return ours

    @contextmanager
    def _same_ids(self, first: int) -> Iterator[None]:
        numbers, real = itertools.count(first), ids._new_id

        def new_id(prefix: str) -> str:
            self._next_id = next(numbers) + 1
            return f"{prefix}{self._next_id:026}"

        ids._new_id = new_id
        try:
            with on_machine(self.machine):
                yield
        finally:
            ids._new_id = real


def _answer(store: MemoryStore, verb: str, given: Any, named: Any) -> Any:
    """Give what a verb returns, or the error that it raises."""
    try:
        return operator.attrgetter(verb)(store)(*given, **named)
    except ByheartError as error:
        return error


def as_json(answer: Any) -> Any:
    """Give an answer in the form that interfaces show, without values of the machine."""
    if isinstance(answer, ByheartError):
        return {"error": type(answer).__name__, "message": str(answer), "hint": answer.hint}
    return json.loads(json.dumps(_without_own(to_wire(answer))))


def _without_own(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_own(each) for name, each in value.items() if name not in _OWN}
    return [_without_own(each) for each in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """List the places where two JSON values differ, with the two values."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        names: Any = one
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        names = range(len(one))
    else:
        same = type(one) is type(other) and one == other
        return [] if same else [f"{at}: {str(one)[:300]!r} and {str(other)[:300]!r}"]
    return [line for name in names for line in differences(one[name], other[name], f"{at}/{name}")]


@contextmanager
def open_twins(
    folder: Path,
    address: Address,
    fill: Callable[[Twins], object],
    *,
    copied: bool = False,
    large: bool = False,
) -> Iterator[Twins]:
    """Open two empty stores and fill both; or fill the SQLite store, and copy it.

    Above 512 chunks, a search compares its question with a sample of the space, which it chooses by
    the numbers of chunks. Two stores that were filled on their own have other numbers, and in large
    spaces other scores; a copy has the same numbers. With `large`, the postings and vectors of all
    spaces are in the database.
    """
    settings = load_settings(
        {"embedding_provider": "hash", "notice_similar": True},
        environ={},
        config_path=folder / "none",
    )

    def open_storage(*, for_copy: bool = False) -> SqlStorage:
        if large and not for_copy:
            return LargeSpaces(PostgresBackend(address, folder, 30, local_chunks=NONE_LOCAL))
        return PostgresStorage(address, folder, for_copy=for_copy)

    with ExitStack() as stack:
        storage = SqliteStorage(folder / "memory.db")
        sqlite = stack.enter_context(MemoryStore(storage, HashEmbedder(), settings))
        twins = Twins(sqlite=sqlite)
        if copied:
            fill(twins)
            Copier(storage, lambda: open_storage(for_copy=True), None).run()
        postgres = MemoryStore(open_storage(), HashEmbedder(), settings)
        twins.stores["postgres"] = stack.enter_context(postgres)
        if not copied:
            fill(twins)
        yield twins
