"""Check that all threads of a process search one index."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byheart.index.index import Index
from byheart.storage.sqlite import SqliteStorage

_THREADS = 8


@pytest.fixture
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching_often")
def test_threads_that_search_first_at_the_same_time_share_an_index(tmp_path: Path) -> None:
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in range(60):
            storage, begin = SqliteStorage(tmp_path / "memory.db"), threading.Barrier(_THREADS)

            def find(storage: SqliteStorage = storage, begin: threading.Barrier = begin) -> Index:
                begin.wait()
                return storage._index("space")

            found = {each.result() for each in [pool.submit(find) for _ in range(_THREADS)]}
            storage.close()
            assert len(found) == 1
