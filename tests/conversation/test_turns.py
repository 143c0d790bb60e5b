"""What is said in a session: turns in order, each once, and the running summary of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import Conflict, InvalidInput, NotFound
from byheart.model import to_wire
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder
from tests.databases import database as database
from tests.databases import sqlite_only
from tests.forked_program import start_script


def said(store: MemoryStore, session_id: str = "s1", **given: Any) -> list[tuple[str, str]]:
    turns = store.sessions.transcript(session_id, **given).turns
    return [(turn.role, turn.content) for turn in turns]


def turn_of(content: str, client_id: str) -> dict[str, Any]:
    return {"session_id": "s1", "role": "user", "content": content, "client_id": client_id}


# --- Logging ----------------------------------------------------------------------------------


def test_a_transcript_gives_what_was_said_in_order(store: MemoryStore) -> None:
    store.log("s1", "user", "Where is the deploy key?")
    store.log("s1", "assistant", "In the vault, under ci/deploy.")
    store.log("s2", "user", "Something else entirely.")
    assert said(store) == [
        ("user", "Where is the deploy key?"),
        ("assistant", "In the vault, under ci/deploy."),
    ]
    assert said(store, "s3") == []


def test_the_same_words_said_twice_are_two_turns(store: MemoryStore) -> None:
    results = [store.log("s1", "user", "Please try that again now.") for _ in range(3)]
    assert {result.status for result in results} == {"created"}
    assert len({result.memory_id for result in results}) == 3
    assert store.sessions.transcript("s1").total == 3


def test_a_turn_does_not_keep_the_same_text_from_being_saved(store: MemoryStore) -> None:
    store.log("s1", "user", "Anna prefers tea to coffee.")
    first = store.save("Anna prefers tea to coffee.", kind="message", session_id="s1")
    again = store.save("Anna prefers tea to coffee.", kind="message", session_id="s1")
    assert (first.status, again.status) == ("created", "unchanged")
    assert first.similar == ()
    assert len(said(store)) == 1


def test_the_same_client_id_again_is_the_same_turn(store: MemoryStore) -> None:
    first = store.log("s1", "user", "Where is the deploy key?", client_id="a")
    again = store.log("s1", "user", "Where is the deploy key?", client_id="a")
    elsewhere = store.log("s2", "user", "Where is the deploy key?", client_id="a")
    assert (again.status, again.memory_id) == ("unchanged", first.memory_id)
    assert elsewhere.status == "created"
    assert len(said(store)) == 1


def test_a_client_id_is_not_taken_for_another_text(store: MemoryStore) -> None:
    first = store.log("s1", "user", "Where is the deploy key?", client_id="a")
    with pytest.raises(Conflict, match="client_id 'a' was logged before with another text"):
        store.log("s1", "user", "Where is the other key?", client_id="a")
    assert said(store) == [("user", "Where is the deploy key?")]
    store.update(first.memory_id, content="Where is the release key?")
    assert store.log("s1", "user", "Where is the deploy key?", client_id="a").status == "unchanged"


def test_a_turn_that_was_forgotten_does_not_come_back_when_it_is_logged_again(
    store: MemoryStore,
) -> None:
    turn = store.log("s1", "user", "My password is swordfish.", client_id="a")
    store.forget(turn.memory_id)
    assert store.log("s1", "user", "My password is swordfish.", client_id="a") == (
        store.log("s1", "user", "My password is swordfish.", client_id="a")
    )
    assert said(store) == []
    store.restore(turn.memory_id)
    assert len(said(store)) == 1


def test_many_turns_are_logged_at_once_and_again_without_doubles(store: MemoryStore) -> None:
    items = [
        {
            "session_id": "s1",
            "role": "user",
            "content": f"Question {n} of many.",
            "client_id": f"{n}",
        }
        for n in range(150)
    ]
    assert {each.status for each in store.log_many(items)} == {"created"}
    assert {each.status for each in store.log_many(iter(items))} == {"unchanged"}
    assert said(store, limit=1000) == [("user", item["content"]) for item in items]


def test_a_bad_item_is_named_and_what_came_before_it_is_kept(store: MemoryStore) -> None:
    items = [{"session_id": "s1", "role": "user", "content": "Fine as it is."}, {"role": "user"}]
    with pytest.raises(InvalidInput, match="item 1: session_id"):
        store.log_many(items)
    assert said(store) == [("user", "Fine as it is.")]


@pytest.mark.parametrize("earlier", [0, 200], ids=["first batch", "later batch"])
def test_a_client_id_of_another_text_stops_before_anything_after_it_is_kept(
    store: MemoryStore, earlier: int
) -> None:
    first = store.log("s1", "user", "Where is the deploy key?", client_id="a")
    items = [
        *(turn_of(f"Question {n} of many.", f"{n}") for n in range(earlier)),
        turn_of("A turn before it.", "b"),
        turn_of("Where is the other key?", "a"),
        turn_of("A turn after it.", "c"),
    ]
    with pytest.raises(Conflict) as refusal:
        store.log_many(items)
    assert refusal.value.message == (
        f"item {earlier + 1}: client_id 'a' was logged before with another text, "
        f"as {first.memory_id}, which stays as it is"
    )
    kept = ["Where is the deploy key?", *(item["content"] for item in items[: earlier + 1])]
    assert [content for _, content in said(store, limit=1000)] == kept


def test_one_client_id_for_two_texts_of_one_list_stops_at_the_second(store: MemoryStore) -> None:
    items = [
        turn_of("One thing to say.", "a"),
        turn_of("One thing to say.", "a"),
        turn_of("Another thing to say.", "a"),
        turn_of("A turn after it.", "b"),
    ]
    with pytest.raises(Conflict, match="item 2: client_id 'a' has another text in item 0"):
        store.log_many(items)
    assert said(store) == [("user", "One thing to say.")]
    assert {each.status for each in store.log_many(items[:2])} == {"unchanged"}


def test_with_check_first_a_client_id_of_another_text_leaves_nothing_kept(
    store: MemoryStore,
) -> None:
    many = [turn_of(f"Question {n} of many.", f"{n}") for n in range(200)]
    with pytest.raises(Conflict, match="item 200: client_id '0' has another text in item 0"):
        store.log_many([*many, turn_of("Another text.", "0")], check_first=True)
    assert said(store) == []
    store.log("s1", "user", "Where is the deploy key?", client_id="a")
    with pytest.raises(Conflict, match="item 200: client_id 'a' was logged before"):
        store.log_many([*many, turn_of("Another text.", "a")], check_first=True)
    assert len(said(store)) == 1


def test_a_turn_that_was_changed_since_can_be_given_again_in_its_first_words(
    store: MemoryStore,
) -> None:
    turn = store.log("s1", "user", "Where is the deploy key?", client_id="a")
    store.update(turn.memory_id, content="Where is the release key?")
    [again] = store.log_many([turn_of("Where is the deploy key?", "a")])
    assert (again.status, again.memory_id) == ("unchanged", turn.memory_id)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"session_id": ""}, "session_id is blank"),
        ({"role": "The User"}, "role 'The User' is not a lower-case slug"),
        ({"role": None}, "role is missing"),
        ({"content": None}, "content is missing"),
        ({"kind": "Tool Output"}, "kind"),
        ({"client_id": ""}, "client_id is blank"),
        ({"created_at": "soon"}, "created_at 'soon' is not a date"),
    ],
)
def test_a_turn_that_is_not_one_is_refused(
    store: MemoryStore, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        store.log(**{"session_id": "s1", "role": "user", "content": "Hello there!", **given})
    assert store.list().total == 0


def test_turns_are_ordered_by_when_they_were_said(store: MemoryStore) -> None:
    then = datetime(2024, 5, 1, tzinfo=UTC)
    store.log("s1", "user", "Said later than the other.", created_at=then + timedelta(hours=1))
    store.log("s1", "user", "Said before the other one.", created_at=then)
    assert [text for _, text in said(store)] == [
        "Said before the other one.",
        "Said later than the other.",
    ]
    assert store.sessions.transcript("s1").turns[0].created_at == then


# --- Short and empty turns --------------------------------------------------------------------

SHORT = ["", " ", "\n\t\n", "ok", "yes, please", "👍", "no\r\n"]


@pytest.mark.parametrize("text", SHORT)
def test_short_turns_are_kept_byte_for_byte_and_not_embedded(
    open_store: OpenStore, watched: WatchedEmbedder, text: str
) -> None:
    store = open_store(embedder=watched)
    store.log("s1", "user", "This one is long enough to be embedded.")
    before = list(watched.embedded)
    turn = store.log("s1", "user", text)
    assert watched.embedded == before
    assert turn.pending_vectors == 0
    assert store.get(turn.memory_id).content == text
    assert said(store)[1] == ("user", text)
    assert store.status().index.pending_vectors == 0
    assert store.status().degraded is None
    assert all(finding.ok for finding in store.admin.doctor() if finding.check != "disk space")


def test_a_short_turn_is_found_by_its_words(store: MemoryStore) -> None:
    turn = store.log("s1", "user", "Port 8080")
    assert [hit.memory_id for hit in store.search("port").results] == [turn.memory_id]


def test_the_words_it_takes_to_be_embedded_are_a_setting(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    open_store(embedder=watched, min_turn_words=0).log("s1", "user", "ok")
    assert watched.embedded == ["ok"]


def test_text_without_spaces_is_not_taken_for_short(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    open_store(embedder=watched).log("s1", "user", "私は紅茶が好きです。")
    assert watched.embedded


def test_short_turns_stay_without_vectors_when_the_model_changes(
    open_store: OpenStore, watched: WatchedEmbedder, make_watched: type[WatchedEmbedder]
) -> None:
    store = open_store(embedder=watched)
    store.log("s1", "user", "ok")
    store.log("s1", "user", "This one is long enough to be embedded.")
    other = make_watched(32, "another")
    switched = open_store(embedder=other)
    assert switched.admin.reembed().switched
    assert other.embedded == ["This one is long enough to be embedded."]
    for each in (store, switched):
        assert each.status().index.pending_vectors == 0
    switched.admin.doctor(rebuild=True, fix=True)
    assert switched.status().index.pending_vectors == 0


def test_a_short_turn_that_becomes_long_is_embedded(
    open_store: OpenStore, watched: WatchedEmbedder
) -> None:
    store = open_store(embedder=watched)
    turn = store.log("s1", "user", "ok")
    store.update(turn.memory_id, content="Yes, do it as we agreed on Monday.")
    assert watched.embedded == ["Yes, do it as we agreed on Monday."]
    assert said(store) == [("user", "Yes, do it as we agreed on Monday.")]


# --- Reading ----------------------------------------------------------------------------------


def test_a_transcript_is_read_page_by_page_from_either_end(store: MemoryStore) -> None:
    store.log_many(
        {"session_id": "s1", "role": ("user", "assistant")[n % 2], "content": f"Turn number {n}."}
        for n in range(7)
    )
    pages = [store.sessions.transcript("s1", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [len(page.turns) for page in pages] == [3, 3, 1, 0]
    assert [page.has_more for page in pages] == [True, True, False, False]
    assert {page.total for page in pages} == {7}
    last = store.sessions.transcript("s1", limit=3, latest=True)
    assert [turn.content for turn in last.turns] == [f"Turn number {n}." for n in (4, 5, 6)]
    assert last.has_more
    assert len(said(store, role="user")) == 4
    assert len(said(store, role=["user", "assistant"], kind="message")) == 7
    assert said(store, kind="tool_output") == []


def test_turns_tell_what_was_said_about_them(store: MemoryStore) -> None:
    store.log(
        *("s1", "tool", "3 passed, 1 failed in test_keys.py"),
        kind="tool_output",
        title="pytest",
        path="tests/test_keys.py",
        agent_id="coder",
        metadata={"exit": 1},
        client_id="call-1",
    )
    [turn] = store.sessions.transcript("s1").turns
    wire = to_wire(turn)
    del wire["memory_id"], wire["created_at"]
    assert wire == {
        "role": "tool",
        "kind": "tool_output",
        "content": "3 passed, 1 failed in test_keys.py",
        "client_id": "call-1",
        "agent_id": "coder",
        "title": "pytest",
        "path": "tests/test_keys.py",
        "metadata": {"exit": 1},
    }


def test_turns_of_another_space_are_not_seen(store: MemoryStore) -> None:
    store.log("s1", "user", "Only for the other space.", space="other")
    assert said(store) == []
    assert len(said(store, space="other")) == 1


def test_two_turns_alike_are_not_proposed_to_be_merged(store: MemoryStore) -> None:
    for _ in range(2):
        store.log("s1", "user", "Please run all of the tests again.")
    assert store.admin.dedupe().proposals == ()


def test_a_conversation_survives_an_export(
    store: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    for text in ("Please try that again now.", "Please try that again now.", "", "ok"):
        store.log("s1", "user", text)
    store.log("s1", "assistant", "As you wish, once more.", client_id="a")
    store.pin(store.save("Anna prefers tea.").memory_id)
    store.sessions.summarize("s1", "Things were tried again.")
    store.export(tmp_path / "all.jsonl", vectors=True)
    other = open_store(tmp_path / "other.db")
    assert other.import_(tmp_path / "all.jsonl").pending_vectors == 0
    assert other.sessions.transcript("s1") == store.sessions.transcript("s1")
    assert other.context("s1").text == store.context("s1").text
    assert other.log("s1", "assistant", "As you wish, once more.", client_id="a").status == (
        "unchanged"
    )
    assert other.sessions.summarize("s1", "Things were tried once more.").version == 2
    assert other.import_(tmp_path / "all.jsonl").imported == 0


LOG = """
import sys, byheart
path, name, count = sys.argv[1:]
with byheart.open(path, embedding_provider="hash") as store:
    for number in range(int(count)):
        store.log("s1", "user", f"{name} says number {number}.", client_id=f"{name}{number}")
