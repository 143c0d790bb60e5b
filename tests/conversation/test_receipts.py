"""Receipts: what went into a prompt is kept for a time, and goes with what it names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from byheart.errors import NotFound
from byheart.interfaces.operations import OPERATIONS, Grant, perform
from byheart.memory.repeated_questions import Repetitions
from byheart.store import MemoryStore
from byheart.system import clock
from tests.conftest import OpenStore
from tests.databases import database as database

QUESTION = "Where is the deploy key of the harbour project kept these days?"


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    store.save("The deploy key is in the vault.", title="Deploy key", kind="fact")
    store.save("Deploy keys are renewed in May.", title="Renewal", kind="fact")
    store.log("s1", "user", "Good morning, shall we begin?")
    store.log("s1", "assistant", "Yes, let us begin with the deploy key.")
    return store


def test_a_context_is_read_back_as_it_was_given(filled: MemoryStore) -> None:
    given = filled.context("s1", "deploy key", max_tokens=300)
    assert given.receipt_id is not None
    stored = filled.receipts.get(given.receipt_id)
    assert stored.receipt == given.receipt
    assert (stored.verb, stored.session_id, stored.query) == ("context", "s1", "deploy key")
    assert (stored.max_tokens, stored.used_tokens) == (300, given.tokens_used)
    [listed] = filled.receipts.list().receipts
    assert listed.items == len(given.receipt.items)
    assert listed.left_out == len(given.receipt.left_out)


def test_a_reminder_leaves_a_receipt_too(filled: MemoryStore) -> None:
    given = filled.remind("s2", "deploy key in the vault", min_similarity=0.0)
    assert given.receipt.items
    [listed] = filled.receipts.list(session_id="s2").receipts
    assert (listed.verb, listed.receipt_id) == ("remind", given.receipt_id)


def test_receipts_are_listed_by_the_memories_that_were_given(filled: MemoryStore) -> None:
    given = filled.context("s1", "deploy key in the vault", top_k=1, recent=0)
    [item] = given.receipt.items
    facts = [each.memory_id for each in filled.list(kind="fact").memories]
    [other] = [each for each in facts if each != item.memory_id]
    assert filled.receipts.list(memory_id=item.memory_id).total == 1
    assert filled.receipts.list(memory_id=other).total == 0


def test_a_preview_leaves_no_trace(filled: MemoryStore) -> None:
    before = filled.context("s1", "deploy key", preview=True)
    assert before.receipt.items
    assert before.receipt_id is None
    assert filled.receipts.list().total == 0
    given = filled.remind("s1", "deploy key in the vault", min_similarity=0.0)
    assert given.receipt.items, "a preview does not count as given"


def test_receipts_are_kept_for_some_days(
    filled: MemoryStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = filled.context("s1", "deploy key")
    short = open_store(receipt_days=2)
    monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(days=3))
    assert filled.receipts.list().total == 1
    assert short.receipts.list().total == 0, "an old receipt is not shown"
    with pytest.raises(NotFound, match="no longer"):
        short.receipts.get(str(given.receipt_id))
    short.context("s1", "another question")
    assert short.receipts.list().total == 1
    assert filled.receipts.list().total == 1, "the old receipt was removed"


def test_receipts_can_be_switched_off(filled: MemoryStore, open_store: OpenStore) -> None:
    filled.context("s1", "deploy key")
    assert filled.receipts.list().total == 1
    off = open_store(receipt_days=0)
    assert off.context("s1", "deploy key").receipt_id is None
    assert off.receipts.list().kept_days == 0
    assert filled.receipts.list().total == 0, "earlier ones are removed"


def test_erasing_a_memory_removes_the_receipts_that_name_it(filled: MemoryStore) -> None:
    given = filled.context("s1", "deploy key", recent=0)
    filled.context("s1", "good morning", top_k=0)
    erased = given.receipt.items[0].memory_id
    done = filled.forget(erased, hard=True)
    assert done.removal is not None
    assert done.removal.traces == ()
    assert [each.query for each in filled.receipts.list().receipts] == ["good morning"]


def test_erasing_a_turn_removes_the_receipts_that_repeat_it(filled: MemoryStore) -> None:
    filled.context("s1", f"{QUESTION} Please.", top_k=0, recent=0)
    filled.context("s1", "Something else", top_k=0, recent=0)
    turn = filled.log("s9", "user", QUESTION).memory_id
    filled.forget(turn, hard=True)
    assert [each.query for each in filled.receipts.list().receipts] == ["Something else"]


def test_hiding_a_memory_hides_its_title_in_receipts(filled: MemoryStore) -> None:
    given = filled.context("s1", "deploy key in the vault", recent=0)
    hidden = given.receipt.items[0]
    assert hidden.title is not None
    filled.forget(hidden.memory_id)
    stored = filled.receipts.get(str(given.receipt_id)).receipt.items[0]
    assert (stored.memory_id, stored.title) == (hidden.memory_id, None)


def test_forgetting_a_session_removes_its_receipts(filled: MemoryStore) -> None:
    filled.context("s1", "deploy key")
    filled.context("s2", "deploy key")
    filled.sessions.forget("s1", dry_run=True)
    assert filled.receipts.list().total == 2
    filled.sessions.forget("s1", dry_run=False)
    assert [each.session_id for each in filled.receipts.list().receipts] == ["s2"]


def test_receipts_of_another_space_or_session_stay_there(filled: MemoryStore) -> None:
    given = filled.context("s1", "deploy key")
    fact = filled.list(kind="fact").memories[0].memory_id
    with pytest.raises(NotFound):
        filled.receipts.get(str(given.receipt_id), space="other")
    ours = Grant("read", "default", "s2")
    with pytest.raises(NotFound):
        perform(filled, OPERATIONS["receipt"], {"receipt_id": given.receipt_id}, ours)
    told = perform(filled, OPERATIONS["receipts"], {"memory_id": fact}, ours)
    assert told["total"] == 0, "a global memory, but a context of another session"
    theirs = Grant("read", "default", "s1")
    asked = {"receipt_id": given.receipt_id}
    assert perform(filled, OPERATIONS["receipt"], asked, theirs)["query"] == "deploy key"


@pytest.mark.parametrize(
    ("text", "question", "repeats"),
    [
        ("a" * 100, "b" + "a" * 60, True),
        ("a" * 100, "a" * 47, False),
        ("deploy key in the vault", "where is the deploy key in the vault?", True),
        ("ok", "ok", False),
        ("", "anything", False),
        ("ä" * 30, "x" + "ä" * 30, True),
        ("The first sentence of a long text. " * 3, "The second sentence of it.", False),
    ],
)
def test_a_question_that_repeats_a_piece_of_a_text_is_recognized(
    text: str, question: str, repeats: bool
) -> None:
    assert Repetitions([text]).are_in(question) is repeats
