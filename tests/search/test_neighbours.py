"""Neighbours of a turn: those of its own session, wherever they are stored."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.index.session_order import sort_turns
from byheart.model import ChunkHit
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.conftest import OpenStore

WORDS = ("ferry", "harbour", "keeper", "lighthouse", "paint", "soup")
QUESTION, ANSWER = "Did anybody see the lighthouse keeper?", "Yes, on Tuesday, by the harbour."


def share(store: MemoryStore, memory_id: str) -> float:
    """Give what a turn owes to its neighbours, as a part of what the question has by itself."""
    answer = store.search(
        "lighthouse keeper", mode="hybrid", explain=True, session_id="a", limit=50
    )
    explained = {
        hit.memory_id: (hit.chunk_content, hit.explanation)
        for hit in answer.results
        if isinstance(hit, ChunkHit) and hit.explanation is not None
    }
    own = sum(
        place.contribution
        for content, why in explained.values()
        for place in (why.fts, why.vector)
        if content == QUESTION and place is not None
    )
    return explained[memory_id][1].neighbours / own if own and memory_id in explained else 0.0


def talk(store: MemoryStore, between: Any = None) -> str:
    """Log a question and its answer, with something between them; give the answer."""
    store.log("a", "user", QUESTION)
    if between is not None:
        between(store)
    answer = store.log("a", "assistant", ANSWER).memory_id
    for number in range(5):
        store.log("a", "user", f"Something else altogether, number {number}.")
    return answer


def many_of_another_session(store: MemoryStore) -> None:
    for number in range(40):
        store.log("b", "user", f"We should buy more paint, {number} pots of it.")


def many_of_another_space(store: MemoryStore) -> None:
    for number in range(40):
        store.log("a", "user", f"We should buy more paint, {number} pots of it.", space="other")


def notes_of_no_session(store: MemoryStore) -> None:
    for number in range(40):
        store.save(f"We should buy more paint, {number} pots of it.")


def long_tool_outputs(store: MemoryStore) -> None:
    for number in range(2):
        store.log("a", "tool", f"line {number} of the output\n" * 300, kind="tool_output")


def short_tool_outputs(store: MemoryStore) -> None:
    for number in range(30):
        store.log("a", "tool", f"exit code {number} of the build")


def a_long_document(store: MemoryStore) -> None:
    parts = [f"# Part {number}\n\nThe paint of part {number} is dry.\n\n" for number in range(20)]
    store.save("".join(parts), session_id="a")


@pytest.mark.parametrize(
    "between",
    [
        None,
        many_of_another_session,
        many_of_another_space,
        notes_of_no_session,
        long_tool_outputs,
        short_tool_outputs,
        a_long_document,
    ],
)
def test_an_answer_is_found_by_its_question_whatever_was_written_between_them(
    open_store: OpenStore, between: Any
) -> None:
    store = open_store()
    answer = talk(store, between)
    found = share(store, answer)
    assert found == pytest.approx(0.6, abs=0.15)
    assert share(open_store(), answer) == found, "a new process comes to the same"


def test_interleaved_sessions_rank_as_if_each_had_been_written_at_once(
    open_store: OpenStore, tmp_path: Path
) -> None:
    in_a_row, in_turn = open_store(), open_store(tmp_path / "in-turn.db")
    chance = random.Random(3)
    words = [
        "harbour",
        "ferry",
        "paint",
        "soup",
        "train",
        "lighthouse",
        "keeper",
        "shoes",
        "lunch",
        "late",
    ]
    said = {
        session_id: [" ".join(chance.sample(words, 4)) + f" {n}" for n in range(30)]
        for session_id in "abcdefghij"
    }
    for session_id, texts in said.items():
        for text in texts:
            in_a_row.log(session_id, "user", text)
    for number in range(30):
        for session_id, texts in said.items():
            in_turn.log(session_id, "user", texts[number])

    def ask(store: MemoryStore, session_id: str, query: str) -> list[tuple[str, float]]:
        found = store.search(query, session_id=session_id, limit=30, include_global=False).results
        return sorted((hit.snippet, hit.score) for hit in found)

    for session_id in said:
        for query in ("lighthouse keeper", "ferry at lunch", "soup"):
            assert ask(in_turn, session_id, query) == ask(in_a_row, session_id, query)


def test_a_turn_that_was_logged_afterwards_is_the_neighbour_of_those_around_its_time(
    store: MemoryStore,
) -> None:
    answer = store.log("a", "assistant", ANSWER, created_at="2026-05-01T10:01:00Z").memory_id
    for number in range(20):
        at = f"2026-05-01T10:{number + 5:02}:00Z"
        store.log("a", "user", f"Something else, number {number}.", created_at=at)
    assert share(store, answer) == 0
    store.log("a", "user", QUESTION, created_at="2026-05-01T10:00:00Z")
    assert share(store, answer) > 0


def test_a_turn_that_moves_to_another_session_takes_its_neighbours_there(
    store: MemoryStore,
) -> None:
    asked = store.log("b", "user", QUESTION).memory_id
    answer = store.log("a", "assistant", ANSWER).memory_id
    for number in range(5):
        store.log("a", "user", f"Something else altogether, number {number}.")
    assert share(store, answer) == 0
    store.update(asked, session_id="a")
    assert share(store, answer) > 0
    store.forget(asked, hard=True)
    assert share(store, answer) == 0


def test_the_running_summary_is_no_neighbour(store: MemoryStore) -> None:
    answer = talk(store, lambda held: held.sessions.summarize("a", "Somebody asked about paint."))
    assert share(store, answer) == pytest.approx(0.6, abs=0.15)


# --- The space boundary -----------------------------------------------------------------------

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
turns = st.tuples(st.sampled_from("ab"), st.sampled_from(("user", "assistant", "tool")), texts)


@contextmanager
def new_store() -> Iterator[MemoryStore]:
    chosen = load_settings({"embedding_provider": "hash"}, environ={})
    with tempfile.TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "memory.db")
        with MemoryStore(storage, HashEmbedder(), chosen) as store:
            yield store


def ranking(store: MemoryStore, query: str) -> list[tuple[str, float]]:
    answer = store.search(query, space="mine", limit=100)
    return [(hit.chunk_content, hit.score) for hit in answer.results]


@settings(max_examples=25)
@given(
    mine=st.lists(turns, min_size=1, max_size=12),
    others=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12), turns), max_size=4),
)
def test_writes_in_one_space_change_neither_order_nor_scores_in_another(
    mine: Sequence[tuple[str, str, str]], others: Sequence[tuple[int, int, tuple[str, str, str]]]
) -> None:
    with new_store() as alone, new_store() as shared:
        for number, (session_id, role, text) in enumerate(mine):
            alone.log(session_id, role, text, space="mine")
            for at, times, (theirs, their_role, their_text) in others:
                for _ in range(times if at == number else 0):
                    shared.log(theirs, their_role, their_text, space="theirs")
            shared.log(session_id, role, text, space="mine")
        for query in ("lighthouse keeper", "paint"):
            before = ranking(shared, query)
            assert before == ranking(alone, query)
            shared.log("a", "user", "keeper of the lighthouse", space="theirs")
            shared.save("keeper of the lighthouse", session_id="a", space="theirs")
            assert ranking(shared, query) == before


# --- The order itself -------------------------------------------------------------------------


def test_the_order_that_follows_every_change_is_the_one_that_sorting_gives(
    open_store: OpenStore,
) -> None:
    store, chance = open_store(), random.Random(11)
    ids: list[str] = []
    for step in range(150):
        space = chance.choice(("default", "other"))
        session_id = chance.choice("abc")
        match chance.randrange(7 if ids else 3):
            case 0 | 1:
                at = f"2026-05-0{chance.randrange(1, 9)}" if chance.random() < 0.4 else None
                role = chance.choice(("user", "assistant", "tool"))
                store.log(session_id, role, f"turn {step}", created_at=at, space=space)
            case 2:
                text = f"note {step} " + "and so on " * chance.choice((1, 1, 100))
                ids.append(store.save(text, session_id=session_id).memory_id)
            case 3:
                store.update(chance.choice(ids), content=f"changed {step}")
            case 4:
                store.update(chance.choice(ids), session_id=chance.choice(("a", "b", None)))
            case 5:
                store.update(chance.choice(ids), title=f"Title {step}")
            case 6:
                store.forget(ids.pop(chance.randrange(len(ids))), hard=chance.random() < 0.7)
        store.search("turn", mode="fts")
        contents = store._storage._index(None)._contents
        memories = {name: rows.view for name, rows in contents._memories.items()}
        chunks = {name: rows.view for name, rows in contents._chunks.items()}
        assert contents._by_turn.tolist() == sort_turns(memories, chunks).tolist()
    assert len(contents._by_turn) > 30


def test_an_index_file_keeps_the_order(open_store: OpenStore) -> None:
    with open_store() as store:
        store.log_many(
            {"session_id": "ab"[n % 2], "role": "user", "content": f"turn {n}"} for n in range(500)
        )
        store.search("turn")
        before = store._storage._index(None)._contents._by_turn.tolist()
    again = open_store()
    again.search("turn")
    contents = again._storage._index(None)._contents
    assert contents.published
    assert contents._by_turn.tolist() == before
