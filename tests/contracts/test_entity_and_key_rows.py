"""What the rows of entities and API keys promise, run on each implementation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from byheart.contracts import (
    ApiKeyReader,
    ApiKeyRows,
    EntityRows,
    KeyUse,
    Listing,
    Reader,
    Storage,
    Writer,
)
from byheart.memory import entities, transactions
from byheart.model import ApiKey, Entity, Filter
from tests.contracts.conftest import OpenStorage
from tests.contracts.covering import covers
from tests.contracts.drafts import draft


@covers(Reader.entities)
def test_entities_are_listed_renamed_and_merged_within_a_space(storage: Storage) -> None:
    transactions.write(
        storage, [draft("one", entities=("Ant", "Bee")), draft("two", entities=("ant",))], None
    )
    transactions.write(storage, [draft("far", entities=("Ant",), space="other")], None)
    with storage.reading() as reader:
        listed, total = reader.entities("space", None, 1, 0)
    assert [(each.name, each.memories) for each in listed] == [("Ant", 2)]
    assert total == 2
    assert entities.rename_stored(storage, "bee", "Wasp", "space").aliases == ("Bee",)
    merged = entities.merge_stored(storage, ["Ant"], "Wasp", "space")
    assert (merged.memories, merged.aliases) == (2, ("Ant", "Bee"))
    with storage.reading() as reader:
        both = Filter("space", entities=("ANT", "bee"), match="all")
        assert reader.count(Listing(both)) == 2
        assert reader.entities("other", None, 9, 0)[0][0].name == "Ant"


@covers(ApiKeyReader.find, ApiKeyRows.put, ApiKeyRows.remove, Reader.api_keys, Writer.api_keys)
def test_api_keys_are_found_by_their_secret_or_space_until_they_are_removed(
    open_storage: OpenStorage,
) -> None:
    storage, other = open_storage(), open_storage()
    at = datetime.now(UTC)
    made = [
        ApiKey(f"tok_{n}", f"name {n}", "read", f"space {n}", None, at + timedelta(n), None, None)
        for n in range(3)
    ]
    hashes = [sha256(each.name.encode()).digest() for each in made]
    with storage.writing("space") as writer:
        for token, secret_hash in zip(made, hashes, strict=True):
            writer.api_keys.put(token, secret_hash)
    storage.note([KeyUse("tok_1", at)])
    storage.note([KeyUse("tok_1", at - timedelta(days=1))])
    storage.settle()
    used = replace(made[1], last_used_at=at)
    with other.reading() as reader:
        assert reader.api_keys.find() == [made[0], used, made[2]]
        assert (
            reader.api_keys.find("space 1") == reader.api_keys.find(secret_hash=hashes[1]) == [used]
        )
        assert reader.api_keys.find("space 2", hashes[1]) == []
        nearly = hashes[0][:-1] + bytes([hashes[0][-1] ^ 1])
        assert reader.api_keys.find(secret_hash=nearly) == []
    with storage.writing("space") as writer:
        assert writer.api_keys.remove("tok_1")
        assert not writer.api_keys.remove("tok_1")
    with other.reading() as reader:
        assert reader.api_keys.find(secret_hash=hashes[1]) == []


@covers(EntityRows.absorb, EntityRows.describe)
def test_an_entity_absorbs_the_memories_of_another(storage: Storage) -> None:
    at = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
    names = (("Ant",), ("Ant", "Bee"), ("Bee",))
    made = [
        draft(f"text {n}", entities=names[n], created_at=at[n], updated_at=at[n]) for n in range(3)
    ]
    transactions.write(storage, made, None)
    with storage.writing("space") as writer:
        rows = writer.entities
        ant, bee = rows.find("ant", "space"), rows.find("bee", "space")
        assert ant is not None
        assert bee is not None
        rows.put(bee._replace(aliases=("Drone",)))
        assert rows.describe(ant.entity_no, "space") == Entity("Ant", 2, at[0], at[1], ())
        rows.absorb(bee.entity_no, ant.entity_no)
        assert rows.describe(ant.entity_no, "space") == Entity("Ant", 3, at[0], at[2], ())
        assert rows.find("Bee", "space") is rows.find("Drone", "space") is None
    transactions.forget(storage, [made[2].memory.memory_id], "space", "tester", None)
    with storage.writing("space") as writer:
        assert writer.entities.describe(ant.entity_no, "space").memories == 2, "visible ones"
