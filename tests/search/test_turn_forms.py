"""The form of a turn: short turns, questions, long replies and named speakers."""

from __future__ import annotations

import numpy as np
import pytest

from byheart.contracts import TurnForms
from byheart.language.speech import share_of_questions, speaker_term
from byheart.model import ChunkHit
from byheart.search.evidence_fusion import ASKING_LOSS, LONG_REPLY, NAMED_SPEAKER, weigh_form
from byheart.store import MemoryStore
from tests.conftest import OpenStore

LONG = "Here is a plan for the garden. " * 60


def forms(
    length: int = 0, asking: float = 0.0, *, reply: bool = False, named: bool = False
) -> TurnForms:
    return TurnForms(
        np.array([length]),
        np.array([asking]),
        np.zeros((1, 4)),
        np.array([reply]),
        np.array([named]),
    )


def form_of(store: MemoryStore, query: str, memory_id: str) -> float:
    hits = store.search(query, explain=True, limit=50).results
    found = [hit for hit in hits if isinstance(hit, ChunkHit) and hit.memory_id == memory_id]
    assert found[0].explanation is not None
    return found[0].explanation.form


# --- The rule ---------------------------------------------------------------------------------


def test_a_text_that_nobody_said_keeps_its_score() -> None:
    assert weigh_form(forms()).tolist() == [1.0]


def test_a_turn_counts_more_the_longer_it_is_until_it_is_long_enough() -> None:
    factors = [float(weigh_form(forms(length))[0]) for length in (1, 3, 10, 29, 30, 150)]
    assert factors == sorted(factors)
    assert factors[0] < 0.2
    assert factors[3] < factors[4] == factors[5] == 1.0


def test_a_turn_that_only_asks_loses_most() -> None:
    factors = [float(weigh_form(forms(30, share))[0]) for share in (0.0, 0.5, 1.0)]
    assert factors == pytest.approx([1.0, 1 - ASKING_LOSS / 2, 1 - ASKING_LOSS])


def test_long_replies_lose_and_named_speakers_gain() -> None:
    assert weigh_form(forms(reply=True)).tolist() == [LONG_REPLY]
    assert weigh_form(forms(30, named=True)).tolist() == [NAMED_SPEAKER]


# --- What a text shows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Where is it?", 1.0),
        ("它在哪里？", 1.0),
        ("أين هو؟", 1.0),
        ("It is here.", 0.0),
        ("", 0.0),
        ("I moved to Rome in May and need an account for my salary, which bank do you suggest?", 0),
    ],
)
def test_short_questions_are_counted_in_any_script(text: str, share: float) -> None:
    assert share_of_questions(text) == share


def test_a_text_that_tells_and_asks_is_counted_by_its_parts() -> None:
    assert 0.2 < share_of_questions("I went to the lake with Tom. And you?") < 0.3


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("Anna: see you at ten", "anna"),
        ("Anna Maria Berg: see you", "anna"),
        ("see you at ten: bye", None),
        ("https://example.org", None),
        ("10:30 is fine", None),
        ("see you", None),
    ],
)
def test_a_name_in_front_is_the_speaker(text: str, term: str | None) -> None:
    assert speaker_term(text) == term


# --- In a store -------------------------------------------------------------------------------


def test_an_answer_comes_before_the_question_that_it_answers(store: MemoryStore) -> None:
    store.log("s", "anna", "Tell me, when was the harbour festival?")
    told = store.log("s", "ben", "The harbour festival was on the second weekend of June.")
    for number in range(5):
        store.log("s", "anna", f"Nothing to do with it, number {number} of many remarks.")
    hits = store.search("When was the harbour festival?").results
    assert hits[0].memory_id == told.memory_id


def test_only_the_long_replies_of_an_assistant_lose(open_store: OpenStore) -> None:
    store = open_store()
    reply = store.log("s", "assistant", LONG).memory_id
    pasted = store.log("s", "user", LONG.replace("Here", "There")).memory_id
    report = store.save(LONG.replace("Here", "This")).memory_id
    for each in (store, open_store()):  # from the index of this process, and from the file
        assert form_of(each, "plan for the garden", reply) == LONG_REPLY
        assert form_of(each, "plan for the garden", pasted) == 1.0
        assert form_of(each, "plan for the garden", report) == 1.0


def test_a_speaker_is_named_by_the_role_or_in_front_of_the_text(store: MemoryStore) -> None:
    text = "went to the lake with the whole family and swam to the island, " * 3
    by_role = store.log("s", "caroline", text).memory_id
    in_front = store.log("s", "user", f"Melanie: {text}").memory_id
    assert form_of(store, "What did Caroline do at the lake?", by_role) == NAMED_SPEAKER
    assert form_of(store, "What did Caroline do at the lake?", in_front) == 1.0
    assert form_of(store, "What did Melanie do at the lake?", in_front) == NAMED_SPEAKER
    assert form_of(store, "What did the user do at the lake?", by_role) == 1.0
