"""Run the tests of a module, or of a folder, on stores of every database.

A module or `conftest.py` that imports the fixture has its tests run on each. A test that looks into
the file of a SQLite store is marked with `sqlite_only`.
"""

from __future__ import annotations

import pytest

sqlite_only = pytest.mark.parametrize("database", ["sqlite"])


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Name the database of `open_store`, one after the other."""
    if request.param == "postgres":
        pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")
    given: str = request.param
    return given
