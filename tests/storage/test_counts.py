"""The numbers of spaces and sessions, on every database."""

from __future__ import annotations

from byheart import MemoryStore


def test_spaces_and_sessions_count_once_and_only_with_visible_memories(store: MemoryStore) -> None:
    assert (store.status().spaces, store.status().sessions) == (0, 0)
    for number in range(3):
        for session in ("s1", "s2", "s3", None):
            store.save(f"text {number} of {session}", session_id=session)
    hidden = [store.save(f"hidden {number}", session_id="s4").memory_id for number in range(2)]
    other = store.save("elsewhere", space="other", session_id="s9")
    store.save("last of all", space="zebra")
    assert (store.status().spaces, store.status().sessions) == (3, 4)
    for memory_id in hidden:
        store.forget(memory_id)
    store.forget(other.memory_id, space="other")
    assert (store.status().spaces, store.status().sessions) == (2, 3)
    store.update(
        store.list(session_id="s1", include_global=False).memories[0].memory_id, content="a"
    )
    assert store.status().sessions == 3
