"""Rules of the review queue, without a store."""

from datetime import UTC, datetime, timedelta

import pytest

from byheart.contracts import ReviewedText, TextStamp
from byheart.errors import Conflict, InvalidInput
from byheart.language.conflicts import read_claims
from byheart.memory import review_items as rules
from byheart.memory.review_items import PairVerdict, TextName
from byheart.model import REVIEW_REASONS, Brief, Filter

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def text(number: int, content: str, importance: float = 5.0) -> ReviewedText:
    return ReviewedText(
        number, f"mem_{number}", "fact", None, content, content, None, (), importance
    )


def judge(some: str, other: str, similarity: float) -> PairVerdict | None:
    claims = read_claims(some), read_claims(other)
    return rules.judge_pair((text(1, some), text(2, other)), claims, similarity)


def brief(**changed: object) -> Brief:
    fields: dict[str, object] = {
        "memory_id": "mem_1",
        "kind": "fact",
        "title": None,
        "summary": "A fact.",
        **dict.fromkeys(("session_id", "agent_id", "path", "expires_at", "accessed_at")),
        **dict.fromkeys(("pinned_at", "superseded_by", "forgotten_at")),
        "origin": "tool",
        "tags": (),
        "importance": 5.0,
        "access_count": 0,
        "version": 1,
        **dict.fromkeys(("created_at", "updated_at"), NOW - timedelta(days=200)),
        **changed,
    }
    return Brief(**fields)  # type: ignore[arg-type]


def test_an_item_is_named_by_its_reason_and_its_memories_whatever_their_order() -> None:
    some, other = TextName("mem_b", 2), TextName("mem_a", 1)
    assert rules.item_id_of("duplicate", [some, other]) == "duplicate:mem_a@1+mem_b@2"
    assert rules.item_id_of("duplicate", [other, some]) == "duplicate:mem_a@1+mem_b@2"
    changed = rules.item_id_of("duplicate", [other, TextName("mem_b", 3)])
    assert changed != rules.item_id_of("duplicate", [other, some])


def test_the_name_of_an_item_is_read_back() -> None:
    texts = [TextName("+odd id+", 12), TextName("mem_a", 1)]
    name = rules.item_id_of("duplicate", texts)
    assert rules.parse_item_id(name) == ("duplicate", texts)
    for wrong in ("", "duplicate:", "duplicate:mem_a", "boring:mem_a@1", "secret:mem_a@1+", "a"):
        with pytest.raises(InvalidInput, match="names no item"):
            rules.parse_item_id(wrong)


def test_a_decision_about_a_changed_memory_is_refused() -> None:
    texts = [TextName("mem_a", 1), TextName("mem_b", 3)]
    rules.refuse_changed("item", texts, {"mem_a": 1, "mem_b": 3})
    for now in ({"mem_a": 1, "mem_b": 4}, {"mem_a": 1}):
        with pytest.raises(Conflict, match="mem_b"):
            rules.refuse_changed("item", texts, now)


def test_near_texts_contradict_each_other_or_say_the_same_or_neither() -> None:
    ports = judge("The API listens on port 8080.", "The API listens on port 8081.", 0.9)
    assert ports is not None
    assert ports.reason == "contradiction"
    assert ports.why.index("8081") < ports.why.index("8080"), "the later text comes first"
    same = judge("The cat sleeps on the sofa.", "On the sofa sleeps the cat.", 0.97)
    assert same == PairVerdict("duplicate", 0.97, "they are alike to 97%")
    assert judge("The cat sleeps on the sofa.", "On the sofa sleeps the cat.", 0.9) is None
    assert judge("The cat sleeps at Anna's.", "The cat sleeps at Bob's place.", 0.97) is None


def test_duplicates_form_groups_around_the_most_important_and_the_nearest_come_first() -> None:
    pairs = {
        (1, 2): PairVerdict("duplicate", 0.96, ""),
        (2, 3): PairVerdict("duplicate", 0.97, ""),
        (4, 5): PairVerdict("contradiction", 0.99, "they differ"),
    }
    found = rules.arrange_pairs(pairs, {1: 5.0, 2: 9.0, 3: 5.0, 4: 1.0, 5: 1.0})
    assert [(each.reason, each.memory_nos) for each in found] == [
        ("contradiction", (5, 4)),
        ("duplicate", (2, 3, 1)),
    ]
    # Without an important one, the oldest stays; the third is alike to the second only.
    found = rules.arrange_pairs(pairs, dict.fromkeys(range(6), 5.0))
    assert [each.memory_nos for each in found if each.reason == "duplicate"] == [(1, 2)]


def test_a_large_group_of_duplicates_becomes_several_items() -> None:
    pairs = {(1, other): PairVerdict("duplicate", 0.99, "") for other in range(2, 32)}
    found = rules.arrange_pairs(pairs, dict.fromkeys(range(40), 5.0))
    assert len(found) == 3
    assert all(each.memory_nos[0] == 1 and len(each.memory_nos) <= 12 for each in found)
    assert {no for each in found for no in each.memory_nos} == set(range(1, 32))


def test_turns_and_files_are_not_compared() -> None:
    assert rules.is_comparable(TextStamp(1, 1, "fact", False))
    assert not rules.is_comparable(TextStamp(1, 1, "message", True))
    assert not rules.is_comparable(TextStamp(1, 1, "file", False))


def test_pairs_among_many_texts_have_to_be_nearer() -> None:
    least = [rules.least_similarity(texts) for texts in (10, 1_000, 1_001, 20_000, 100_000)]
    assert least == [0.6, 0.6, 0.8, 0.8, 0.85]


def test_each_reason_says_why_and_offers_actions() -> None:
    soon = brief(expires_at=NOW + timedelta(days=3, hours=1))
    assert rules.tell_why("expiring", soon, NOW) == "it expires in 3 days"
    today = brief(expires_at=NOW + timedelta(hours=1))
    assert rules.tell_why("expiring", today, NOW) == "it expires within a day"
    assert rules.tell_why("unused", brief(), NOW) == "nobody changed or used it for 200 days"
    used = brief(accessed_at=NOW - timedelta(days=190))
    assert rules.tell_why("unused", used, NOW) == "nobody changed or used it for 190 days"
    assert "from a tool" in rules.tell_why("untrusted", brief(), NOW)
    assert rules.tell_secrets({"aws": 2, "jwt": 1}) == "it seems to hold a secret: 2 × aws, jwt"
    assert set(rules.ACTIONS) == set(REVIEW_REASONS)
    assert all({"keep", "forget"} <= set(actions) for actions in rules.ACTIONS.values())


def test_listings_choose_what_expires_soon_and_what_is_unused_for_long() -> None:
    where = Filter("space")
    expiring = rules.listing_of("expiring", where, NOW)
    assert expiring.expires_before == NOW + timedelta(days=14)
    unused = rules.listing_of("unused", where, NOW)
    assert unused.untouched_since == NOW - timedelta(days=180)
    assert unused.exclude_turns
    assert unused.exclude_pinned
    assert rules.listing_of("untrusted", where, NOW).where.trusted is False
