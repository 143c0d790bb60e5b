"""Import rules: functions over values, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from byheart.contracts import (
    DedupKey,
    EmbedderSpec,
    EntityRecord,
    KnownModel,
    LostLink,
    MemoryChange,
    MemoryRecord,
    MemoryState,
    Model,
    Models,
    StoredText,
    TextKey,
    key_of,
)
from byheart.model import HistoryEntry, Memory
from byheart.transfer import import_rules as rules
from tests.memory import made_memories

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)


def memory(**fields: Any) -> Memory:
    given = {"memory_id": "mem_1", "content_hash": "aa", "created_at": BEFORE, "updated_at": BEFORE}
    return made_memories.memory(**given | fields)


def text(turn_no: int | None = None, **fields: Any) -> StoredText:
    return StoredText(memory(**fields), BEFORE, None, (), (), turn_no)


def entry(version: int) -> HistoryEntry:
    changes = {"title": {"from": "old", "to": "new"}}
    return HistoryEntry("update", BEFORE, "tester", version, "a reason", changes)


def held(key: DedupKey, **fields: Any) -> MemoryState:
    given = {"memory_id": "mem_here", "version": 1, "created_at": BEFORE, "since_at": BEFORE}
    return made_memories.held(key=key, **given | fields)


# --- Known texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imported", "here", "expected"),
    [
        ({}, None, "new"),
        ({}, {}, "known"),
        ({}, {"expires_at": AFTER}, "known"),
        ({}, {"expires_at": BEFORE}, "renews"),
        ({}, {"expires_at": NOW}, "renews"),
        ({"expires_at": AFTER}, {"expires_at": BEFORE}, "renews"),
        ({"expires_at": BEFORE}, {"expires_at": BEFORE}, "known"),
        ({"expires_at": NOW}, {"expires_at": BEFORE}, "known"),
        ({"forgotten_at": BEFORE}, {}, "new"),
        ({"forgotten_at": BEFORE, "client_id": "c"}, {}, "known"),
        ({"client_id": "c"}, {"forgotten_at": BEFORE}, "known"),
        ({"client_id": "c"}, {"expires_at": BEFORE}, "known"),
    ],
)
def test_a_text_is_known_unless_only_the_memory_here_has_expired(
    imported: dict[str, Any], here: dict[str, Any] | None, expected: rules.Relation
) -> None:
    made = memory(**imported)
    same = None if here is None else held(key_of(made), **here)
    assert rules.relation_to(made, same, NOW) == expected


# --- Erased texts and ids -------------------------------------------------------------------------


def record_of_three() -> MemoryRecord:
    """Make a memory with the texts aa (present, version 3), bb (1) and cc (2)."""
    return MemoryRecord(
        text(version=3),
        (
            text(version=1, content_hash="bb", replaced_at=BEFORE),
            text(version=2, content_hash="cc", replaced_at=BEFORE),
        ),
        (entry(1), entry(2), entry(3), entry(4)),
    )


def test_all_texts_of_a_record_are_named_the_present_one_first() -> None:
    found = rules.texts_of(record_of_three())
    assert found == [TextKey("space", each) for each in ("aa", "bb", "cc")]


def test_a_record_without_erased_texts_comes_in_unchanged() -> None:
    record = record_of_three()
    elsewhere = {TextKey("other", "aa"), TextKey("other", "bb")}
    for erased in (set[TextKey](), elsewhere):
        assert rules.admit(record, erased, None) == rules.Admitted(record, 0)


def test_a_record_whose_present_text_was_erased_is_refused() -> None:
    assert rules.admit(record_of_three(), {TextKey("space", "aa")}, None) is None


@pytest.mark.parametrize(
    ("erased", "left", "quoting"),
    [("b", ["cc"], [3, 4]), ("c", ["bb"], [4]), ("bc", [], [4])],
)
def test_erased_earlier_texts_are_left_out_with_the_values_that_may_quote_them(
    erased: str, left: list[str], quoting: list[int]
) -> None:
    keys = {TextKey("space", each * 2) for each in erased}
    admitted = rules.admit(record_of_three(), keys, None)
    assert admitted is not None
    assert admitted.refused_texts == len(erased)
    assert [each.memory.content_hash for each in admitted.record.earlier] == left
    history = admitted.record.history
    assert [each.version for each in history if each.changes] == quoting
    assert [each.reason for each in history] == ["a reason"] * 4, "the entries stay"


def test_a_memory_whose_id_another_space_has_gets_an_id_of_its_own() -> None:
    admitted = rules.admit(record_of_three(), {TextKey("space", "bb")}, "mem_2")
    assert admitted is not None
    texts = (admitted.record.text, *admitted.record.earlier)
    assert [each.memory.memory_id for each in texts] == ["mem_2", "mem_2"]
    assert admitted.record.text.memory == memory(memory_id="mem_2", version=3)


# --- Places ---------------------------------------------------------------------------------------


def test_a_text_keeps_its_place_only_in_a_session_of_the_import() -> None:
    said = text(5, session_id="s")
    assert rules.place_to_keep(said, session_is_own=True) == 5
    assert rules.place_to_keep(said, session_is_own=False) is None
    assert rules.place_to_keep(text(None, session_id="s"), session_is_own=True) is None


def test_an_earlier_text_has_the_place_of_the_present_one_in_the_same_session() -> None:
    present = memory(session_id="s")
    assert rules.place_of_earlier(text(5, session_id="s"), present, 9) == 9
    assert rules.place_of_earlier(text(5, session_id="t"), present, 9) == 5
    assert rules.place_of_earlier(text(None), present, 9) is None


# --- Entities, models, references -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        (set(), ("Annie", "Straße")),
        ({"annie"}, ("Straße",)),
        ({"strasse", "ann"}, ("Annie",)),
        ({"annie", "strasse"}, ()),
    ],
)
def test_an_alias_that_is_in_use_here_is_left_out(
    spellings: set[str], expected: tuple[str, ...]
) -> None:
    entity = EntityRecord("space", "Ann", ("Annie", "ANN", "ANNIE", "Straße"))
    found = rules.with_free_aliases(entity, spellings)
    assert found == EntityRecord("space", "Ann", expected)


def test_a_store_without_a_model_adopts_the_imported_one() -> None:
    theirs, ours = KnownModel("theirs", 3), KnownModel("ours", 2)
    imported = [theirs.model]
    assert rules.adopt_models(Models(), imported, "theirs") == Models((theirs,), "theirs")
    assert rules.adopt_models(Models(), imported, None) == Models((theirs,))
    own = Models((ours,), "ours")
    assert rules.adopt_models(own, imported, "theirs") == Models((ours, theirs), "ours")


def test_an_imported_model_of_a_known_name_changes_nothing() -> None:
    own = Models((KnownModel("ours", 2, EmbedderSpec("hash", "ours")),), "ours")
    assert rules.adopt_models(own, [Model("ours", 3)], "ours") == own


def test_references_follow_the_memories_that_got_another_id() -> None:
    lost = [LostLink(1, "mem_a"), LostLink(2, "mem_unknown"), LostLink(3, "mem_a")]
    assert rules.relink(lost, {"mem_a": "mem_b", "mem_c": "mem_d"}) == [
        MemoryChange(1, {"superseded_by": "mem_b"}),
        MemoryChange(3, {"superseded_by": "mem_b"}),
    ]
