"""`dedupe` proposes, `merge` does: groups, who is kept, and that it can be undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.errors import Conflict, InvalidInput, NotFound
from byheart.memory import notes
from byheart.model import Dedupe
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder


def groups(answer: Dedupe) -> list[tuple[str, ...]]:
    """Give who is kept and who would go, by their summaries."""
    return [(each.summary, *(other.summary for other in each.others)) for each in answer.proposals]


def save(store: MemoryStore, content: str, **given: Any) -> str:
    return store.save(content, **{"importance": 5.0, **given}).memory_id


# --- Proposals --------------------------------------------------------------------------------


def test_groups_of_almost_the_same_are_proposed_and_nothing_is_changed(
    arrows: MemoryStore,
) -> None:
    for text in ("east a", "east b", "north a", "north b", "west a"):
        save(arrows, text)
    answer = arrows.admin.dedupe()
    assert groups(answer) == [("east a", "east b"), ("north a", "north b")]
    assert (answer.total, answer.has_more, answer.applied) == (2, False, False)
    assert answer.proposals[0].others[0].similarity == 1.0
    assert arrows.list().total == 5


def test_the_most_important_is_kept_then_the_most_used_then_the_oldest(
    arrows: MemoryStore,
) -> None:
    save(arrows, "east old")
    important = save(arrows, "east important", importance=9)
    save(arrows, "north old")
    used = save(arrows, "north used")
    arrows._storage.note(notes.accesses([used], "default"))
    oldest = save(arrows, "west old")
    save(arrows, "west new")
    kept = {each.keep: each.why for each in arrows.admin.dedupe().proposals}
    assert kept == {
        important: "the most important",
        used: "the most used",
        oldest: "the oldest",
    }


def test_everything_in_a_group_is_like_the_one_that_is_kept(arrows: MemoryStore) -> None:
    # A row in which only neighbours are near: 17 degrees are a cosine of 0.956.
    for place, name in enumerate("abcd"):
        save(arrows, f"at {17 * place}.0 {name}", importance=9 if name == "b" else 5)
    answer = arrows.admin.dedupe()
    assert answer.left_out == 3  # the numbers differ
    assert answer.proposals == ()


def test_what_differs_in_a_name_a_number_or_a_negation_is_left_out(arrows: MemoryStore) -> None:
    for text in (
        "east is port 8080",
        "east is port 8081",
        "east is not port 8080",
        "east is where Bob is",
        "east is where Carl is",
        "the east is port 8080",
    ):
        save(arrows, text)
    answer = arrows.admin.dedupe()
    assert groups(answer) == [("east is port 8080", "the east is port 8080")]
    assert answer.left_out > 0


def test_only_one_kind_and_session_is_compared(arrows: MemoryStore) -> None:
    save(arrows, "east a")
    save(arrows, "east b", kind="fact")
    save(arrows, "east c", session_id="s")
    save(arrows, "east d", space="other")
    assert arrows.admin.dedupe().total == 0


def test_filters_choose_what_is_compared(arrows: MemoryStore) -> None:
    for kind in ("note", "fact"):
        save(arrows, "east a", kind=kind)
        save(arrows, "east b", kind=kind, tags=["x"])
    assert arrows.admin.dedupe().total == 2
    assert arrows.admin.dedupe(kind="fact").total == 1
    assert arrows.admin.dedupe(tags=["x"]).total == 0


def test_what_was_forgotten_replaced_or_superseded_is_not_proposed(arrows: MemoryStore) -> None:
    save(arrows, "east a")
    arrows.forget(save(arrows, "east b"))
    changed = save(arrows, "east c")
    arrows.update(changed, content="north c")
    arrows.supersede(save(arrows, "east d"), changed)
    assert arrows.admin.dedupe().total == 0


def test_lengths_may_differ_by_a_factor_of_two_only(arrows: MemoryStore) -> None:
    save(arrows, "east a b")
    save(arrows, "east a b c d e f g")
    assert arrows.admin.dedupe().total == 0


def test_documents_that_share_a_passage_are_not_the_same(arrows: MemoryStore) -> None:
    def document(*directions: str) -> str:
        return "\n\n".join(f"# {each}\n\nall about {each}" for each in directions)

    save(arrows, document("east", "north", "west"))
    save(arrows, document("east", "south", "up"))
    assert arrows.admin.dedupe().total == 0
    save(arrows, document("east", "north", "west") + "\n\nThat is all.")
    assert arrows.admin.dedupe().total == 1


def test_the_limit_cuts_proposals_and_says_so(arrows: MemoryStore) -> None:
    for text in ("east a", "east b", "north a", "north b"):
        save(arrows, text)
    answer = arrows.admin.dedupe(limit=1)
    assert (len(answer.proposals), answer.total, answer.has_more) == (1, 2, True)


def test_an_empty_store_has_nothing_to_propose(store: MemoryStore) -> None:
    assert store.admin.dedupe().proposals == ()


def test_chunks_without_vectors_are_spoken_of(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    watched.down = True
    store = open_store(embedder=watched)
    store.save("text")
    assert "1 chunks have no vectors yet" in (store.admin.dedupe().degraded or "")


@pytest.mark.parametrize(
    "given", [{"threshold": 0.5}, {"threshold": 2}, {"limit": 0}, {"as_of": "2026-01-01"}]
)
def test_bad_input_is_refused(store: MemoryStore, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        store.admin.dedupe(**given)


# --- Applying and merging ---------------------------------------------------------------------


def test_applied_the_others_are_hidden_and_can_be_restored(arrows: MemoryStore) -> None:
    keep, other = save(arrows, "east a"), save(arrows, "east b")
    assert arrows.admin.dedupe(apply=True).applied
    assert [memory.memory_id for memory in arrows.list().memories] == [keep]
    entry = arrows.history(other)[-1]
    assert (entry.operation, entry.who, entry.reason) == ("forget", "dedupe", f"merged into {keep}")
    arrows.restore(other)
    assert arrows.list().total == 2
    assert arrows.admin.dedupe().total == 1


def test_the_kept_one_gets_tags_entities_and_accesses_of_all(store: MemoryStore) -> None:
    keep = save(store, "one", tags=["a", "b"], entities=["Ant"])
    second = save(store, "two", tags=["b", "c"], entities=["Bee"])
    third = save(store, "three", entities=["ant"])
    for memory_id in (keep, second, second, third):
        store._storage.note(notes.accesses([memory_id], "default"))
    merged = store.admin.merge(keep, [second, third], reason="said thrice")
    memory = store.get(keep)
    assert set(memory.tags) == set(merged.tags) == {"a", "b", "c"}
    assert set(memory.entities) == set(merged.entities) == {"Ant", "Bee"}
    assert memory.access_count == merged.access_count == 4
    assert (memory.version, merged.version, merged.merged) == (2, 2, (second, third))
    assert memory.accessed_at is not None
    assert memory.content == "one"


def test_a_merge_is_told_in_the_history_of_both(store: MemoryStore) -> None:
    keep, other = save(store, "one"), save(store, "two", tags=["a"])
    store.admin.merge(keep, other, reason="the same", who="me")
    kept, gone = store.history(keep)[-1], store.history(other)[-1]
    assert (kept.operation, kept.who, kept.reason) == (
        "update",
        "me",
        f"merged with {other}: the same",
    )
    assert kept.changes == {"tags": {"from": [], "to": ["a"]}}
    assert gone.reason == f"merged into {keep}: the same"


def test_what_a_merged_memory_superseded_is_superseded_by_the_kept_one(
    store: MemoryStore,
) -> None:
    old, keep, other = save(store, "old"), save(store, "one"), save(store, "two")
    store.supersede(old, other)
    store.admin.merge(keep, other)
    assert store.get(old).superseded_by == keep


def test_what_was_superseded_is_not_kept_for_others(store: MemoryStore) -> None:
    old, new = save(store, "old"), save(store, "new")
    store.supersede(old, new)
    with pytest.raises(Conflict, match="superseded"):
        store.admin.merge(old, new)
    assert store.list().total == 2


def test_a_merge_is_all_or_nothing(store: MemoryStore) -> None:
    keep, other = save(store, "one"), save(store, "two", tags=["a"])
    with pytest.raises(NotFound):
        store.admin.merge(keep, [other, "mem_nowhere"])
    elsewhere = save(store, "three", space="other")
    with pytest.raises(NotFound):
        store.admin.merge(keep, [other, elsewhere])
    assert store.list().total == 2
    assert store.get(keep).tags == ()


def test_a_memory_is_not_merged_into_itself_nor_with_nothing(store: MemoryStore) -> None:
    keep = save(store, "one")
    with pytest.raises(InvalidInput, match="itself"):
        store.admin.merge(keep, [keep])
    with pytest.raises(InvalidInput, match="missing"):
        store.admin.merge(keep, [])


def test_the_doctor_is_content_after_merges(arrows: MemoryStore) -> None:
    for text in ("east a", "east b", "east c"):
        save(arrows, text, tags=["x"], entities=["E"])
    arrows.admin.dedupe(apply=True)
    assert all(finding.ok for finding in arrows.admin.doctor())


# --- Meaning ----------------------------------------------------------------------------------


@pytest.mark.model
def test_with_the_real_model_only_what_says_the_same_is_proposed(tmp_path: Path) -> None:
    with byheart.open(tmp_path / "memory.db") as store:
        for text in (
            "The deploy key is kept in the vault under ci/deploy.",
            "The deploy key is stored in the vault at ci/deploy.",
            "Backups run every night at 2 am.",
            "Backups run every night at 3 am.",
            "The weekly meeting of the team was moved to Thursday at noon.",
            "The weekly meeting of the team was moved to Friday at noon.",
            "The user lives in Berlin.",
            "User lives in Berlin",
            "Berlin is cold in winter.",
        ):
            store.save(text, kind="fact", importance=5)
        answer = store.admin.dedupe()
        assert {frozenset(group) for group in groups(answer)} == {
            frozenset(
                (
                    "The deploy key is kept in the vault under ci/deploy.",
                    "The deploy key is stored in the vault at ci/deploy.",
                )
            ),
            frozenset(("The user lives in Berlin.", "User lives in Berlin")),
        }
        assert answer.left_out == 2
