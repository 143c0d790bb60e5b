"""Open each implementation of storage, and check the marks of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from byheart.contracts import Storage
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sqlite.backend import SqliteBackend
from tests.contracts.covering import watching
from tests.large_spaces import NONE_LOCAL, LargeSpaces
from tests.postgres_stores import postgres_store
from tests.storage.postgres.foreign_parts import foreign_part_store

OpenBackend = Callable[[], Backend]
OpenStorage = Callable[[], Storage]


@contextmanager
def sqlite(folder: Path) -> Iterator[OpenBackend]:
    yield lambda: SqliteBackend(folder / "memory.db", busy_timeout_seconds=30)


@contextmanager
def postgres(folder: Path) -> Iterator[OpenBackend]:
    with postgres_store() as address:
        yield lambda: PostgresBackend(address, folder, busy_timeout_seconds=30)


@contextmanager
def postgres_with_foreign_part(folder: Path) -> Iterator[OpenBackend]:
    with foreign_part_store() as (address, _):
        yield lambda: PostgresBackend(address, folder, busy_timeout_seconds=30)


@contextmanager
def postgres_with_large_spaces(folder: Path) -> Iterator[OpenBackend]:
    """Treat every space as too large for a server."""
    with postgres_store() as address:
        yield lambda: PostgresBackend(
            address, folder, busy_timeout_seconds=30, local_chunks=NONE_LOCAL
        )


# Another database is tested by adding it here.
IMPLEMENTATIONS: list[Callable[[Path], AbstractContextManager[OpenBackend]]] = [
    sqlite,
    postgres,
    postgres_with_large_spaces,
]
# Many tests fail on such a store: docs/decisions/0016-parts-on-other-servers.md has the reasons.
if os.environ.get("BYHEART_TEST_FOREIGN_PARTS"):
    IMPLEMENTATIONS.append(postgres_with_foreign_part)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test that does not call the members of interfaces that its mark names."""
    members = [each for mark in pyfuncitem.iter_markers("covers") for each in mark.args]
    with watching(members) as uncalled:
        result = yield
    if uncalled:
        pytest.fail(f"marked as covered, but not called: {', '.join(sorted(uncalled))}")
    return result


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda implementation: implementation.__name__)
def open_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenBackend]:
    """Open the same database any number of times."""
    opened: list[Backend] = []
    with request.param(tmp_path) as open_backend:

        def open_one() -> Backend:
            opened.append(open_backend())
            return opened[-1]

        yield open_one
        for each in opened:
            each.close()


@pytest.fixture
def backend(open_backend: OpenBackend) -> Backend:
    return open_backend()


@pytest.fixture
def open_storage(
    open_backend: OpenBackend, request: pytest.FixtureRequest
) -> Iterator[OpenStorage]:
    """Open the same store any number of times."""
    opened: list[Storage] = []
    is_large = "postgres_with_large_spaces" in request.node.name
    kind = LargeSpaces if is_large else SqlStorage

    def open_one() -> Storage:
        opened.append(kind(open_backend()))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def storage(open_storage: OpenStorage) -> Storage:
    return open_storage()
