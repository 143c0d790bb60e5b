"""Open each implementation of storage, and check the marks of the tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from byheart.contracts import Storage
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.storage import SqlStorage
from byheart.storage.sqlite.backend import SqliteBackend
from tests.contracts.covering import watching

OpenBackend = Callable[[], Backend]
OpenStorage = Callable[[], Storage]


def open_sqlite(folder: Path) -> Backend:
    return SqliteBackend(folder / "memory.db", busy_timeout_seconds=30)


# Another database is tested by adding it here.
IMPLEMENTATIONS: list[Callable[[Path], Backend]] = [open_sqlite]


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

    def open_one() -> Backend:
        opened.append(request.param(tmp_path))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def backend(open_backend: OpenBackend) -> Backend:
    return open_backend()


@pytest.fixture
def open_storage(open_backend: OpenBackend) -> Iterator[OpenStorage]:
    """Open the same store any number of times."""
    opened: list[Storage] = []

    def open_one() -> Storage:
        opened.append(SqlStorage(open_backend()))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def storage(open_storage: OpenStorage) -> Storage:
    return open_storage()
