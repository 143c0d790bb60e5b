"""The life of a memory: update, history, supersede and searches as of then, rule by rule."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from byheart.errors import Conflict, InvalidInput, NotFound, StoreError, VersionConflict
from byheart.model import GRANULARITIES, MODES, SearchAnswer, to_wire
from byheart.model.fields import NOTICED
from byheart.store import MemoryStore
from tests.databases import sqlite_only
from tests.storage.test_processes import OPEN, finish, start

LONG = "\n\n".join(
    f"# Part {name}\n\n" + " ".join(f"{name}{word}" for word in range(300))
    for name in ("alpha", "beta", "gamma", "delta")
)
FIELDS: dict[str, Any] = {
    "kind": "fact",
    "title": "Drinks",
    "summary": "What Anna drinks",
    "source": "chat",
    "session_id": "s1",
    "agent_id": "coder",
    "session_iter": 2,
    "task_code": "T-7",
    "path": "notes/anna.md",
    "tags": ("people",),
    "entities": ("Anna",),
    "importance": 6.0,
    "metadata": {"team": "red", "level": 1},
    "expires_at": datetime(2100, 1, 1, tzinfo=UTC),
}
OTHERS: dict[str, Any] = {
    "content": "Anna drinks coffee by now.",
    "kind": "self",
    "title": "Beverages",
    "summary": "What she drinks",
    "source": "mail",
    "session_id": "s2",
    "agent_id": "writer",
    "session_iter": 3,
    "task_code": "T-8",
    "path": "notes/ben.md",
    "tags": ("drinks", "habits"),
    "entities": ("Coffee",),
    "importance": 9.5,
    "metadata": {"team": "blue", "level": 1},
    "expires_at": datetime(2101, 1, 1, tzinfo=UTC),
}
MOVING = {"version", "updated_at", "content_hash", "derived", "format", "chunks"}


def now() -> datetime:
    return datetime.now(UTC)


def found(answer: SearchAnswer) -> list[str]:
    return [hit.text_id for hit in answer.results]


def tables(path: Path) -> dict[str, list[Any]]:
    """Read everything that a store holds."""
    connection = apsw.Connection(str(path))
    names = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def sound(store: MemoryStore) -> bool:
    return all(finding.ok for finding in store.admin.doctor() if finding.check != "disk space")


# --- Partial updates --------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_a_field_that_is_given_alone_changes_alone(store: MemoryStore, name: str) -> None:
    memory_id = store.save("Anna prefers tea.", **FIELDS).memory_id
    before = store.get(memory_id)
    result = store.update(memory_id, **{name: OTHERS[name]})
    after = store.get(memory_id)
    assert (result.status, result.version, after.version) == ("updated", 2, 2)
    assert getattr(after, name) == OTHERS[name]
    changed = {
        each for each in to_wire(before) if getattr(before, each) != getattr(after, each)
    } - MOVING
    assert changed == {name}
    assert after.created_at == before.created_at
    assert after.updated_at > before.updated_at
    assert sound(store)


@pytest.mark.parametrize(
    ("name", "cleared"),
    [
        ("title", None),
        ("session_id", None),
        ("agent_id", None),
        ("session_iter", None),
        ("task_code", None),
        ("path", None),
        ("tags", ()),
        ("metadata", {}),
        ("expires_at", None),
        ("ttl_days", None),
    ],
)
def test_none_takes_a_field_away(store: MemoryStore, name: str, cleared: Any) -> None:
    memory_id = store.save("Anna prefers tea.", **FIELDS).memory_id
    store.update(memory_id, **{name: None})
    held = store.get(memory_id)
    assert getattr(held, "expires_at" if name == "ttl_days" else name) == cleared


def test_metadata_is_merged_key_by_key_and_none_takes_a_key_away(store: MemoryStore) -> None:
    memory_id = store.save("A text", metadata={"a": 1, "b": {"deep": 1}, "nothing": None}).memory_id
    store.update(memory_id, metadata={"c": 3})
    assert store.get(memory_id).metadata == {"a": 1, "b": {"deep": 1}, "c": 3, "nothing": None}
    store.update(memory_id, metadata={"a": None, "b": {"other": 2}})
    assert store.get(memory_id).metadata == {"b": {"other": 2}, "c": 3, "nothing": None}


def test_true_in_metadata_is_not_one(store: MemoryStore) -> None:
    memory_id = store.save("A text", metadata={"done": 1}).memory_id
    assert store.update(memory_id, metadata={"done": True}).status == "updated"
    assert store.get(memory_id).metadata["done"] is True


def test_time_to_live_counts_from_the_update(store: MemoryStore) -> None:
    memory_id = store.save("A text").memory_id
    before = now()
    store.update(memory_id, ttl_days=2)
    expires_at = store.get(memory_id).expires_at
    assert expires_at is not None
    assert before + timedelta(days=2) <= expires_at <= now() + timedelta(days=2)
    store.update(memory_id, title="Another thing entirely")
    assert store.get(memory_id).expires_at == expires_at


def test_no_time_to_live_makes_what_had_expired_permanent_and_found_again(
    store: MemoryStore,
) -> None:
    memory_id = store.save("The quokka sleeps", ttl_days=0).memory_id
    assert store.search("quokka", mode="fts").total_results == 0
    store.update(memory_id, ttl_days=None)
    assert found(store.search("quokka", mode="fts")) == [memory_id]


def test_an_update_that_changes_nothing_writes_nothing(store: MemoryStore, path: Path) -> None:
    memory_id = store.save("Anna prefers tea.", **FIELDS).memory_id
    before = tables(path)
    same = store.update(
        memory_id,
        content="Anna prefers tea.",
        **{**FIELDS, "tags": ["people"], "session_iter": "v2"},
    )
    assert (same.status, same.version, same.memory_id) == ("unchanged", 1, memory_id)
    assert store.update(memory_id, metadata={}).status == "unchanged"
    assert store.update(memory_id, entities=["ANNA"]).status == "unchanged"
    assert tables(path) == before


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"contents": "a typo"},
        {"content": " \n"},
        {"content": None},
        {"content": "half \ud800 a pair"},
        {"kind": None},
        {"kind": "No Slug"},
        {"importance": 11},
        {"importance": "high"},
        {"ttl_days": -1},
        {"ttl_days": 1, "expires_at": "2100-01-01"},
        {"expires_at": "soon"},
        {"tags": "not a list"},
        {"metadata": {"x": float("nan")}},
        {"metadata": [1]},
        {"session_iter": "first"},
        {"title": "  "},
        {"expected_version": 0},
        {"expected_version": True, "title": "x"},
        {"who": " ", "title": "x"},
    ],
    ids=repr,
)
def test_what_is_not_allowed_is_refused_and_nothing_is_written(
    store: MemoryStore, path: Path, fields: dict[str, Any]
) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    before = tables(path)
    with pytest.raises(InvalidInput):
        store.update(memory_id, **fields)
    assert tables(path) == before


def test_an_unknown_field_is_answered_with_the_nearest_one(store: MemoryStore) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    with pytest.raises(InvalidInput, match="did you mean importance"):
        store.update(memory_id, importnace=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("memory_id", ["mem_nothing", "mem@1", "a@b@c", "@", "with space", "a#0"])
def test_what_does_not_exist_cannot_be_changed(store: MemoryStore, memory_id: str) -> None:
    store.save("Anna prefers tea.")
    with pytest.raises(NotFound):
        store.update(memory_id, title="x")
    with pytest.raises(NotFound):
        store.history(memory_id)
    with pytest.raises(NotFound):
        store.supersede(memory_id)


def test_a_memory_of_another_space_cannot_be_changed(store: MemoryStore) -> None:
    memory_id = store.save("Anna prefers tea.", space="other").memory_id
    for change in (
        lambda: store.update(memory_id, title="x"),
        lambda: store.history(memory_id),
        lambda: store.supersede(memory_id),
    ):
        with pytest.raises(NotFound):
            change()
    assert store.update(memory_id, title="x", space="other").status == "updated"


def test_an_earlier_text_cannot_be_changed(store: MemoryStore) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    store.update(memory_id, content="Anna prefers coffee.")
    with pytest.raises(InvalidInput, match=memory_id):
        store.update(f"{memory_id}@1", title="x")
    with pytest.raises(NotFound):
        store.supersede(f"{memory_id}@1", memory_id)
    with pytest.raises(NotFound):
        store.forget(f"{memory_id}@1")


@pytest.mark.parametrize(
    "text",
    ["line one\r\nline two\r\n", "👩‍👩‍👧 and 🇨🇭 \u0301", "記憶\u3000は大切", "a\0b", "\ufeffx"],
)
def test_a_changed_text_comes_back_byte_for_byte(store: MemoryStore, text: str) -> None:
    memory_id = store.save("Something else\r\n\r\nwith CRLF").memory_id
    store.update(memory_id, content=text)
    assert store.reconstruct(memory_id) == text
    assert store.reconstruct(f"{memory_id}@1") == "Something else\r\n\r\nwith CRLF"
    assert store.history(memory_id)[-1].changes["content"]["to"] == text
    assert sound(store)


# --- What a changed text costs, and what is made from it ----------------------------------------


def test_only_the_chunks_that_changed_are_embedded(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save(LONG).memory_id
    chunks, whole = store.get(memory_id).chunks, len(watched.embedded)
    assert chunks >= 4
    watched.embedded.clear()
    store.update(memory_id, content=LONG.replace("gamma150", "quokka"))
    assert 0 < len(watched.embedded) < whole / 2
    assert all("gamma" in text for text in watched.embedded)
    assert store.get(memory_id).chunks == chunks
    watched.embedded.clear()
    store.update(memory_id, content=LONG)
    assert watched.embedded == []


def test_no_other_field_makes_anything_be_embedded(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save(LONG, **FIELDS).memory_id
    watched.embedded.clear()
    embedded = ("content", "title")
    store.update(memory_id, **{name: OTHERS[name] for name in OTHERS if name not in embedded})
    assert watched.embedded == []
    assert store.status().index.pending_vectors == 0
    assert found(store.search("alpha7", mode="vector"))


@pytest.mark.parametrize("raw", [False, True])
def test_a_new_title_is_found_by_its_words_and_the_old_one_is_not(
    open_store: Callable[..., MemoryStore], raw: bool
) -> None:
    store, other = open_store(), open_store()
    memory_id = store.save(LONG, title="Wallaby report", summary="About numbats").memory_id
    assert found(other.search("wallaby", mode="fts", raw=raw))
    store.update(memory_id, title="Quokka report")
    for each in (store, other, open_store()):
        assert set(found(each.search("quokka", mode="fts", raw=raw, limit=50))) == {memory_id}
        assert found(each.search("wallaby", mode="fts", raw=raw)) == []
        assert found(each.search("numbats", mode="fts", raw=raw)) == [memory_id]
    store.update(memory_id, summary="About bilbies")
    for each in (store, other, open_store()):
        assert found(each.search("numbats", mode="fts", raw=raw)) == []
        assert found(each.search("bilbies", mode="fts", raw=raw)) == [memory_id]
        assert set(found(each.search("quokka", mode="fts", raw=raw, limit=50))) == {memory_id}
    assert sound(store)


def test_a_new_title_takes_the_place_of_the_old_one_in_the_vectors(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store, fresh = open_store(embedder=watched), open_store(embedder=watched, space="fresh")
    memory_id = store.save("It was eaten.", title="The wallaby of the north").memory_id
    changed = store.update(memory_id, title="A quokka")
    assert (changed.status, changed.pending_vectors) == ("updated", 0)
    assert watched.embedded[-1] == "A quokka\n\nIt was eaten."
    fresh.save("It was eaten.", title="A quokka")
    for question in ("The wallaby of the north", "A quokka"):
        [hit] = store.search(question, mode="vector").results
        [expected] = fresh.search(question, mode="vector").results
        assert hit.similarity == pytest.approx(expected.similarity)
    assert sound(store)


def test_under_a_title_it_had_before_nothing_is_embedded_again(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    store.save(LONG, title="New", session_id="s1")
    memory_id = store.save(LONG, title="Old", session_id="s2").memory_id
    watched.embedded.clear()
    store.update(memory_id, title="New")
    assert watched.embedded == []
    assert store.status().index.pending_vectors == 0


def test_under_a_new_title_it_is_found_by_meaning_also_while_the_provider_is_away(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save(LONG, title="Wallaby").memory_id
    vectors = store.status().vectors
    watched.down = True
    assert store.update(memory_id, title="Quokka").pending_vectors == 0
    watched.down = False
    assert store.status().vectors == vectors
    assert set(found(store.search(LONG[:50], mode="vector", limit=50))) == {memory_id}
    watched.embedded.clear()
    store.update(memory_id, title="Quokka again")
    assert all(text.startswith("Quokka again") for text in watched.embedded)
    assert sound(store)


def test_what_of_a_turn_is_not_embedded_stays_so_under_a_title(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    aside = store.log("s1", "user", "ok").memory_id
    assert store.update(aside, title="An answer").pending_vectors == 0
    assert watched.embedded == []
    assert sound(store)


def test_chunk_ids_stay_when_only_the_title_changes(store: MemoryStore) -> None:
    memory_id = store.save(LONG, title="Old").memory_id
    before = [store.expand(f"{memory_id}#{index}", 0).chunks for index in range(4)]
    store.update(memory_id, title="New")
    assert [store.expand(f"{memory_id}#{index}", 0).chunks for index in range(4)] == before


def test_what_was_derived_is_made_anew_with_the_text(store: MemoryStore) -> None:
    memory_id = store.save("Anna Keller likes tea.").memory_id
    before = store.get(memory_id)
    store.update(memory_id, content="We decided that Ben Amsler always prefers PostgreSQL 17.")
    after = store.get(memory_id)
    assert before.derived == after.derived == NOTICED
    assert after.summary != before.summary
    assert "Ben Amsler" in after.entities
    assert "Anna Keller" not in after.entities
    assert after.importance != before.importance


def test_what_was_given_is_kept_with_a_new_text(store: MemoryStore) -> None:
    about = {"summary": "Mine", "entities": ["Me"], "importance": 3.0, "language": "en"}
    memory_id = store.save("Anna Keller likes tea.", **about).memory_id
    store.update(memory_id, content="Ben Amsler likes beer.")
    held = store.get(memory_id)
    assert (held.summary, held.entities, held.importance) == ("Mine", ("Me",), 3.0)
    assert held.derived == ()


@pytest.mark.parametrize("name", ["summary", "entities", "importance"])
def test_what_was_derived_and_is_then_given_alike_counts_as_given(
    store: MemoryStore, name: str
) -> None:
    memory_id = store.save("Anna Keller likes tea.").memory_id
    value = getattr(store.get(memory_id), name)
    assert store.update(memory_id, **{name: value}).status == "updated"
    assert name not in store.get(memory_id).derived
    store.update(memory_id, content="We decided that Ben Amsler always prefers PostgreSQL 17.")
    assert getattr(store.get(memory_id), name) == value
    assert sound(store)


@pytest.mark.parametrize("name", ["summary", "entities", "importance"])
def test_none_has_a_given_value_derived(store: MemoryStore, name: str) -> None:
    derived = store.get(store.save("Anna Keller likes tea.").memory_id)
    about = {"summary": "Mine", "entities": ["Me"], "importance": 3.0, "language": "en"}
    memory_id = store.save("Anna Keller likes tea.", kind="fact", **about).memory_id
    store.update(memory_id, kind="note", session_id="s1", **{name: None})
    assert getattr(store.get(memory_id), name) == getattr(derived, name)
    assert name in store.get(memory_id).derived


def test_an_update_while_the_provider_is_away_is_found_by_words_and_embedded_later(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save("The wallaby hops").memory_id
    watched.down = True
    result = store.update(memory_id, content="The quokka smiles")
    assert result.pending_vectors == 1
    assert found(store.search("quokka")) == [memory_id]
    store.update(memory_id, title="Marsupials")
    assert store.status().index.pending_vectors == 1
    watched.down = False
    assert store.admin.embed_pending() == 1
    assert found(store.search("quokka", mode="vector")) == [memory_id]
    assert sound(store)


# --- Two who change one memory ----------------------------------------------------------------


def test_who_names_a_version_that_is_no_longer_the_last_is_told(
    store: MemoryStore, path: Path
) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    store.update(memory_id, expected_version=1, title="First")
    before = tables(path)
    for version in (1, 3):
        with pytest.raises(VersionConflict, match="version 2") as told:
            store.update(memory_id, expected_version=version, title="Second")
        assert memory_id in told.value.hint
        with pytest.raises(VersionConflict):
            store.update(memory_id, expected_version=version, title="First")
    assert tables(path) == before
    assert store.update(memory_id, expected_version=2, title="Second").version == 3


def test_a_text_that_another_memory_holds_is_a_conflict(store: MemoryStore, path: Path) -> None:
    one = store.save("Anna prefers tea.").memory_id
    other = store.save("Anna prefers coffee.").memory_id
    elsewhere = store.save("Anna prefers coffee.", kind="fact").memory_id
    before = tables(path)
    with pytest.raises(Conflict, match=other):
        store.update(one, content="Anna prefers coffee.")
    with pytest.raises(Conflict, match=other):
        store.update(elsewhere, kind="note")
    assert tables(path) == before
    store.update(one, content="Anna prefers coffee.", session_id="s1")
    assert store.list().total == 3


def test_a_text_that_was_an_earlier_one_of_another_memory_is_free(store: MemoryStore) -> None:
    one = store.save("Anna prefers tea.").memory_id
    store.update(one, content="Anna prefers coffee.")
    other = store.save("Anna prefers tea.")
    assert other.status == "created"
    with pytest.raises(Conflict):
        store.update(one, content="Anna prefers tea.")


def test_saving_what_an_update_made_is_answered_with_its_id_and_version(
    store: MemoryStore,
) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    store.update(memory_id, content="Anna prefers coffee.")
    again = store.save("Anna prefers coffee.")
    assert (again.memory_id, again.status, again.version) == (memory_id, "unchanged", 2)


def test_a_text_that_an_expired_memory_holds_is_free(store: MemoryStore) -> None:
    expired = store.save("Anna prefers coffee.", ttl_days=0).memory_id
    memory_id = store.save("Anna prefers tea.").memory_id
    assert store.update(memory_id, content="Anna prefers coffee.").status == "updated"
    with pytest.raises(NotFound):
        store.get(expired)
    assert sound(store)


def test_threads_that_change_different_fields_at_once_lose_nothing(
    open_store: Callable[..., MemoryStore],
) -> None:
    stores = [open_store(), open_store()]
    memory_id = stores[0].save("Start").memory_id
    begin = threading.Barrier(6)

    def change(number: int) -> list[int]:
        begin.wait()
        store = stores[number % 2]
        return [
            store.update(memory_id, who=f"t{number}", metadata={f"{number}-{turn}": turn}).version
            for turn in range(5)
        ]

    with ThreadPoolExecutor(6) as pool:
        versions = [each for made in pool.map(change, range(6)) for each in made]
    assert sorted(versions) == list(range(2, 32))
    held = stores[0].get(memory_id)
    assert held.version == 31
    assert held.metadata == {f"{n}-{turn}": turn for n in range(6) for turn in range(5)}
    history = stores[1].history(memory_id)
    assert [entry.version for entry in history] == list(range(1, 32))
    assert sound(stores[0])


CROWD = (
    OPEN
    + """
