"""Contradictions that a save finds: the same subject, another value."""

from __future__ import annotations

from byheart.store import MemoryStore
from tests.conftest import OpenStore


def test_a_save_names_the_memory_that_it_contradicts(store: MemoryStore) -> None:
    old = store.save("The port is 8080.")
    new = store.save("The port is 8081.")
    assert old.conflicts == ()
    [conflict] = new.conflicts
    assert (conflict.memory_id, conflict.differs) == (old.memory_id, "number")
    assert (conflict.said, conflict.said_before) == ("The port is 8081.", "The port is 8080.")


def test_a_superseded_memory_contradicts_nothing(store: MemoryStore) -> None:
    old = store.save("The port is 8080.")
    new = store.save("The port is 8081.")
    store.supersede(old.memory_id, by=new.memory_id)
    [conflict] = store.save("The port is 8082.").conflicts
    assert conflict.memory_id == new.memory_id


def test_other_sessions_spaces_and_subjects_do_not_contradict(store: MemoryStore) -> None:
    store.save("The port is 8080.", session_id="s1")
    store.save("The port is 8080.", space="elsewhere")
    store.save("The exit code is 25.")
    assert store.save("The port is 8081.", session_id="s2").conflicts == ()


def test_nothing_is_compared_if_the_setting_says_so(open_store: OpenStore) -> None:
    store = open_store(notice_similar=False)
    store.save("The port is 8080.")
    assert store.save("The port is 8081.").conflicts == ()