"""


@sqlite_only
def test_two_processes_log_to_one_session_at_once(open_store: OpenStore, path: Path) -> None:
    store = open_store()
    names, count = ("Anna", "Bob"), 25
    processes = [start_script(LOG, path, name, count) for name in names]
    assert [process.wait(120) for process in processes] == [0, 0]
    turns = store.sessions.transcript("s1", limit=1000).turns
    assert len(turns) == 2 * count
    for name in names:
        own = [turn.content for turn in turns if turn.content.startswith(name)]
        assert own == [f"{name} says number {number}." for number in range(count)]


# --- Summaries --------------------------------------------------------------------------------


def test_a_summary_that_is_set_stays_until_it_is_set_again(open_store: OpenStore) -> None:
    store = open_store(summary_every_turns=2)
    first = store.sessions.summarize("s1", "We moved to Berlin.")
    assert (first.status, first.extracted) == ("created", False)
    for number in range(6):
        store.log("s1", "user", f"This is message number {number}.")
    second = store.sessions.summarize("s1", "We moved to Berlin; open: DNS.", who="coder")
    assert (second.status, second.version, second.turns) == ("updated", 2, 6)
    assert second.memory_id == first.memory_id
    assert store.get(f"{first.memory_id}@1").content == "We moved to Berlin."
    entries = store.history(first.memory_id)
    assert [(entry.operation, entry.who) for entry in entries] == [
        ("create", "manual"),
        ("update", "coder"),
    ]
    assert store.sessions.summarize("s1", "We moved to Berlin; open: DNS.").status == "unchanged"


def test_a_summary_is_made_of_what_mattered_and_grows_with_the_session(
    open_store: OpenStore,
) -> None:
    store = open_store(summary_every_turns=4)
    store.log("s1", "user", "Let us plan the move of the shop.")
    store.log("s1", "tool", "a long listing of files and folders")
    store.log("s1", "user", "ok")
    assert store.list(kind="session_summary").total == 0
    store.log("s1", "assistant", "We always deploy to Frankfurt on Mondays, as Anna decided.")
    [summary] = store.list(kind="session_summary").memories
    assert summary.content == (
        "- user: Let us plan the move of the shop.\n"
        "- assistant: We always deploy to Frankfurt on Mondays, as Anna decided."
    )
    for _ in range(4):
        store.log("s1", "user", "Bob must never deploy on a Friday, that is our policy.")
    [grown] = store.list(kind="session_summary").memories
    assert grown.memory_id == summary.memory_id
    assert grown.content.startswith(summary.content)
    assert grown.content.count("Friday") == 1
    assert grown.version == 2


def test_a_summary_is_not_made_when_the_setting_says_never(open_store: OpenStore) -> None:
    store = open_store(summary_every_turns=0)
    for number in range(50):
        store.log("s1", "user", f"This is message number {number}.")
    assert store.list(kind="session_summary").total == 0


def test_a_summary_that_was_forgotten_comes_back_only_when_it_is_asked_for(
    open_store: OpenStore,
) -> None:
    store = open_store(summary_every_turns=1)
    store.log("s1", "user", "Let us plan the move of the shop.")
    [summary] = store.list(kind="session_summary").memories
    store.forget(summary.memory_id)
    store.log("s1", "user", "And let us do it before summer comes.")
    assert store.list(kind="session_summary").total == 0
    assert store.sessions.summarize("s1").memory_id == summary.memory_id
    assert store.list(kind="session_summary").total == 1


def test_nothing_cannot_be_summed_up(store: MemoryStore) -> None:
    with pytest.raises(NotFound, match="nothing was said in the session s1"):
        store.sessions.summarize("s1")
    with pytest.raises(InvalidInput, match="text is blank"):
        store.sessions.summarize("s1", "  ")


# --- Pins -------------------------------------------------------------------------------------


def test_a_pin_is_set_and_taken_away_and_written_down(store: MemoryStore) -> None:
    saved = store.save("Anna prefers tea.").memory_id
    pinned = store.pin(saved, who="coder")
    assert pinned.pinned_at is not None
    assert store.pin(saved).pinned_at == pinned.pinned_at
    assert store.unpin(saved).pinned_at is None
    assert [(e.operation, e.who, e.version) for e in store.history(saved)] == [
        ("create", "manual", 1),
        ("pin", "coder", 1),
        ("unpin", "manual", 1),
    ]


def test_a_pin_stays_on_a_memory_that_changes(store: MemoryStore) -> None:
    saved = store.save("Anna prefers tea.").memory_id
    store.pin(saved)
    store.update(saved, content="Anna prefers coffee.")
    store.update(saved, importance=9)
    assert store.get(saved).pinned_at is not None
    other = store.save("Anna really prefers coffee.").memory_id
    store.admin.merge(other, saved)
    assert store.get(other).pinned_at is not None


def test_what_is_not_there_cannot_be_pinned(store: MemoryStore) -> None:
    with pytest.raises(NotFound, match="there is no mem_none"):
        store.pin("mem_none")