import multiprocessing

def change(name, memory_id, begin):
    store = open_store()
    begin.wait(60)
    for turn in range(10):
        store.update(memory_id, who=name, metadata={f"{name}{turn}": turn})
        store.update(memory_id, who=name, content=f"The quokka of {name}, turn {turn}")
        [hit] = store.search("quokka", limit=5).results
        assert hit.memory_id == memory_id
    store.close()

fork = multiprocessing.get_context("fork")
begin = fork.Barrier(4)
crowd = [fork.Process(target=change, args=(name, sys.argv[2], begin)) for name in "abcd"]
for each in crowd:
    each.start()
for each in crowd:
    each.join()
sys.exit(sum(each.exitcode != 0 for each in crowd))
"""
)


@sqlite_only
@pytest.mark.slow
def test_processes_that_change_one_memory_at_once_lose_nothing(
    open_store: Callable[..., MemoryStore], path: Path, make_watched: Callable[..., Any]
) -> None:
    store = open_store(embedder=make_watched(32, "hash-32"))
    memory_id = store.save("The quokka of nobody").memory_id
    finish(start(CROWD, path, memory_id))
    held, history = store.get(memory_id), store.history(memory_id)
    assert held.version == 81
    assert held.metadata == {f"{name}{turn}": turn for name in "abcd" for turn in range(10)}
    assert [entry.version for entry in history] == list(range(1, 82))
    texts = [each.changes["content"] for each in history if "content" in each.changes]
    assert {each["to"] for each in texts} == {
        f"The quokka of {name}, turn {turn}" for name in "abcd" for turn in range(10)
    }
    assert texts[0]["from"] == "The quokka of nobody"
    assert [each["from"] for each in texts[1:]] == [each["to"] for each in texts[:-1]]
    assert texts[-1]["to"] == held.content
    assert sound(store)


def test_of_two_texts_for_one_version_one_is_taken_and_the_other_is_told(
    open_store: Callable[..., MemoryStore],
) -> None:
    stores = [open_store(), open_store()]
    memory_id = stores[0].save("Start").memory_id
    begin = threading.Barrier(2)

    def change(number: int) -> str:
        begin.wait()
        try:
            store = stores[number]
            return store.update(memory_id, expected_version=1, content=f"Text {number}").status
        except VersionConflict:
            return "told"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(change, range(2))) == ["told", "updated"]
    assert stores[0].get(memory_id).version == 2
    assert stores[0].search("start", mode="fts").total_results == 0


# --- Transactions -----------------------------------------------------------------------------


@sqlite_only
@pytest.mark.parametrize(
    "change",
    [
        lambda store, one, _: store.update(one, content="Another text"),
        lambda store, one, _: store.update(one, title="Another title", tags=["x"]),
        lambda store, one, other: store.supersede(one, other),
        lambda store, one, _: store.forget(one),
    ],
    ids=["text", "title", "supersede", "forget"],
)
def test_what_fails_in_the_middle_leaves_no_trace(
    open_store: Callable[..., MemoryStore], path: Path, change: Any
) -> None:
    store = open_store()
    one, other = store.save(LONG, title="Old", tags=["t"]).memory_id, store.save("B").memory_id
    connection = apsw.Connection(str(path))
    # The history is written last: by then everything else has been.
    connection.execute(
        "CREATE TRIGGER stop BEFORE INSERT ON history BEGIN SELECT RAISE(ABORT, 'stop'); END"
    )
    before = tables(path)
    with pytest.raises(StoreError):
        change(store, one, other)
    assert tables(path) == before
    connection.execute("DROP TRIGGER stop")
    assert set(found(store.search("alpha7 old", mode="fts"))) == {one}
    change(store, one, other)
    assert sound(store)


# --- History ----------------------------------------------------------------------------------


def test_history_tells_who_when_from_and_to(store: MemoryStore) -> None:
    before = now()
    memory_id = store.save("Anna prefers tea.", agent_id="coder", importance=4).memory_id
    other = store.save("Anna prefers milk.").memory_id
    store.update(memory_id, who="ben", title="Drinks", importance=8)
    store.update(memory_id, who="cleo", content="Anna prefers coffee.", tags=["b", "a"])
    store.supersede(memory_id, other, "she said so", "dora")
    store.forget(memory_id, reason="no longer true", who="emil")
    store.restore(memory_id, who="fay")
    store.supersede(memory_id, who="gus")
    store.update(memory_id, content="Anna prefers water.")
    entries = store.history(memory_id)
    assert [(each.operation, each.who, each.version, each.reason) for each in entries] == [
        ("create", "coder", 1, None),
        ("update", "ben", 2, None),
        ("update", "cleo", 3, None),
        ("supersede", "dora", 4, "she said so"),
        ("forget", "emil", 4, "no longer true"),
        ("restore", "fay", 4, None),
        ("supersede", "gus", 5, None),
        ("update", "manual", 6, None),
    ]
    times = [each.at for each in entries]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= now()
    assert entries[1].changes == {
        "title": {"from": None, "to": "Drinks"},
        "importance": {"from": 4.0, "to": 8.0},
    }
    coffee = {"from": "Anna prefers tea.", "to": "Anna prefers coffee."}
    assert entries[2].changes["content"] == coffee
    assert entries[2].changes["tags"] == {"from": [], "to": ["b", "a"]}
    assert entries[3].changes["superseded_by"] == {"from": None, "to": other}
    closed = entries[3].changes["valid_until"]
    assert closed["from"] is None
    assert entries[6].changes == {
        "superseded_by": {"from": other, "to": None},
        "valid_until": {"from": closed["to"], "to": None},
    }
    water = {"from": "Anna prefers coffee.", "to": "Anna prefers water."}
    assert entries[7].changes["content"] == water
    json.dumps(to_wire(entries))


def test_history_is_told_of_a_forgotten_memory_too(store: MemoryStore) -> None:
    memory_id = store.save("Anna prefers tea.").memory_id
    store.update(memory_id, content="Anna prefers coffee.")
    store.forget(memory_id)
    history = store.history(memory_id)
    assert [entry.operation for entry in history] == ["create", "update", "forget"]
    assert history[1].changes["content"]["from"] == "Anna prefers tea."


# --- Superseding ------------------------------------------------------------------------------


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_superseded_ranks_below_everything_that_holds_and_says_so(
    open_store: Callable[..., MemoryStore], mode: str, granularity: str
) -> None:
    store, other = open_store(), open_store()
    old = store.save("quokka quokka quokka lives").memory_id
    new = store.save("The quokka now lives somewhere else, on an island.").memory_id
    rest = [store.save(f"A quokka was seen in garden {number} today").memory_id for number in "abc"]

    def order(each: MemoryStore) -> list[tuple[str, str | None]]:
        answer = each.search("quokka lives", mode=mode, granularity=granularity)
        return [(hit.memory_id, hit.superseded_by) for hit in answer.results]

    assert order(other)[0] == (old, None)
    assert store.supersede(old, new, "moved").superseded_by == new
    for each in (store, other, open_store()):
        assert order(each)[-1] == (old, new)
        assert {name for name, _ in order(each)[:-1]} == {new, *rest}
        pages = [
            each.search("quokka lives", 1, mode, granularity, offset=offset).results[0].memory_id
            for offset in range(5)
        ]
        assert pages == [name for name, _ in order(each)]
    store.supersede(old)
    for each in (store, other, open_store()):
        assert order(each)[0] == (old, None)


def test_superseding_to_what_it_is_already_changes_nothing(store: MemoryStore, path: Path) -> None:
    old, new = store.save("Old").memory_id, store.save("New").memory_id
    before = tables(path)
    store.supersede(old)
    assert tables(path) == before
    store.supersede(old, new)
    before = tables(path)
    assert store.supersede(old, new).version == 2
    assert tables(path) == before


def test_circles_are_refused(store: MemoryStore, path: Path) -> None:
    a, b, c = (store.save(f"Text {name}").memory_id for name in "abc")
    store.supersede(a, b)
    store.supersede(b, c)
    before = tables(path)
    for old, new in ((a, a), (c, a), (c, b), (b, a)):
        with pytest.raises(Conflict):
            store.supersede(old, new)
    assert tables(path) == before


@sqlite_only
def test_a_circle_that_came_from_elsewhere_does_not_hold_anybody_up(
    store: MemoryStore, path: Path
) -> None:
    a, b, c = (store.save(f"Text {name}").memory_id for name in "abc")
    apsw.Connection(str(path)).execute(
        "UPDATE memories SET superseded_by = iif(memory_id = ?1, ?2, ?1) "
        "WHERE memory_id IN (?1, ?2)",
        (a, b),
    )
    assert store.supersede(c, a).superseded_by == a


def test_only_what_is_there_can_supersede(store: MemoryStore) -> None:
    old = store.save("Old").memory_id
    hidden = store.save("Hidden").memory_id
    elsewhere = store.save("Elsewhere", space="other").memory_id
    store.forget(hidden)
    for new in ("mem_nothing", hidden, elsewhere):
        with pytest.raises(NotFound):
            store.supersede(old, new)
    assert store.get(old).superseded_by is None


def test_an_update_keeps_what_a_memory_is_superseded_by(store: MemoryStore) -> None:
    old, new = store.save("Old text").memory_id, store.save("New text").memory_id
    store.supersede(old, new)
    store.update(old, content="Old text, corrected")
    store.update(old, title="T")
    assert store.get(old).superseded_by == new
    assert found(store.search("text", mode="fts"))[-1] == old


# --- As of then -------------------------------------------------------------------------------


@pytest.fixture
def moments() -> dict[str, datetime]:
    return {}


@pytest.fixture
def lived(open_store: Callable[..., MemoryStore], moments: dict[str, datetime]) -> list[str]:
    """Let three memories live, and note the moments between what happens."""
    store = open_store()
    moments["before"] = now()
    a = store.save("quokka one lives here", tags=["t"], session_id="s1").memory_id
    b = store.save("quokka two lives here", ttl_days=1).memory_id
    expires = store.get(b).expires_at
    assert expires is not None
    moments["saved"] = now()
    store.update(a, content="quokka three lives there", title="T", kind="fact")
    moments["updated"] = now()
    c = store.save("quokka four lives on an island").memory_id
    store.supersede(a, c)
    moments["superseded"] = now()
    store.update(a, content="quokka five lives nowhere")
    moments["again"] = now()
    moments["expired"] = expires
    return [a, b, c]


EXPECTED: list[tuple[str, list[str]]] = [
    ("before", []),
    ("saved", ["a@1", "b"]),
    ("updated", ["a@3", "b"]),
    ("superseded", ["b", "c", "a@3"]),
    ("again", ["b", "c", "a"]),
    ("expired", ["c", "a"]),
]


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("mode", [*MODES, "raw"])
def test_a_search_as_of_then_answers_from_the_texts_current_then(
    open_store: Callable[..., MemoryStore],
    lived: list[str],
    moments: dict[str, datetime],
    mode: str,
    granularity: str,
) -> None:
    names = dict(zip("abc", lived, strict=True))
    store = open_store()
    how: dict[str, Any] = {"mode": "fts", "raw": True} if mode == "raw" else {"mode": mode}
    for moment, texts in EXPECTED:
        answer = store.search(
            "quokka lives" if mode != "raw" else "quokka AND lives",
            granularity=granularity,
            as_of=moments[moment],
            **how,
        )
        wanted = [names[each[0]] + each[1:] for each in texts]
        assert sorted(found(answer)) == sorted(wanted), moment
        if moment in ("superseded", "again"):
            assert found(answer)[-1] == wanted[-1], "what is superseded comes last"
        for hit in answer.results:
            text = store.reconstruct(hit.text_id)
            assert store.get(hit.text_id).memory_id == hit.memory_id
            assert store.expand(f"{hit.text_id}#0").expanded_content == text
            shown = {"fine": "chunk_content", "medium": "section_content", "coarse": "content"}
            assert getattr(hit, shown[granularity]) == text
    listed = store.search(None, granularity="coarse", as_of=moments["saved"])
    assert sorted(found(listed)) == sorted([f"{lived[0]}@1", lived[1]])


@sqlite_only
def test_a_clock_that_goes_back_leaves_every_text_its_time(store: MemoryStore, path: Path) -> None:
    memory_id = store.save("The quokka smiles").memory_id
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE memories SET since_at = since_at + 3600000000")
    [since] = connection.execute("SELECT since_at FROM memories").fetchall()[0]
    store.update(memory_id, content="The quokka laughs")
    then = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=since)
    for moment, text in ((then, "smiles"), (then + timedelta(microseconds=1), "laughs")):
        [hit] = store.search("quokka", as_of=moment).results
        assert text in hit.snippet


def test_a_listing_as_of_then_shows_the_texts_of_then(
    open_store: Callable[..., MemoryStore], lived: list[str], moments: dict[str, datetime]
) -> None:
    store = open_store()
    texts = {
        moment: {each.content for each in store.list(as_of=moments[moment]).memories}
        for moment, _ in EXPECTED
    }
    assert texts["before"] == set()
    assert texts["saved"] == {"quokka one lives here", "quokka two lives here"}
    assert texts["updated"] == {"quokka three lives there", "quokka two lives here"}
    assert texts["expired"] == {"quokka five lives nowhere", "quokka four lives on an island"}
    assert store.list(as_of=moments["saved"]).total == 2


@pytest.mark.parametrize("mode", MODES)
def test_filters_hold_for_the_texts_of_then(
    open_store: Callable[..., MemoryStore],
    lived: list[str],
    moments: dict[str, datetime],
    mode: str,
) -> None:
    store, a = open_store(), lived[0]

    def ask(moment: str, **filters: Any) -> list[str]:
        return sorted(found(store.search("quokka", mode=mode, as_of=moments[moment], **filters)))

    assert ask("saved", kind="note") == sorted([f"{a}@1", lived[1]])
    assert ask("saved", kind="fact") == []
    assert ask("updated", kind="fact") == [f"{a}@3"]
    assert ask("saved", session_id="s1", include_global=False) == [f"{a}@1"]
    assert ask("saved", tags=["t"]) == [f"{a}@1"]
    assert ask("again", tags=["t"]) == [a]
    assert ask("saved", tags=["u"]) == []
    assert ask("expired", include_expired=True) == sorted(lived)
    assert ask("saved", include_expired=True) == sorted([f"{a}@1", lived[1]])


@pytest.mark.parametrize("include_expired", [False, True])
def test_earlier_texts_show_up_in_no_search_listing_or_count_of_now(
    open_store: Callable[..., MemoryStore], include_expired: bool
) -> None:
    store = open_store()
    memory_id = store.save("quokka one", session_id="s1", agent_id="x", tags=["t"]).memory_id
    alone = (store.status(), store.sessions.list(), store.list())
    for number in ("two", "three", "four"):
        store.update(memory_id, content=f"quokka {number}", session_id=f"s{number}")
    store.update(memory_id, content="quokka one", session_id="s1")
    for each in (store, open_store()):
        for mode in MODES:
            for granularity in GRANULARITIES:
                answer = each.search(
                    "quokka", 50, mode, granularity, include_expired=include_expired
                )
                assert found(answer) == [memory_id]
                assert (answer.index.memories, answer.index.chunks) == (1, 1)
        assert found(each.search("two", mode="fts", include_expired=include_expired)) == []
        listing = each.list(include_expired=include_expired)
        assert [memory.memory_id for memory in listing.memories] == [memory_id]
        assert each.list(include_expired=include_expired, tags=["t"]).total == 1
        assert [each.memory_count for each in each.sessions.list()] == [1]
        status = each.status()
        assert status.index == alone[0].index
        assert (status.vectors, status.sessions) == (alone[0].vectors, alone[0].sessions)


def test_a_normal_search_scores_as_if_earlier_texts_had_never_been(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    one, plain = open_store(), open_store(tmp_path / "plain.db")
    for text in ("the quokka eats", "the wallaby eats leaves", "a bird"):
        plain.save(text)
        memory_id = one.save("quokka quokka quokka " + text).memory_id
        one.update(memory_id, content=text)
    for each in (one, open_store()):
        scores = [
            (hit.snippet, hit.score) for hit in each.search("the quokka eats", mode="fts").results
        ]
        expected = plain.search("the quokka eats", mode="fts").results
        assert scores == [(hit.snippet, hit.score) for hit in expected]


@sqlite_only
def test_an_index_file_of_before_an_update_is_caught_up(
    open_store: Callable[..., MemoryStore], path: Path
) -> None:
    store = open_store()
    memory_id = store.save("The wallaby hops", title="Old").memory_id
    store.admin.doctor(rebuild=True)
    index = path.with_name(path.name + "-index").read_bytes()
    before = now()
    store.update(memory_id, content="The quokka smiles", title="New")
    store.update(memory_id, title="Newer")
    store.close()
    path.with_name(path.name + "-index").write_bytes(index)
    for _ in range(2):
        with open_store() as again:
            assert found(again.search("wallaby", mode="fts")) == []
            assert found(again.search("quokka newer")) == [memory_id]
            assert found(again.search("wallaby", mode="fts", as_of=before)) == [f"{memory_id}@1"]
            again.admin.doctor(optimize=True)


def test_a_text_that_ran_out_and_is_said_again_takes_its_earlier_texts_along(
    store: MemoryStore,
) -> None:
    memory_id = store.save("quokka one").memory_id
    then = now()
    store.update(memory_id, content="quokka two", ttl_days=0)
    again = store.save("quokka two")
    assert (again.status, again.memory_id != memory_id) == ("created", True)
    assert found(store.search("quokka", as_of=then)) == []
    with pytest.raises(NotFound):
        store.get(f"{memory_id}@1")
    assert sound(store)


@sqlite_only
def test_a_clock_that_goes_back_leaves_the_last_text_current(
    store: MemoryStore, path: Path
) -> None:
    memory_id = store.save("quokka one").memory_id
    future = int((now() + timedelta(days=1)).timestamp() * 1e6)
    apsw.Connection(str(path)).execute(
        "UPDATE memories SET since_at = ?1, created_at = ?1, updated_at = ?1", (future,)
    )
    store.update(memory_id, content="quokka two")
    store.update(memory_id, content="quokka three")
    [hit] = store.search("quokka", mode="fts", granularity="coarse").results
    assert (hit.text_id, hit.content) == (memory_id, "quokka three")
    assert store.reconstruct(memory_id) == "quokka three"
    texts = [entry.changes["content"]["to"] for entry in store.history(memory_id) if entry.changes]
    assert texts == ["quokka two", "quokka three"]
    later = now() + timedelta(days=2)
    assert found(store.search("quokka", as_of=later)) == [memory_id]


def test_a_version_names_the_text_it_had_whatever_else_changed(store: MemoryStore) -> None:
    memory_id = store.save("one text").memory_id
    store.update(memory_id, title="A title")
    store.update(memory_id, content="another text")
    texts = [store.get(f"{memory_id}@{version}").content for version in (1, 2, 3)]
    assert texts == ["one text", "one text", "another text"]
    assert store.expand(f"{memory_id}@1#0").expanded_content == "one text"
    with pytest.raises(NotFound):
        store.get(f"{memory_id}@4")
