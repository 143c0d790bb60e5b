"""Feedback on memories: kept with its text, ranking like questions, and leaving with its memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from byheart.errors import InvalidInput, NotFound
from byheart.memory.feedback import MOST_KEPT, add_feedback
from byheart.model.feedback import Feedback, KeptOutcome, read_feedback
from byheart.search.feedback import LEAST_GAIN, MOST_GAIN, describe_question
from byheart.store import MemoryStore
from tests.conftest import OpenStore

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
QUESTION = "which port does the staging server use?"
RIGHT = "The staging server uses port 8443."
WRONG = "The staging server uses a port of the router."


def entry(outcome: KeptOutcome, query: str) -> Feedback:
    return Feedback(outcome, NOON, describe_question(query, None))


def outcomes(kept: list[Feedback]) -> list[str]:
    return [each.outcome for each in kept]


def factor(
    store: MemoryStore, memory_id: str, query: str = QUESTION, mode: str = "hybrid"
) -> float:
    hits = store.search(query, mode=mode, explain=True).results
    [found] = [hit for hit in hits if hit.memory_id == memory_id]
    assert found.explanation is not None
    return found.explanation.feedback


def order(store: MemoryStore, query: str = QUESTION, **how: str) -> list[str]:
    return [hit.memory_id for hit in store.search(query, **how).results]


@pytest.fixture
def two(store: MemoryStore) -> tuple[MemoryStore, str, str]:
    return store, store.save(RIGHT).memory_id, store.save(WRONG).memory_id


# --- The rule -------------------------------------------------------------------------------------


def test_the_last_outcome_for_a_question_counts() -> None:
    kept = add_feedback([entry("used", "port?")], entry("wrong", "the PORT"))
    assert outcomes(kept) == ["wrong"]


def test_an_echo_does_not_replace_what_a_caller_said() -> None:
    kept = [entry("wrong", "port?")]
    assert add_feedback(kept, entry("echoed", "port?")) == kept
    assert outcomes(add_feedback([entry("echoed", "port?")], entry("ignored", "port?"))) == [
        "ignored"
    ]


def test_a_memory_keeps_feedback_on_the_latest_questions_only() -> None:
    kept: list[Feedback] = []
    for number in range(MOST_KEPT + 3):
        kept = add_feedback(kept, entry("used", "word" + number * "o"))
    assert [max(each.question.terms).count("o") - 1 for each in kept] == [*range(3, MOST_KEPT + 3)]


# --- The verb -------------------------------------------------------------------------------------


def test_feedback_moves_a_memory_for_its_question_and_is_explained(
    two: tuple[MemoryStore, str, str],
) -> None:
    store, right, wrong = two
    before = {hit.memory_id: hit.score for hit in store.search(QUESTION).results}
    given = store.feedback(right, QUESTION, "used")
    assert (given.memory_id, given.outcome, given.questions) == (right, "used", 1)
    assert store.feedback(wrong, QUESTION, "wrong").questions == 1
    assert order(store)[0] == right
    assert 1 < factor(store, right) <= MOST_GAIN
    assert LEAST_GAIN <= factor(store, wrong) < 1
    for hit in store.search(QUESTION).results:
        moved = before[hit.memory_id] * factor(store, hit.memory_id)
        assert hit.score == pytest.approx(moved, abs=1e-5)
    assert factor(store, right, "who owns the router?") == 1.0


def test_recall_explains_the_factor_too(two: tuple[MemoryStore, str, str]) -> None:
    store, right, _ = two
    store.feedback(right, QUESTION, "used")
    explained = store.recall(QUESTION, explain=True).explanations or ()
    assert {each.id: each.feedback > 1 for each in explained}[right] is True
    assert sum(each.feedback == 1 for each in explained) == 1


def test_keyword_search_counts_feedback_and_the_references_do_not(
    two: tuple[MemoryStore, str, str],
) -> None:
    store, right, _ = two
    store.feedback(right, QUESTION, "used")
    assert factor(store, right, mode="fts") > 1
    assert factor(store, right, mode="vector") == 1
    hits = store.search(QUESTION, fusion="rrf", explain=True).results
    assert {hit.explanation.feedback for hit in hits if hit.explanation} == {1.0}


def test_feedback_can_be_switched_off(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store()
    memory_id = store.save(RIGHT).memory_id
    store.feedback(memory_id, QUESTION, "used")
    off = open_store(feedback_half_life_days=0)
    assert factor(store, memory_id) > 1
    assert factor(off, memory_id) == 1


@pytest.mark.parametrize(
    ("query", "outcome"), [("", "used"), ("  ", "used"), (QUESTION, "good"), (QUESTION, "echoed")]
)
def test_bad_feedback_is_refused(store: MemoryStore, query: str, outcome: str) -> None:
    memory_id = store.save(RIGHT).memory_id
    with pytest.raises(InvalidInput):
        store.feedback(memory_id, query, outcome)


def test_feedback_on_an_unknown_or_hidden_memory_is_refused(store: MemoryStore) -> None:
    memory_id = store.save(RIGHT).memory_id
    store.save(RIGHT, space="other")
    with pytest.raises(NotFound):
        store.feedback(memory_id, QUESTION, "used", space="other")
    store.forget(memory_id)
    with pytest.raises(NotFound):
        store.feedback(memory_id, QUESTION, "used")


# --- Its life -------------------------------------------------------------------------------------


def test_a_new_text_begins_without_feedback(store: MemoryStore) -> None:
    memory_id = store.save(WRONG).memory_id
    store.feedback(memory_id, QUESTION, "wrong")
    store.update(memory_id, title="Ports")
    assert factor(store, memory_id) < 1
    store.update(memory_id, content=RIGHT)
    assert factor(store, memory_id) == 1


def test_feedback_goes_with_an_export(
    store: MemoryStore, tmp_path: Path, open_store: OpenStore
) -> None:
    memory_id = store.save(RIGHT).memory_id
    store.feedback(memory_id, QUESTION, "used")
    store.export(tmp_path / "all.jsonl")
    other = open_store(tmp_path / "other.db")
    other.import_(tmp_path / "all.jsonl")
    assert factor(other, memory_id) == pytest.approx(factor(store, memory_id), abs=1e-3)


def test_an_import_refuses_feedback_that_cannot_be_read(
    store: MemoryStore, tmp_path: Path, open_store: OpenStore
) -> None:
    memory_id = store.save(RIGHT).memory_id
    store.feedback(memory_id, QUESTION, "used")
    store.export(tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    for line in lines:
        if "feedback" in line:
            line["feedback"] = "praised 12 - port"
    (tmp_path / "bad.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    other = open_store(tmp_path / "other.db")
    with pytest.raises(InvalidInput, match="praised"):
        other.import_(tmp_path / "bad.jsonl")


def test_hard_forgetting_leaves_no_trace_of_the_question(
    store: MemoryStore, tmp_path: Path
) -> None:
    memory_id = store.save(RIGHT).memory_id
    store.save("Something else that stays.")
    store.feedback(memory_id, "zanzibarquestion about the staging port", "used")
    store.search("staging port")
    removal = store.forget(memory_id, hard=True)
    assert removal.removal is not None
    assert removal.removal.traces == ()
    store.close()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zanzibarquest" not in path.read_bytes(), path


# --- Noticed by itself ----------------------------------------------------------------------------


def echoed(store: MemoryStore, memory_id: str) -> list[str]:
    with store._storage.writing("default") as writer:
        [held] = writer.memories.held([memory_id], "default")
    return [each.outcome for each in read_feedback(held.feedback)]


def test_a_reply_that_repeats_a_given_memory_counts_as_a_little_used(store: MemoryStore) -> None:
    used = store.save(RIGHT, kind="fact").memory_id
    unused = store.save("Ports of the staging server are opened by Mara.", kind="fact").memory_id
    store.log("s", "user", QUESTION)
    store.context("s")
    store.log("s", "assistant", f"{RIGHT} Shall I open it?")
    assert echoed(store, used) == ["echoed"]
    assert echoed(store, unused) == []
    by_echo = factor(store, used)
    store.feedback(used, QUESTION, "used")
    assert 1 < by_echo < factor(store, used)


def test_a_reply_in_own_words_and_a_user_who_quotes_are_no_use(store: MemoryStore) -> None:
    memory_id = store.save(RIGHT, kind="fact").memory_id
    store.log("s", "user", QUESTION)
    store.context("s")
    store.log("s", "assistant", "Try 8443, I think.")
    store.log("s", "user", RIGHT)
    assert echoed(store, memory_id) == []


def test_turns_logged_together_count_by_the_question_before_the_reply(store: MemoryStore) -> None:
    memory_id = store.save(RIGHT, kind="fact").memory_id
    store.search(QUESTION, session_id="s")
    store.log_many(
        [
            {"session_id": "s", "role": "user", "content": QUESTION},
            {"session_id": "s", "role": "assistant", "content": RIGHT},
            {"session_id": "s", "role": "user", "content": "And who waters the plants?"},
        ]
    )
    assert factor(store, memory_id) > 1
    assert factor(store, memory_id, "And who waters the plants?") == 1


def test_nothing_is_noticed_while_feedback_is_switched_off(open_store: OpenStore) -> None:
    store = open_store(feedback_half_life_days=0)
    memory_id = store.save(RIGHT, kind="fact").memory_id
    store.log("s", "user", QUESTION)
    store.context("s")
    store.log("s", "assistant", RIGHT)
    assert echoed(store, memory_id) == []
