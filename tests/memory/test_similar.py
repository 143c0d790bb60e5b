"""What `save` says about near-duplicates: never in the way of saving, never out of its scope."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

import byheart
from byheart.errors import StoreDamaged
from byheart.model import SaveResult, to_wire
from byheart.store import MemoryStore
from tests.conftest import ArrowEmbedder, OpenStore, WatchedEmbedder
from tests.databases import sqlite_only


def similar(result: SaveResult) -> list[str]:
    return [each.memory_id for each in result.similar]


def test_a_save_names_what_says_almost_the_same_best_first(arrows: MemoryStore) -> None:
    far = arrows.save("at 20 degrees")
    near = arrows.save("at 5 degrees")
    arrows.save("at 90 degrees")
    result = arrows.save("at 0 degrees", summary="due east")
    assert similar(result) == [near.memory_id, far.memory_id]
    assert [round(each.similarity, 3) for each in result.similar] == [0.996, 0.94]
    assert result.similar[0].summary == "at 5 degrees"
    assert to_wire(result)["similar"][0]["memory_id"] == near.memory_id


def test_it_is_saved_whatever_is_found(arrows: MemoryStore) -> None:
    arrows.save("at 0 degrees")
    result = arrows.save("at 1 degrees")
    assert result.status == "created"
    assert arrows.get(result.memory_id).content == "at 1 degrees"


def test_at_most_five_are_named(arrows: MemoryStore) -> None:
    for degrees in range(1, 10):
        arrows.save(f"at {degrees} degrees")
    found = arrows.save("at 0 degrees").similar
    assert [each.summary for each in found] == [f"at {number} degrees" for number in range(1, 6)]


def test_a_text_more_than_twice_as_long_is_not_the_same(arrows: MemoryStore) -> None:
    arrows.save("at 0 degrees and a lot more is said about quite another thing here")
    assert arrows.save("at 1 degrees").similar == ()


def test_texts_of_several_chunks_are_alike_as_a_whole(arrows: MemoryStore) -> None:
    def document(*directions: int) -> str:
        return "\n\n".join(f"# Part {at}\n\nat {at} degrees" for at in directions)

    same = arrows.save(document(0, 90))
    arrows.save(document(0, 180))  # one half of it is the same
    result = arrows.save(document(2, 88))
    assert similar(result) == [same.memory_id]
    assert 0.999 < result.similar[0].similarity < 1


def test_only_what_its_session_sees_is_named(arrows: MemoryStore) -> None:
    everywhere = arrows.save("at 1 degrees")
    own = arrows.save("at 2 degrees", session_id="mine")
    arrows.save("at 3 degrees", session_id="theirs")
    arrows.save("at 4 degrees", space="elsewhere")
    assert similar(arrows.save("at 0 degrees", session_id="mine")) == [
        everywhere.memory_id,
        own.memory_id,
    ]
    assert similar(arrows.save("at 0 degrees")) == [everywhere.memory_id]


def test_what_is_gone_or_no_longer_holds_is_not_named(arrows: MemoryStore) -> None:
    forgotten = arrows.save("at 1 degrees")
    arrows.forget(forgotten.memory_id)
    replaced = arrows.save("at 2 degrees")
    arrows.update(replaced.memory_id, content="at 90 degrees")
    arrows.supersede(arrows.save("at 3 degrees").memory_id, replaced.memory_id)
    arrows.save("at 4 degrees", expires_at=datetime.now(UTC) + timedelta(milliseconds=50))
    time.sleep(0.06)
    assert arrows.save("at 0 degrees").similar == ()


def test_the_threshold_is_a_setting(open_store: OpenStore, arrows: MemoryStore) -> None:
    arrows.save("at 40 degrees")
    assert arrows.save("at 0 degrees").similar == ()
    lenient = open_store(embedder=ArrowEmbedder(), similar_threshold=0.7)
    assert len(lenient.save("at 80 degrees").similar) == 1


def test_it_can_be_switched_off(open_store: OpenStore, arrows: MemoryStore) -> None:
    arrows.save("at 0 degrees")
    silent = open_store(embedder=ArrowEmbedder(), notice_similar=False)
    assert silent.save("at 1 degrees").similar == ()


def test_saving_the_same_again_names_nothing(arrows: MemoryStore) -> None:
    arrows.save("at 1 degrees")
    arrows.save("at 0 degrees")
    again = arrows.save("at 0 degrees")
    assert (again.status, again.similar) == ("unchanged", ())


def test_many_at_once_are_not_compared(arrows: MemoryStore) -> None:
    results = arrows.save_many({"content": f"at {number} degrees"} for number in range(3))
    assert [result.similar for result in results] == [()] * 3


def test_nothing_is_embedded_twice_for_it(open_store: OpenStore, watched: WatchedEmbedder) -> None:
    store = open_store(embedder=watched)
    store.save("the quick brown fox jumps over the lazy dog")
    assert store.save("the quick brown fox jumps over a lazy dog").similar
    assert len(watched.embedded) == 2


def test_without_vectors_nothing_is_named(open_store: OpenStore, watched: WatchedEmbedder) -> None:
    store = open_store(embedder=watched)
    store.save("the quick brown fox jumps over the lazy dog")
    watched.down = True
    result = store.save("the quick brown fox jumps over a lazy dog")
    assert (result.pending_vectors, result.similar) == (1, ())


def test_what_waits_for_vectors_is_not_named(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save_many({"content": f"{number} weeks of rain"} for number in range(8))
    store.save("the quick brown fox jumps over the lazy dog")
    watched.down = False
    # It brings along the eight that wait before that one, and the next save that one too.
    assert store.save("the quick brown fox jumps over a lazy dog").similar == ()
    assert len(store.save("The quick brown fox jumps over a lazy dog!").similar) == 2


@sqlite_only
def test_trouble_while_looking_does_not_fail_the_save(arrows: MemoryStore, path: Path) -> None:
    arrows.save("at 0 degrees")
    # Whoever makes the index comes across it; whoever writes a memory does not.
    apsw.Connection(str(path)).execute("UPDATE chunks SET content = CAST(x'FF' AS TEXT)")
    with pytest.raises(StoreDamaged):
        arrows.search("degrees")
    # Whether the index can still be updated depends on when its file was written.
    assert arrows.save("at 1 degrees").status == "created"


PARAPHRASES = (
    ("Anna prefers tea to coffee.", "Anna likes tea better than coffee."),
    ("The user lives in Berlin.", "User lives in Berlin"),
    ("Bob is allergic to peanuts.", "Bob has a peanut allergy."),
    ("Backups run every night at 2 am.", "Every night at 2 am, backups run."),
    (
        "The deploy key is kept in the vault under ci/deploy.",
        "The deploy key is stored in the vault at ci/deploy.",
    ),
    # Not the same, but worth knowing of before both are believed.
    ("The build server listens on port 8080.", "The build server listens on port 8081."),
)
RELATED = (
    ("Anna prefers tea to coffee.", "Anna drinks three cups of coffee a day."),
    ("The user lives in Berlin.", "The user lives in Hamburg."),
    ("Bob is allergic to peanuts.", "Carl is allergic to peanuts."),
    ("Backups run every night at 2 am.", "Backups are kept for 30 days."),
    ("Always run the linter before committing.", "Always run the tests before committing."),
)


@pytest.mark.model
def test_the_real_model_tells_the_same_from_the_merely_related(tmp_path: Path) -> None:
    with byheart.open(tmp_path / "memory.db") as store:
        for number, (first, second) in enumerate(PARAPHRASES):
            saved = store.save(first, session_id=f"same {number}")
            assert similar(store.save(second, session_id=f"same {number}")) == [saved.memory_id]
        for number, (first, second) in enumerate(RELATED):
            store.save(first, session_id=f"related {number}")
            assert store.save(second, session_id=f"related {number}").similar == ()
