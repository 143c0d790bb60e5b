"""The example of a chat: a whole loop over HTTP, which remembers and does not learn from itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from byheart.store import MemoryStore

CHAT = Path(__file__).parents[2] / "examples" / "chat.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chat_example", CHAT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_chat_answers_from_memory_and_from_what_was_said(
    store: MemoryStore, example: ModuleType
) -> None:
    store.save_many({"content": fact, "kind": "fact"} for fact in example.FACTS)
    with example.standing_in() as url:
        replies = [example.chat(store, "s1", said, url) for said in example.QUESTIONS]
    key, staging = example.FACTS
    assert replies[0] == replies[2] == "I see."
    assert replies[1].startswith(f"{key} [")
    assert replies[3].startswith(f"{staging} [")
    assert replies[4] == "You said: My favourite tea is Darjeeling, second flush."
    assert [turn.role for turn in store.sessions.transcript("s1").turns] == [
        "user",
        "assistant",
    ] * 5
    assert [
        turn.content for turn in store.sessions.transcript("s1", role="assistant").turns
    ] == replies


def test_what_the_chat_quotes_is_not_learned_again(store: MemoryStore, example: ModuleType) -> None:
    store.save_many({"content": fact, "kind": "fact"} for fact in example.FACTS)
    with example.standing_in() as url:
        for said in example.QUESTIONS * 2:
            example.chat(store, "s1", said, url)
    for mode in ("hybrid", "vector", "fts"):
        hits = store.search("deploy key vault", mode=mode, session_id="s1", limit=50).results
        said = [hit for hit in hits if hit.role == "assistant"]
        assert not any("vault" in hit.chunk_content for hit in said)  # type: ignore[union-attr]


def test_the_chat_runs_by_itself(
    example: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["chat.py"])
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "hash")
    example.main()
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 * len(example.QUESTIONS)
    assert shown[3].startswith(f"it:  {example.FACTS[0]}")
