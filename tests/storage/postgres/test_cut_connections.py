"""Cut the connection in the middle of every verb: a clear error or success, never half.

`BYHEART_TEST_CUTS` sets how many cuts each verb gets; 0 means one at every message.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreError
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresStorage
from byheart.store import MemoryStore
from tests.postgres_server import shared_server
from tests.postgres_stores import postgres_store
from tests.storage.postgres.proxies import Cut, CuttingProxy, Direction
from tests.storage.postgres.verb_cases import READS, WRITES, Case, describe
from tests.storage.postgres.wholeness import check_rows, check_whole

CUTS = int(os.environ.get("BYHEART_TEST_CUTS", "4"))
# On a machine that is busy with other tests.
MOST_SECONDS = 20.0


def open_store(address: Address, folder: Path, dimensions: int = 32) -> MemoryStore:
    settings = load_settings({"embedding_provider": "hash"})
    storage = PostgresStorage(address, folder, busy_timeout_seconds=5)
    return MemoryStore(storage, HashEmbedder(dimensions), settings)


@dataclass
class Place:
    """A store that is reached directly, and through a proxy that cuts."""

    address: Address
    direct: MemoryStore
    cut: MemoryStore
    through: Address
    proxy: CuttingProxy
    spaces: Iterator[int]

    def new_space(self, case: Case) -> tuple[str, list[str]]:
        space = f"space{next(self.spaces):05}"
        return space, case.prepare(self.direct, space)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with open_place(tmp_path_factory.mktemp("cuts")) as place:
        yield place


@contextmanager
def open_place(folder: Path) -> Iterator[Place]:
    server = shared_server()
    with postgres_store() as address:
        proxy = CuttingProxy(f"{server.folder}/.s.PGSQL.5432")
        database = address.location.partition("@/")[2].partition("?")[0]
        through = parse_address(server.url(database, **proxy.parameters) + "&parts=2")
        direct = open_store(address, folder / "direct")
        direct.save("The first text chooses the model.")
        cut = open_store(through, folder / "cut")
        yield Place(address, direct, cut, through, proxy, count())
        cut.close()
        direct.close()
        proxy.close()


def choose_cuts(counts: dict[Direction, int]) -> list[Cut]:
    """Spread the cuts over both directions; each cut sends its message, half of it, or none."""
    everywhere = [
        Cut(direction, number, (1.0, 0.5, 0.0)[number % 3])
        for direction, total in counts.items()
        for number in range(1, total + 1)
    ]
    if not CUTS or len(everywhere) <= CUTS:
        return everywhere
    # The end, where changes are committed, is always among them.
    return [everywhere[-1 - (len(everywhere) - 1) * n // CUTS] for n in range(CUTS)]


def call(place: Place, case: Case, space: str, ids: list[str], folder: Path) -> StoreError | None:
    """Call a verb through the proxy; give the error, which must be a clear one."""
    return attempt(lambda: case.call(place.cut, space, ids, folder))


def attempt(work: Callable[[], object]) -> StoreError | None:
    """Do something, and give its error; it must be a clear one, and come soon."""
    error: StoreError | None = None
    began = time.monotonic()
    try:
        work()
    except StoreError as raised:
        error = raised
    assert time.monotonic() - began < MOST_SECONDS
    assert error is None or (error.message and error.hint)
    return error


def check_works(place: Place, space: str) -> None:
    """Check that the store can be used again."""
    place.proxy.arm(None)
    held = place.cut.status(space=space).index
    assert held.memories == place.cut.list(limit=1, space=space).total


@pytest.mark.parametrize("case", [*WRITES, *READS], ids=lambda case: case.name)
def test_a_cut_leaves_everything_or_nothing(
    place: Place, case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space, ids = place.new_space(case)
    before = describe(place.address, space)
    place.proxy.arm(None)
    assert call(place, case, space, ids, tmp_path) is None
    counts = place.proxy.counts
    complete = describe(place.address, space)
    assert (complete != before) == (case in WRITES)
    reached = 0
    for cut in choose_cuts(counts):
        space, ids = place.new_space(case)
        place.proxy.arm(cut)
        error = call(place, case, space, ids, tmp_path)
        reached += not place.proxy.is_armed
        place.proxy.arm(None)
        after = describe(place.address, space)
        if error is None:
            assert after == complete, cut
        elif case.atomic:
            assert after in (before, complete), (cut, error)
            if case.single and "wrote nothing" in error.message:
                assert after == before, (cut, error)
        else:
            assert call(place, case, space, ids, tmp_path) is None
            assert describe(place.address, space) == complete, (cut, error)
        check_works(place, space)
    assert reached, "no cut reached the verb"
    check_rows(place.address)
    noise = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert not noise, noise


def test_reembedding_continues_after_every_cut(tmp_path: Path) -> None:
    def reembed() -> None:
        with open_store(place.through, tmp_path / "cut", dimensions=48) as store:
            store.admin.reembed(keep_old=False)

    with open_place(tmp_path) as place:
        errors = 0
        for number in range(20, 1000, 60):
            place.proxy.arm(Cut("to client", number, 0.5))
            errors += attempt(reembed) is not None
            if place.proxy.is_armed:
                break
        assert errors
        with open_store(place.address, tmp_path / "other", dimensions=48) as store:
            assert not store.admin.uses_earlier_model()
            assert store.search("first text", mode="vector").results
            check_whole(store, place.address)


def test_opening_a_store_through_a_cut_is_refused_clearly_or_works(tmp_path: Path) -> None:
    with open_place(tmp_path) as place:
        errors = 0
        for number in range(1, 60, 7):
            place.proxy.arm(Cut("to client", number, 0.5))
            errors += (
                attempt(lambda: open_store(place.through, tmp_path / "new").close()) is not None
            )
        assert errors
        check_whole(place.direct, place.address)
