"""Entities: listed by use, one name for several spellings, and never across spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.errors import Conflict, InvalidInput, NotFound
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.databases import sqlite_only


def names(store: MemoryStore, **given: Any) -> dict[str, int]:
    return {entity.name: entity.memories for entity in store.entities.list(**given).entities}


def about(store: MemoryStore, *entities: str, **given: Any) -> list[str]:
    page = store.list(entities=list(entities), **given)
    return sorted(memory.content for memory in page.memories)


def test_entities_are_listed_with_counts_the_most_used_first(store: MemoryStore) -> None:
    store.save("one", entities=["Zebra", "Ant"])
    store.save("two", entities=["zebra", "Bee"])
    page = store.entities.list()
    assert [(each.name, each.memories) for each in page.entities] == [
        ("Zebra", 2),
        ("Ant", 1),
        ("Bee", 1),
    ]
    assert (page.total, page.has_more) == (3, False)
    assert page.entities[0].aliases == ()


def test_an_entity_says_when_it_was_first_and_last_seen(store: MemoryStore) -> None:
    first = store.save("one", entities=["Ant"])
    last = store.save("two", entities=["Ant"])
    [entity] = store.entities.list().entities
    assert (entity.first_seen, entity.last_seen) == (first.created_at, last.created_at)


def test_entities_come_in_pages_that_know_the_total(store: MemoryStore) -> None:
    store.save("text", entities=[f"name {number}" for number in range(5)])
    page = store.entities.list(limit=2, offset=2)
    assert [each.name for each in page.entities] == ["name 2", "name 3"]
    assert (page.total, page.has_more) == (5, True)
    behind = store.entities.list(limit=2, offset=6)
    assert (behind.entities, behind.total, behind.has_more) == ((), 5, False)


def test_a_prefix_finds_names_and_aliases_whatever_their_case(store: MemoryStore) -> None:
    store.save("one", entities=["PostgreSQL", "100%"])
    store.save("two", entities=["Redis"])
    store.entities.rename("Redis", "Valkey")
    assert names(store, prefix="post") == {"PostgreSQL": 1}
    assert names(store, prefix="RED") == {"Valkey": 1}
    assert names(store, prefix="%") == {}
    assert names(store, prefix="100%") == {"100%": 1}


def test_only_live_memories_count(store: MemoryStore) -> None:
    gone = store.save("gone", entities=["Ant", "Bee"])
    store.save("stays", entities=["Ant"])
    store.forget(gone.memory_id)
    changed = store.save("before", entities=["Dog"])
    store.update(changed.memory_id, content="after", entities=["Eel"])
    assert names(store)["Ant"] == 1
    assert "Bee" not in names(store)
    assert "Dog" not in names(store)
    assert names(store)["Eel"] == 1


@sqlite_only
def test_expired_memories_do_not_count(store: MemoryStore, path: Path) -> None:
    store.save("text", entities=["Ant"], ttl_days=1)
    with apsw.Connection(str(path)) as connection:
        connection.execute("UPDATE memories SET expires_at = 1")
    assert store.entities.list().total == 0


def test_a_restored_memory_counts_again(store: MemoryStore) -> None:
    saved = store.save("text", entities=["Ant"])
    store.forget(saved.memory_id)
    assert names(store) == {}
    store.restore(saved.memory_id)
    assert names(store) == {"Ant": 1}


def test_entities_of_another_space_are_not_seen(store: MemoryStore) -> None:
    store.save("text", entities=["Ant"], space="other")
    assert names(store) == {}
    assert names(store, space="other") == {"Ant": 1}


# --- Renaming ---------------------------------------------------------------------------------


def test_a_renamed_entity_is_found_under_both_names(store: MemoryStore) -> None:
    store.save("text", entities=["Postgres"])
    renamed = store.entities.rename("postgres", "PostgreSQL")
    assert (renamed.name, renamed.memories, renamed.aliases) == ("PostgreSQL", 1, ("Postgres",))
    assert about(store, "PostgreSQL") == about(store, "POSTGRES") == ["text"]
    assert store.list().memories[0].entities == ("PostgreSQL",)


def test_what_is_saved_under_the_old_name_counts_as_the_new_one(store: MemoryStore) -> None:
    store.save("one", entities=["Postgres"])
    store.entities.rename("Postgres", "PostgreSQL")
    store.save("two", entities=["postgres"])
    assert names(store) == {"PostgreSQL": 2}
    assert about(store, "PostgreSQL") == ["one", "two"]


def test_a_change_of_case_is_a_rename_without_an_alias(store: MemoryStore) -> None:
    store.save("text", entities=["byheart"])
    assert store.entities.rename("byheart", "Byheart").aliases == ()
    assert names(store) == {"Byheart": 1}


def test_a_name_may_go_back_to_what_it_was(store: MemoryStore) -> None:
    store.save("text", entities=["Ant"])
    store.entities.rename("Ant", "Bee")
    back = store.entities.rename("Bee", "Ant")
    assert (back.name, back.aliases) == ("Ant", ("Bee",))
    assert about(store, "bee") == ["text"]


@pytest.mark.parametrize("taken", ["Bee", "BEE", "Wasp"])
def test_renaming_to_another_entity_is_refused_with_a_hint_at_merge(
    store: MemoryStore, taken: str
) -> None:
    store.save("one", entities=["Ant"])
    store.save("two", entities=["Wasp"])
    store.entities.rename("Wasp", "Bee")
    with pytest.raises(Conflict, match="another entity") as caught:
        store.entities.rename("Ant", taken)
    assert "merge" in caught.value.hint
    assert names(store) == {"Ant": 1, "Bee": 1}


def test_renaming_what_is_not_there_says_so(store: MemoryStore) -> None:
    store.save("text", entities=["Ant"], space="other")
    with pytest.raises(NotFound, match="Ant"):
        store.entities.rename("Ant", "Bee")


# --- Merging ----------------------------------------------------------------------------------


def test_merged_entities_count_as_one_under_every_spelling(store: MemoryStore) -> None:
    store.save("one", entities=["Postgres"])
    store.save("two", entities=["PG", "Postgres"])
    store.save("three", entities=["PostgreSQL"])
    merged = store.entities.merge(["Postgres", "PG"], "PostgreSQL")
    assert (merged.name, merged.memories) == ("PostgreSQL", 3)
    assert set(merged.aliases) == {"PG", "Postgres"}
    for spelling in ("postgres", "pg", "PostgreSQL"):
        assert about(store, spelling) == ["one", "three", "two"]
    store.save("four", entities=["pg"])
    assert names(store) == {"PostgreSQL": 4}


def test_a_merge_into_a_new_name_makes_it(store: MemoryStore) -> None:
    store.save("one", entities=["Ant"])
    store.save("two", entities=["Bee"])
    assert store.entities.merge(["Ant", "Bee"], "Insect").memories == 2
    assert names(store) == {"Insect": 2}


def test_a_merge_keeps_the_aliases_of_what_is_merged(store: MemoryStore) -> None:
    store.save("one", entities=["A"])
    store.save("two", entities=["B"])
    store.entities.rename("A", "AA")
    assert set(store.entities.merge("AA", "B").aliases) == {"A", "AA"}
    assert about(store, "a") == ["one", "two"]


def test_a_merge_into_an_alias_of_one_of_them_takes_that_name(store: MemoryStore) -> None:
    store.save("one", entities=["A"])
    store.save("two", entities=["B"])
    store.entities.rename("A", "AA")
    merged = store.entities.merge(["AA", "B"], "A")
    assert (merged.name, merged.memories) == ("A", 2)
    assert set(merged.aliases) == {"AA", "B"}


def test_the_same_entity_named_twice_is_merged_once(store: MemoryStore) -> None:
    store.save("one", entities=["A"])
    store.entities.rename("A", "AA")
    store.save("two", entities=["B"])
    assert store.entities.merge(["A", "AA", "b", "B"], "B").memories == 2


def test_a_merge_never_crosses_spaces(store: MemoryStore) -> None:
    store.save("here", entities=["Ant", "Bee"])
    store.save("there", entities=["Ant", "Bee"], space="other")
    store.entities.merge("Ant", "Bee")
    assert names(store) == {"Bee": 1}
    assert names(store, space="other") == {"Ant": 1, "Bee": 1}
    store.save("there again", entities=["Ant"], space="other")
    assert names(store, space="other") == {"Ant": 2, "Bee": 1}
    with pytest.raises(NotFound):
        store.entities.merge("Ant", "Bee", space="third")


def test_a_merge_that_names_something_unknown_changes_nothing(store: MemoryStore) -> None:
    store.save("text", entities=["Ant", "Bee"])
    with pytest.raises(NotFound, match="Cat"):
        store.entities.merge(["Ant", "Cat"], "Bee")
    assert names(store) == {"Ant": 1, "Bee": 1}
    with pytest.raises(InvalidInput):
        store.entities.merge([], "Bee")


# --- Filters ----------------------------------------------------------------------------------


def test_match_all_counts_two_spellings_of_an_entity_once(store: MemoryStore) -> None:
    store.save("both", entities=["PG", "Redis"])
    store.save("one", entities=["Postgres"])
    store.entities.merge(["PG", "Postgres"], "PostgreSQL")
    assert about(store, "pg", "postgres", match="all") == ["both", "one"]
    assert about(store, "pg", "redis", "PostgreSQL", match="all") == ["both"]
    assert about(store, "pg", "nobody", match="all") == []
    assert about(store, "redis", "nobody") == ["both"]


def test_a_search_honours_aliases_at_once_in_every_process(
    store: MemoryStore, open_store: OpenStore
) -> None:
    store.save("the database is slow", entities=["PG"])
    other = open_store()
    assert other.search("database", entities=["PG"]).total_results == 1
    store.entities.rename("PG", "PostgreSQL")
    for spelling in ("pg", "PostgreSQL"):
        for mode in ("fts", "vector", "hybrid"):
            found = other.search("database", mode=mode, entities=[spelling], match="all")
            assert found.total_results == 1


# --- What becomes of them ---------------------------------------------------------------------


@sqlite_only
def test_an_entity_goes_with_its_last_memory_and_so_do_its_aliases(
    store: MemoryStore, path: Path
) -> None:
    saved = store.save("text", entities=["PG"])
    store.entities.rename("PG", "PostgreSQL")
    store.forget(saved.memory_id, hard=True)
    with apsw.Connection(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM entity_aliases").get == 0
    store.save("another", entities=["PG"])
    assert names(store) == {"PG": 1}


def test_an_update_of_its_only_memory_leaves_an_entity_its_aliases(store: MemoryStore) -> None:
    saved = store.save("text", entities=["PG"])
    store.entities.rename("PG", "PostgreSQL")
    store.update(saved.memory_id, importance=9)
    store.update(saved.memory_id, content="another text", entities=["pg"])
    [entity] = store.entities.list().entities
    assert (entity.name, entity.aliases) == ("PostgreSQL", ("PG",))


def test_a_forgotten_memory_keeps_its_entities_for_the_day_it_comes_back(
    store: MemoryStore,
) -> None:
    saved = store.save("text", entities=["PG"])
    store.forget(saved.memory_id)
    renamed = store.entities.rename("PG", "PostgreSQL")
    assert (renamed.memories, renamed.first_seen, renamed.last_seen) == (0, None, None)
    assert store.restore(saved.memory_id).entities == ("PostgreSQL",)


def test_the_doctor_is_content_after_renames_and_merges(store: MemoryStore) -> None:
    store.save("one", entities=["A", "B"])
    store.save("two", entities=["C"])
    store.entities.rename("A", "AA")
    store.entities.merge(["AA", "B"], "C")
    assert all(finding.ok for finding in store.admin.doctor())
    store.admin.doctor(rebuild=True)
    assert about(store, "a", "b", match="all") == ["one", "two"]


@pytest.mark.parametrize("spellings", [("Straße", "Strasse"), ("Strasse", "Straße")])
def test_of_two_spellings_of_an_entity_the_longer_one_is_its_name(
    store: MemoryStore, spellings: tuple[str, str]
) -> None:
    """Both have the same key, because case folding turns ß into ss."""
    for spelling in spellings:
        store.save(f"written as {spelling}", entities=[spelling])
    assert names(store) == {"Strasse": 2}


def test_of_two_spellings_of_one_length_the_first_one_is_the_name(store: MemoryStore) -> None:
    store.save("one", entities=["Acme"])
    store.save("two", entities=["ACME"])
    assert names(store) == {"Acme": 2}
