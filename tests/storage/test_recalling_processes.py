"""Recalling while others save: nobody waits, nobody fails, and no count is lost."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.store import MemoryStore
from tests.forked_program import start_script
from tests.storage.test_processes import OPEN
from tests.waiting import PATIENCE_SECONDS

SAVE = (
    OPEN
    + """
store = open_store()
for number in range(150):
    store.save(f"Coffee of the morning, cup {number}.")
store.close()
"""
)
RECALL = (
    OPEN
    + """
store = open_store()
for _ in range(100):
    answer = store.recall("tea", mode="fts")
    assert [each.content for each in answer.details] == ["green tea"], answer
    assert answer.tokens_used <= 1000
store.close()
"""
)


def test_no_access_is_lost_while_other_processes_save(
    open_store: Callable[..., MemoryStore], path: Path
) -> None:
    store = open_store(embedder=HashEmbedder(32))
    memory_id = store.save("green tea").memory_id
    started = [start_script(code, path, stderr=subprocess.PIPE) for code in (SAVE, RECALL, RECALL)]
    for each in started:
        _, errors = each.communicate(timeout=PATIENCE_SECONDS)
        assert (each.returncode, errors) == (0, b"")
    memory = store.get(memory_id)
    assert memory.access_count == 200
    assert memory.accessed_at is not None
    assert store.list(limit=1).total == 151
    assert [finding for finding in store.admin.doctor() if not finding.ok] == []


def test_no_access_is_lost_between_threads(open_store: Callable[..., MemoryStore]) -> None:
    store = open_store()
    memory_id = store.save("green tea").memory_id

    def work(number: int) -> None:
        for turn in range(25):
            store.save(f"Coffee {number}, {turn}")
            store.recall("tea", mode="fts")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    store.close()
    assert open_store().get(memory_id).access_count == 100
