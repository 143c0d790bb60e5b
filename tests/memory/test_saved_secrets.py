"""Secrets in what is saved on purpose: kept, and reported; replaced if the settings say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.conversation.capture import capture
from byheart.settings import Settings
from byheart.store import MemoryStore
from tests.conftest import OpenStore

SECRET = "hunt" + "er2"
TEXT = f"The password for the router is {SECRET}."
CLEAN = "The password for the router is [redacted: password]."


def test_save_keeps_a_secret_and_reports_it(store: MemoryStore) -> None:
    result = store.save(TEXT)
    assert dict(result.secrets_found) == {"password": 1}
    assert not result.secrets_redacted
    assert store.get(result.memory_id).content == TEXT
    assert dict(store.save(TEXT).secrets_found) == {"password": 1}  # there already
    assert store.save("The router is in the hall.").secrets_found == {}


def test_every_verb_that_saves_reports(store: MemoryStore) -> None:
    memory_id = store.save("The router is in the hall.").memory_id
    results = [
        store.log("s1", "user", TEXT),
        *store.save_many([{"content": "nothing"}, {"content": f"2: {TEXT}"}])[1:],
        *store.log_many([{"session_id": "s1", "role": "user", "content": f"3: {TEXT}"}]),
        store.update(memory_id, content=TEXT),
        store.save("A note.", title=TEXT),
    ]
    assert [dict(each.secrets_found) for each in results] == [{"password": 1}] * 5


def test_an_update_of_other_fields_reports_nothing(store: MemoryStore) -> None:
    memory_id = store.save(TEXT).memory_id
    assert store.update(memory_id, tags=["router"]).secrets_found == {}
    assert store.get(memory_id).content == TEXT


def test_all_replaces_secrets_in_what_is_saved_on_purpose(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store(redact_secrets="all")
    saved = store.save(TEXT, title=f"{TEXT} Really.", summary=TEXT)
    assert saved.secrets_redacted
    memory = store.get(saved.memory_id)
    assert (memory.content, memory.title, memory.summary) == (CLEAN, f"{CLEAN} Really.", CLEAN)
    assert store.save(TEXT).status == "unchanged"  # the same text again is the same memory
    turn = store.log("s1", "user", TEXT)
    assert store.get(turn.memory_id).content == CLEAN
    other = store.save("The hall.").memory_id
    assert store.update(other, content=f"1: {TEXT}").secrets_redacted
    assert store.get(other).content == f"1: {CLEAN}"
    assert store.sessions.summarize("s1", f"2: {TEXT}").content == f"2: {CLEAN}"
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"content": "3: ' + TEXT + '"}\n')
    store.import_(lines)
    assert SECRET not in "".join(each.content for each in store.list(limit=50).memories)


def test_an_update_leaves_a_text_alone_that_it_was_not_given(open_store: OpenStore) -> None:
    memory_id = open_store().save(TEXT).memory_id
    store = open_store(redact_secrets="all")
    store.update(memory_id, title="Router")
    assert store.get(memory_id).content == TEXT


@pytest.mark.parametrize(
    ("level", "expected"), [("none", TEXT), ("hooks", CLEAN), ("captured", CLEAN), ("all", CLEAN)]
)
def test_what_hooks_capture_is_replaced_unless_nothing_is(level: str, expected: str) -> None:
    assert capture(TEXT, Settings(redact_secrets=level)).text == expected  # type: ignore[arg-type]
