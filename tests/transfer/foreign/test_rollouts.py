"""Rollouts of Codex: whose session they are, and of which project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byheart.conversation.agent_events import project_of
from byheart.store import MemoryStore
from tests.transfer.foreign.samples import codex_line, codex_message, lines

OWN, EARLIER = "own-session", "the-one-before"


def meta(session: str, folder: str) -> dict[str, Any]:
    return codex_line("session_meta", 0, id=session, cwd=folder)


def early(session: str) -> dict[str, Any]:
    return {"id": session, "timestamp": "2025-08-01T10:00:00Z", "instructions": None}


@pytest.mark.parametrize(
    ("begins", "project"),
    [
        ([meta(OWN, "/nowhere/mill"), meta(EARLIER, "/nowhere/dam")], project_of("/nowhere/mill")),
        ([early(OWN), early(EARLIER)], None),
    ],
)
def test_a_rollout_that_goes_on_from_another_is_a_session_of_its_own(
    store: MemoryStore, tmp_path: Path, begins: list[dict[str, Any]], project: str | None
) -> None:
    said = codex_message("user", 1, "Which port does the mill listen on?")
    store.import_(lines(tmp_path / "rollout.jsonl", [*begins, said]), format="codex", embed=False)
    [turn] = store.list(session_id=OWN, include_global=False).memories
    assert (turn.content, turn.task_code) == ("Which port does the mill listen on?", project)
    assert store.sessions.transcript(EARLIER).total == 0


def test_a_rollout_that_does_not_say_so_is_named_by_its_file(
    store: MemoryStore, tmp_path: Path
) -> None:
    uuid = "019bce9f-0a40-79e2-8351-8818e8487fb6"
    said = codex_message("user", 1, "Which port does the mill listen on?")
    for name in (f"rollout-2026-04-02T10-00-00-{uuid}.jsonl", "notes.jsonl"):
        store.import_(lines(tmp_path / name, [said]), format="codex", embed=False)
    assert {each.session_id for each in store.sessions.list()} == {uuid, "notes"}
