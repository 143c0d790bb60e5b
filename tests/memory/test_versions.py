"""Check how a memory changes, as functions over values decide it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from byheart.contracts import DedupKey, Event, MemoryChange, MemoryState, Revision, key_of
from byheart.errors import Conflict, NotFound, VersionConflict
from byheart.memory import versions
from byheart.model import SaveResult
from tests.memory.made_memories import MICROSECOND, NOW, SECOND, held, memory

YESTERDAY = NOW - timedelta(days=1)
TURN = DedupKey("space", "session", "turn", "b" * 64, is_turn=True, client_id="id")
NAMED = DedupKey("space", None, "note", "a" * 64, client_id="id")


def revision(expected_version: int = 3) -> Revision:
    return Revision(memory(), expected_version, (), "anna", {}, None)


# --- Which memory is the same? ------------------------------------------------------------------


def test_a_text_saved_again_is_described_as_the_memory_that_holds_it() -> None:
    assert versions.result_of(held()) == SaveResult(
        "mem_a", "unchanged", 2, "a" * 64, NOW - timedelta(days=9), 1, 3
    )


@pytest.mark.parametrize(
    ("expires_at", "valid"),
    [(None, True), (NOW + MICROSECOND, True), (NOW, False), (NOW - MICROSECOND, False)],
    ids=["never", "a moment later", "at this moment", "a moment ago"],
)
def test_a_memory_is_valid_until_the_moment_it_expires(
    expires_at: datetime | None, valid: bool
) -> None:
    assert held(expires_at=expires_at).is_valid(NOW) is valid
    assert versions.is_same(held(expires_at=expires_at), NOW) is valid


def test_a_hidden_memory_is_not_the_one_that_is_saved_again() -> None:
    assert not versions.is_same(held(forgotten_at=YESTERDAY), NOW)


@pytest.mark.parametrize("field", ["forgotten_at", "expires_at"])
def test_a_client_id_names_the_same_memory_even_if_that_is_hidden_or_expired(field: str) -> None:
    assert versions.is_same(held(key=NAMED, **{field: YESTERDAY}), NOW)


# --- A client id that names another text ----------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "version", "other"),
    [
        (TURN, 1, True),
        (TURN, 2, False),
        (TURN._replace(content_hash="a" * 64), 1, False),
        (TURN._replace(client_id=None), 1, False),
        (TURN._replace(is_turn=False), 1, False),
    ],
    ids=["another text", "changed since", "the same text", "no client id", "no turn"],
)
def test_only_a_turn_with_a_client_id_can_name_another_text(
    key: DedupKey, version: int, other: bool
) -> None:
    known = versions.result_of(held(version=version))
    assert versions.names_other_text(key, known) is other


def test_the_key_of_a_turn_names_another_text_as_the_turn_itself_does() -> None:
    turn = memory(role="user", client_id="id", content_hash="b" * 64)
    known = versions.result_of(held(version=1))
    assert versions.names_other_text(key_of(turn), known)
    assert not versions.names_other_text(key_of(replace(turn, role=None)), known)


def test_the_error_for_another_text_names_the_item_the_client_id_and_the_memory() -> None:
    error = versions.other_text_error(TURN, versions.result_of(held()), "item 4: ")
    assert error.message == (
        "item 4: client_id 'id' was logged before with another text, as mem_a, which stays as it is"
    )
    assert "mem_a" in error.hint
    assert versions.other_text_error(TURN, versions.result_of(held())).message.startswith("client")


# --- Changes that are refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        None,
        held("mem_b"),
        held("mem_b", memory_no=8, forgotten_at=YESTERDAY),
        held("mem_b", memory_no=8, expires_at=NOW),
    ],
    ids=["no other memory", "the memory itself", "a hidden memory", "an expired memory"],
)
def test_a_change_may_have_a_text_that_no_other_valid_memory_holds(
    other: MemoryState | None,
) -> None:
    assert versions.refuse_double(revision(), held(), other, NOW) is None


def test_a_change_to_the_text_of_another_valid_memory_is_refused() -> None:
    with pytest.raises(Conflict, match="mem_b already holds this text") as refusal:
        versions.refuse_double(revision(), held(), held("mem_b", memory_no=8), NOW)
    assert "mem_a" in refusal.value.hint
    assert "mem_b" in refusal.value.hint


def test_a_change_of_the_expected_version_is_accepted() -> None:
    present = held(version=3)
    assert versions.refuse_changed(revision(3), present) is present


@pytest.mark.parametrize("present", [None, held(forgotten_at=YESTERDAY)], ids=["gone", "hidden"])
def test_a_change_of_a_memory_that_was_forgotten_meanwhile_is_refused(
    present: MemoryState | None,
) -> None:
    with pytest.raises(NotFound, match="mem_a was forgotten meanwhile"):
        versions.refuse_changed(revision(), present)


@pytest.mark.parametrize("version", [2, 4])
def test_a_change_of_another_version_is_refused(version: int) -> None:
    with pytest.raises(VersionConflict, match=f"has version {version} by now, not 3"):
        versions.refuse_changed(revision(3), held(version=version))


def test_a_visible_memory_is_given_back_even_if_it_has_expired() -> None:
    present = held(expires_at=YESTERDAY)
    assert versions.require_visible(present, "mem_a") is present


def test_an_unknown_memory_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no mem_x in this space") as refusal:
        versions.require_visible(None, "mem_x")
    assert "search" in refusal.value.hint


def test_a_hidden_memory_is_not_found_and_can_be_restored() -> None:
    with pytest.raises(NotFound, match="mem_a was forgotten on 2026-02-28") as refusal:
        versions.require_visible(held(forgotten_at=YESTERDAY), "mem_a")
    assert "restore" in refusal.value.hint


def test_a_memory_that_was_never_forgotten_is_not_refused() -> None:
    versions.refuse_forgotten("mem_a", None)
    with pytest.raises(NotFound, match="mem_a was forgotten on 2026-03-01"):
        versions.refuse_forgotten("mem_a", NOW)


# --- A new text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since_at", "replaced_at"),
    [
        (NOW - SECOND, NOW),
        (NOW - MICROSECOND, NOW),
        (NOW, NOW + MICROSECOND),
        (NOW + SECOND, NOW + SECOND + MICROSECOND),
    ],
    ids=["later", "just later", "at the same moment", "the clock went back"],
)
def test_an_earlier_text_ends_after_it_began(since_at: datetime, replaced_at: datetime) -> None:
    assert versions.end_text(held(since_at=since_at), NOW) == MemoryChange(
        7,
        {
            "memory_id": "mem_a@3",
            "version_of": "mem_a",
            "replaced_at": replaced_at,
            "lapsed_at": None,
        },
    )


def test_a_new_text_begins_where_the_earlier_one_ends_and_keeps_the_life_of_the_memory() -> None:
    present = held(
        since_at=NOW + SECOND,
        accessed_at=NOW - 4 * SECOND,
        access_count=5,
        superseded_by="mem_b",
        superseded_at=NOW - 3 * SECOND,
        pinned_at=NOW - 2 * SECOND,
        untrusted_at=NOW - SECOND,
    )
    assert versions.carry_over(present, versions.end_text(present, NOW)) == {
        "since_at": NOW + SECOND + MICROSECOND,
        "accessed_at": NOW - 4 * SECOND,
        "access_count": 5,
        "superseded_by": "mem_b",
        "superseded_at": NOW - 3 * SECOND,
        "pinned_at": NOW - 2 * SECOND,
        "untrusted_at": NOW - SECOND,
        "version": 4,
    }


def test_an_update_writes_the_fields_of_the_memory_but_not_its_life() -> None:
    changed = memory(title="Tea", derived=("summary",), version=9, access_count=5, pinned_at=NOW)
    written = versions.written_fields(changed, ("language",))
    assert written["title"] == "Tea"
    assert written["content_hash"] == "a" * 64
    assert written["derived"] == ("language",)
    assert written.keys().isdisjoint(("version", "access_count", "accessed_at", "pinned_at"))
    assert written.keys().isdisjoint(("superseded_by", "forgotten_at", "replaced_at"))


def test_the_history_notes_each_field_with_its_old_and_its_new_value() -> None:
    assert versions.update_event(NOW, "anna", {"title": ("Tea", "Coffee")}) == Event(
        "update", NOW, "anna", None, {"title": {"from": "Tea", "to": "Coffee"}}
    )


EARLIER = NOW - timedelta(days=2)


# --- Superseding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "superseded_at"),
    [(None, "mem_b", NOW), ("mem_b", "mem_c", NOW), ("mem_b", None, None)],
    ids=["superseded", "superseded by another", "valid again"],
)
def test_superseding_is_a_new_version_and_is_noted(
    before: str | None, after: str | None, superseded_at: datetime | None
) -> None:
    old = held(superseded_by=before, valid_until=EARLIER if before else None)
    closed = versions.Closing(None, EARLIER) if before else None
    new = None if after is None else held(after)
    change = versions.supersede(old, new, closed, NOW, "anna", "moved")
    noted = {
        "superseded_by": {"from": before, "to": after},
        "valid_until": {
            "from": None if after else EARLIER,
            "to": NOW if after else None,
        },
    }
    assert change == MemoryChange(
        7,
        {
            "superseded_by": after,
            "superseded_at": superseded_at,
            "valid_until": NOW if after else None,
            "version": 4,
            "updated_at": NOW,
        },
        Event("supersede", NOW, "anna", "moved", noted),
    )


@pytest.mark.parametrize("by", [None, "mem_b"])
def test_superseding_by_the_same_memory_changes_nothing(by: str | None) -> None:
    new = None if by is None else held(by)
    assert versions.supersede(held(superseded_by=by), new, None, NOW, "anna", None) is None


@pytest.mark.parametrize(
    ("new", "successors"),
    [("mem_a", ()), ("mem_b", ("mem_a",)), ("mem_b", ("mem_c", "mem_a"))],
    ids=["by itself", "by a memory it supersedes", "by a memory it supersedes over another"],
)
def test_a_circle_of_superseding_is_refused(new: str, successors: tuple[str, ...]) -> None:
    with pytest.raises(Conflict, match=r"mem_a cannot be superseded by (itself|mem_b)"):
        versions.refuse_circle("mem_a", new, successors)


def test_a_chain_of_superseding_is_allowed() -> None:
    assert versions.refuse_circle("mem_a", "mem_b", ("mem_c", "mem_d")) is None


# --- Forgetting, restoring, pinning ---------------------------------------------------------------


def hiding(at: datetime | None, event: Event) -> MemoryChange:
    return MemoryChange(7, {"forgotten_at": at, "lapsed_at": None}, event, every_text=True)


def test_forgetting_hides_every_text_of_a_memory() -> None:
    event = Event("forget", NOW, "anna", "wrong")
    assert versions.forget(held(), NOW, "anna", "wrong") == hiding(NOW, event)


def test_forgetting_a_hidden_memory_changes_nothing() -> None:
    assert versions.forget(held(forgotten_at=YESTERDAY), NOW, "anna", None) is None


def test_an_expired_memory_is_hidden_with_the_reason_that_its_text_was_saved_again() -> None:
    change = versions.set_aside(held(expires_at=YESTERDAY), NOW, "anna")
    reason = "it had expired, and the same text was saved again"
    assert change == hiding(NOW, Event("forget", NOW, "anna", reason))


@pytest.mark.parametrize(
    "same",
    [
        None,
        held(forgotten_at=YESTERDAY),
        held("mem_b", memory_no=8, forgotten_at=YESTERDAY),
    ],
    ids=["no other memory", "the memory itself", "another hidden memory"],
)
def test_restoring_shows_every_text_of_a_hidden_memory(same: MemoryState | None) -> None:
    change = versions.restore(held(forgotten_at=YESTERDAY), same, NOW, "anna")
    assert change == hiding(None, Event("restore", NOW, "anna"))


def test_restoring_a_visible_memory_changes_nothing() -> None:
    assert versions.restore(held(), held("mem_b", memory_no=8), NOW, "anna") is None


def test_a_memory_is_not_restored_if_its_text_was_saved_again() -> None:
    hidden = held(forgotten_at=YESTERDAY)
    with pytest.raises(Conflict, match="the same text was saved again as mem_b") as refusal:
        versions.restore(hidden, held("mem_b", memory_no=8), NOW, "anna")
    assert "mem_b" in refusal.value.hint


def test_the_memory_itself_does_not_prevent_its_restoring() -> None:
    """A backend may find the row as visible already: only another memory prevents restoring."""
    assert versions.restore(held(forgotten_at=YESTERDAY), held(), NOW, "anna") is not None


@pytest.mark.parametrize(
    ("before", "pinned", "fields", "operation"),
    [
        (None, True, {"pinned_at": NOW}, "pin"),
        (YESTERDAY, False, {"pinned_at": None}, "unpin"),
    ],
)
def test_a_pin_is_set_or_removed_without_a_new_version(
    before: datetime | None, pinned: bool, fields: dict[str, Any], operation: Any
) -> None:
    change = versions.pin(held(pinned_at=before), NOW, "anna", pinned=pinned)
    assert change == MemoryChange(7, fields, Event(operation, NOW, "anna"), indexed=False)


@pytest.mark.parametrize(("before", "pinned"), [(YESTERDAY, True), (None, False)])
def test_a_pin_that_is_there_already_keeps_its_time(before: datetime | None, pinned: bool) -> None:
    assert versions.pin(held(pinned_at=before), NOW, "anna", pinned=pinned) is None
