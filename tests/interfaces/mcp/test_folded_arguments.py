"""The short forms of the tools: filters as one object, and arguments that ask for another verb."""

from __future__ import annotations

from typing import Any

import pytest

from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.mcp.calling import Answer, call_tool
from byheart.interfaces.operations import Grant
from byheart.store import MemoryStore


def call(store: MemoryStore, name: str, **arguments: Any) -> Answer:
    return call_tool(store, name, arguments, Grant(), 8_000)


@pytest.mark.parametrize(
    "narrowed",
    [
        {"filters": {"kind": ["fact"], "tags": ["tea"]}},
        {"filters": '{"kind": ["fact"], "tags": ["tea"]}'},
        {"filters": {"kind": "fact"}, "tags": "tea"},
        {"kind": "fact", "tags": ["tea"], "filters": None},
        {"kind": "fact", "filters": {"kind": "fact", "tags": ["tea"]}},
    ],
)
def test_filters_are_taken_inside_and_outside_of_the_object(
    store: MemoryStore, narrowed: dict[str, Any]
) -> None:
    wanted = store.save("Green tea is served at four.", kind="fact", tags=["tea"]).memory_id
    store.save("Green tea is also sold.", kind="note", tags=["tea"])
    store.save("Green coffee is bitter.", kind="fact")
    found = call(store, "memory_search", query="green tea", **narrowed).structured
    assert [each["memory_id"] for each in found["results"]] == [wanted]
    recalled = call(store, "memory_recall", query="green tea", **narrowed).structured
    assert [each["id"] for each in recalled["index"]] == [wanted]


@pytest.mark.parametrize(
    "narrowed", [{"metadata": {"n": 1}}, {"source_label": "wiki"}, {"scope": "global"}]
)
def test_filters_that_the_short_schema_does_not_show_are_taken(
    store: MemoryStore, narrowed: dict[str, Any]
) -> None:
    wanted = store.save("Green tea.", source="wiki", metadata={"n": 1}).memory_id
    store.save("Green tea too.", session_id="s1", metadata={"n": "1"})
    found = call(store, "memory_search", query="green tea", filters=narrowed).structured
    assert [each["memory_id"] for each in found["results"]] == [wanted]
    recalled = call(store, "memory_recall", query="green tea", **narrowed).structured
    assert [each["id"] for each in recalled["index"]] == [wanted]


def test_recall_takes_raw_syntax(store: MemoryStore) -> None:
    program = store.save("The program is written in typescript.").memory_id
    store.save("A concert is on the programme.", title="Typescript")
    found = call(store, "memory_recall", query="{content}: typescript", raw=True).structured
    assert [each["id"] for each in found["index"]] == [program]
    assert call(store, "memory_recall", query="program*", raw=True).structured["total_count"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"filters": {"kind": "fact"}, "kind": "note"}, "kind is given twice"),
        ({"filters": ["fact"]}, "filters must be an object"),
        ({"filters": "fact"}, "filters must be an object"),
        ({"filters": {"colour": "red"}}, "colour"),
    ],
)
def test_filters_that_make_no_sense_are_refused(
    store: MemoryStore, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        call(store, "memory_search", query="tea", **arguments)


def test_without_a_query_the_latest_memories_are_listed(store: MemoryStore) -> None:
    ids = [store.save(f"Note number {n}.", kind="note").memory_id for n in range(3)]
    store.save("A fact.", kind="fact")
    listed = call(store, "memory_search", filters={"kind": ["note"]}, limit=2).structured
    assert [each["memory_id"] for each in listed["results"]] == ids[:0:-1]


def test_fields_are_emptied_by_name(store: MemoryStore) -> None:
    saved = store.save("Green tea.", title="Tea", tags=["drink"], ttl_days=3).memory_id
    call(store, "memory_update", memory_id=saved, clear=["title", "tags", "ttl_days"])
    memory = store.get(saved)
    assert (memory.title, memory.tags, memory.expires_at) == (None, (), None)
    with pytest.raises(InvalidInput, match="colour"):
        call(store, "memory_update", memory_id=saved, clear=["colour"])


def test_a_memory_is_superseded_and_its_history_told(store: MemoryStore) -> None:
    old, new = (store.save(f"The port is {port}.").memory_id for port in (8080, 8081))
    answer = call(store, "memory_update", memory_id=old, superseded_by=new)
    assert answer.structured == {"memory_id": old, "superseded_by": new}
    assert answer.text == f"{old} is marked as replaced by {new}."
    assert store.get(old).superseded_by == new
    told = call(store, "memory_get", memory_id=old, history=True)
    assert [each["operation"] for each in told.structured["history"]] == ["create", "supersede"]
    assert "supersede  by" in told.text
    with pytest.raises(InvalidInput, match="cannot be combined with title"):
        call(store, "memory_update", memory_id=old, superseded_by=new, title="Port")


def test_a_forgotten_memory_is_restored(store: MemoryStore) -> None:
    saved = store.save("Green tea.").memory_id
    call(store, "memory_forget", memory_id=saved)
    with pytest.raises(NotFound):
        store.get(saved)
    answer = call(store, "memory_forget", memory_id=saved, restore=True)
    assert (answer.structured["restored"], answer.text) == (True, f"restored: {saved}")
    assert store.get(saved).content == "Green tea."
    with pytest.raises(InvalidInput, match="restore needs one memory_id"):
        call(store, "memory_forget", restore=True)


def test_an_update_reads_texts_as_the_types_of_its_fields(store: MemoryStore) -> None:
    memory_id = store.save("Green tea.").memory_id
    call(store, "memory_update", memory_id=memory_id, metadata='{"n": 1}', importance="7")
    changed = store.get(memory_id)
    assert (changed.metadata, changed.importance) == ({"n": 1}, 7)
