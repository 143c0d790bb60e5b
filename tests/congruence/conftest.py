"""Fill a SQLite store and a PostgreSQL store with the same memories, once for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.congruence.made_store import fill, make_filters
from tests.congruence.twins import START, Twins, open_twins
from tests.postgres_stores import postgres_store

# With `BYHEART_CONGRUENCE=all`: more memories, every question in every way, and a copied store:
# see `open_twins`.
EVERYTHING = os.environ.get("BYHEART_CONGRUENCE") == "all"


class Filled(NamedTuple):
    """The two stores, the ids of their memories by space, and filters to try."""

    twins: Twins
    known: dict[str, list[str]]
    filters: list[dict[str, Any]]


@pytest.fixture(scope="session", params=["local", "large"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")
    folder = tmp_path_factory.mktemp("twins")
    known: dict[str, list[str]] = {}

    def fill_stores(twins: Twins) -> None:
        known.update(fill(twins, *((1050, 150) if EVERYTHING else (100, 25))))

    with (
        postgres_store() as address,
        open_twins(
            folder,
            address,
            fill_stores,
            copied=EVERYTHING,
            large=request.param == "large",
        ) as twins,
    ):
        yield Filled(twins, known, make_filters(START, twins.machine.now()))
        sys.stdout.write(f"\n{twins.compared} answers compared\n")
