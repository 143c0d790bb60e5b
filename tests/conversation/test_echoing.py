"""No self-echo: what was put into a prompt is not learned again from the reply."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.errors import Conflict, InvalidInput
from byheart.store import MemoryStore
from tests.conftest import OpenStore

KEY = "The deploy key is kept in the vault under ci/deploy."
NEW = "I changed the pipeline so that Jenkins reads it from there."


def found_in(store: MemoryStore, query: str, **given: object) -> list[str]:
    passages: list[str] = []
    for mode in ("hybrid", "vector", "fts"):
        hits = store.search(query, mode=mode, **given).results  # type: ignore[arg-type]
        passages += (hit.memory_id for hit in hits)
    return passages


@pytest.fixture
def asked(store: MemoryStore) -> MemoryStore:
    store.save(KEY, kind="fact")
    store.log("s1", "user", "Where do we keep the deploy key?")
    return store


def test_a_reply_that_repeats_the_context_is_kept_and_not_found(asked: MemoryStore) -> None:
    assert KEY in asked.context("s1").text
    reply = asked.log("s1", "assistant", KEY)
    assert asked.get(reply.memory_id).content == KEY
    assert [turn.content for turn in asked.sessions.transcript("s1").turns][-1] == KEY
    assert reply.memory_id not in found_in(asked, "deploy key vault")
    assert reply.memory_id not in found_in(asked, "deploy key vault", granularity="coarse")
    assert not asked.search("vault", raw=True, session_id="s1", include_global=False).results
    assert [each.id for each in asked.recall("deploy key vault").index].count(reply.memory_id) == 0
    assert reply.pending_vectors == 0
    assert all(finding.ok for finding in asked.admin.doctor() if finding.check != "embedding model")


def test_a_reply_that_is_mostly_new_is_found_by_its_new_part(asked: MemoryStore) -> None:
    asked.context("s1")
    reply = asked.log("s1", "assistant", f"{KEY} {NEW}")
    [hit] = [
        hit for hit in asked.search("Jenkins pipeline").results if hit.memory_id == reply.memory_id
    ]
    assert hit.chunk_content == NEW
    memory = asked.get(reply.memory_id)
    assert memory.content == f"{KEY} {NEW}"
    assert memory.summary == NEW
    assert "ci/deploy" not in memory.entities


def test_whatever_was_given_out_counts_not_only_contexts(asked: MemoryStore) -> None:
    for give in (
        lambda: asked.search("deploy key", session_id="s1"),
        lambda: asked.search("deploy key", session_id="s2", granularity="coarse"),
        lambda: asked.recall("deploy key", session_id="s3"),
        lambda: asked.search("deploy key"),
    ):
        give()
    for session_id in ("s1", "s2", "s3", "s4"):
        reply = asked.log(session_id, "assistant", KEY)
        assert reply.memory_id not in found_in(asked, "deploy key vault", session_id=session_id)


def test_what_was_not_given_out_is_no_echo(asked: MemoryStore) -> None:
    reply = asked.log("s1", "assistant", KEY)
    assert reply.memory_id in found_in(asked, "deploy key vault")


def test_what_another_session_was_given_is_no_echo_in_this_one(asked: MemoryStore) -> None:
    asked.context("s2", "where is the deploy key?")
    reply = asked.log("s1", "assistant", KEY)
    assert reply.memory_id in found_in(asked, "deploy key vault")


def test_what_a_session_cannot_see_makes_no_echo_in_it(store: MemoryStore) -> None:
    """The owner looks at a fact of one session; another one hears it for the first time."""
    store.save(KEY, session_id="s1")
    store.search("deploy key")
    reply = store.log("s2", "assistant", KEY)
    assert reply.memory_id in found_in(store, "deploy key vault", session_id="s2")
    own = store.log("s1", "assistant", KEY)
    assert own.memory_id not in found_in(store, "deploy key vault", session_id="s1")


def test_what_was_given_of_another_session_for_a_task_is_an_echo(store: MemoryStore) -> None:
    store.save(KEY, session_id="s1", task_code="T")
    assert KEY in store.context("s2", "deploy key", include_task="T").text
    reply = store.log("s2", "assistant", KEY)
    assert reply.memory_id not in found_in(store, "deploy key vault", session_id="s2")


def test_what_was_forgotten_is_learned_when_it_is_said_again(asked: MemoryStore) -> None:
    [hit] = asked.search("deploy key vault", session_id="s1", kind="fact").results
    asked.forget(hit.memory_id)
    reply = asked.log("s1", "assistant", KEY)
    assert reply.memory_id in found_in(asked, "deploy key vault", session_id="s1")


def test_what_has_run_out_is_learned_when_it_is_said_again(asked: MemoryStore) -> None:
    [hit] = asked.search("deploy key vault", session_id="s1", kind="fact").results
    asked.update(hit.memory_id, ttl_days=0)
    reply = asked.log("s1", "assistant", KEY)
    assert reply.memory_id in found_in(asked, "deploy key vault", session_id="s1")


def test_what_identity_files_say_is_not_learned_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    prefers = "Mara prefers terse answers and signs every letter with a fountain pen."
    (tmp_path / "USER.md").write_text(f"# User\n\n{prefers}\n", "utf-8")
    store = open_store(identity_files=[str(tmp_path / "USER.md"), str(tmp_path / "none.md")])
    assert prefers in store.context("s1", "letters").text
    reply = store.log("s1", "assistant", f"{prefers} {NEW}")
    [hit] = store.search("fountain pen Jenkins", session_id="s1").results
    assert (hit.memory_id, hit.chunk_content) == (reply.memory_id, NEW)  # type: ignore[union-attr]


def test_what_a_session_is_resumed_with_is_not_learned_again(store: MemoryStore) -> None:
    for kind in ("report", "session_context", "working_memory", "input_prompt"):
        store.save(
            f"The {kind} says that the crane by the river is painted.", kind=kind, session_id="s1"
        )
    store.sessions.summarize("s1", "Many a crane was painted in the end.")
    left = store.sessions.resume("s1")
    assert left.summary is not None
    assert left.context is not None
    given = (left.summary, left.context, *left.reports, *left.working_memories, *left.input_prompts)
    for memory in given:
        reply = store.log("s1", "assistant", memory.content)
        assert reply.memory_id not in found_in(store, "crane painted", session_id="s1")


def test_what_a_caller_shows_by_itself_is_noted(asked: MemoryStore) -> None:
    [fact] = asked.list(kind="fact").memories
    asked.sessions.note_shown(fact.memory_id, "s1")
    asked.sessions.note_shown([f"{fact.memory_id}#0", "mem_nothing"], session_id="s2")
    for session_id in ("s1", "s2"):
        reply = asked.log(session_id, "assistant", KEY)
        assert reply.memory_id not in found_in(asked, "deploy key vault", session_id=session_id)
    reply = asked.log("s3", "assistant", KEY)
    assert reply.memory_id in found_in(asked, "deploy key vault", session_id="s3")
    with pytest.raises(InvalidInput, match="is not a chunk id"):
        asked.sessions.note_shown("mem_x#y", "s1")


def test_a_user_who_says_a_fact_again_is_heard(asked: MemoryStore) -> None:
    asked.context("s1")
    said = asked.log("s1", "user", KEY)
    assert said.memory_id in found_in(asked, "deploy key vault")


def test_a_prompt_logged_with_our_block_in_it_is_known_without_a_record(asked: MemoryStore) -> None:
    block = asked.context("s1", recent=0).text
    question = "And which of the keys is the oldest one?"
    elsewhere = asked.log_many(
        [
            {"session_id": "imported", "role": "user", "content": f"{block}\n{question}"},
            {"session_id": "imported", "role": "assistant", "content": f"{KEY} {NEW}"},
        ]
    )
    hits = asked.search("deploy key vault", session_id="imported", include_global=False).results
    assert {hit.chunk_content.strip() for hit in hits} <= {question, NEW}  # type: ignore[union-attr]
    assert len(elsewhere) == 2


def test_two_processes_share_what_a_session_was_given(path: Path, open_store: OpenStore) -> None:
    one, two = open_store(path), open_store(path)
    one.save(KEY, kind="fact")
    one.context("s1", "where is the deploy key?")
    one._storage.settle()  # no reply comes before a thread would have done it
    reply = two.log("s1", "assistant", KEY)
    assert reply.memory_id not in found_in(one, "deploy key vault")


def test_the_record_is_bounded_and_goes_with_its_session(path: Path, open_store: OpenStore) -> None:
    store = open_store(path)
    store.save_many({"content": f"Fact number {number} of many."} for number in range(300))
    for offset in range(0, 300, 50):
        store.search("fact number of many", limit=50, offset=offset, session_id="s1")
    store._storage.settle()
    with store._storage.reading() as reader:
        assert 0 < len(reader.emitted("default", "s1")) <= 128
    store.save("Something of the session.", session_id="s1")
    store.sessions.forget("s1", dry_run=False)
    with store._storage.reading() as reader:
        assert reader.emitted("default", "s1") == []


def test_what_was_given_last_is_remembered_longest(open_store: OpenStore) -> None:
    store = open_store()
    facts = [store.save(f"Fact number {number} of many.").memory_id for number in range(200)]
    for memory_id in facts:
        store.sessions.note_shown(memory_id, "s1")
    store._storage.settle()
    with store._storage.reading() as reader:
        remembered = [each.text for each in reader.emitted("default", "s1")]
    assert "Fact number 199 of many." in remembered
    assert "Fact number 0 of many." not in remembered


def test_an_echo_is_not_noted_as_given_out_again(asked: MemoryStore) -> None:
    """Else a reply that was an echo would make echoes after its source is gone."""
    asked.context("s1")
    reply = asked.log("s1", "assistant", f"{KEY} {NEW}")
    asked.sessions.note_shown(reply.memory_id, "s2")
    asked._storage.settle()
    with asked._storage.reading() as reader:
        assert [each.text.strip() for each in reader.emitted("default", "s2")] == [NEW]


def test_a_summary_is_not_made_of_echoes(asked: MemoryStore) -> None:
    asked.context("s1")
    asked.log("s1", "assistant", KEY)
    asked.log("s1", "assistant", f"{KEY} {NEW}")
    summary = asked.sessions.summarize("s1").content
    assert KEY not in summary
    assert NEW in summary


def test_what_is_erased_is_not_remembered_as_given_out(asked: MemoryStore) -> None:
    asked.context("s1")
    asked.forget(asked.search("deploy key vault").results[0].memory_id, hard=True)
    with asked._storage.reading() as reader:
        assert KEY not in {each.text for each in reader.emitted("default", "s1")}


def test_it_can_be_switched_off(open_store: OpenStore) -> None:
    store = open_store(notice_echoes=False)
    store.save(KEY, kind="fact")
    store.context("s1", "where is the deploy key?")
    reply = store.log("s1", "assistant", KEY)
    assert reply.memory_id in found_in(store, "deploy key vault")


def test_echoes_survive_export_rebuild_and_another_model(
    asked: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    asked.context("s1")
    reply = asked.log("s1", "assistant", f"{KEY} {NEW}")
    asked.export(tmp_path / "all.jsonl")
    other = open_store(tmp_path / "other.db")
    other.import_(tmp_path / "all.jsonl")
    other.admin.doctor(rebuild=True)
    for store in (asked, other):
        hits = [h for h in store.search(KEY, limit=20).results if h.memory_id == reply.memory_id]
        assert [hit.chunk_content for hit in hits] == [NEW]  # type: ignore[union-attr]
        assert store.get(reply.memory_id).content == f"{KEY} {NEW}"
        assert store.status().index.pending_vectors == 0


def test_a_turn_said_by_two_processes_in_other_words_stops_where_it_was_reached(
    path: Path, open_store: OpenStore
) -> None:
    """Another process logs between the look and the write: nothing behind it is kept."""
    ours, theirs = open_store(path), open_store(path)
    turns = [
        {"session_id": "s", "role": "user", "content": f"Turn {n} here.", "client_id": str(n)}
        for n in range(4)
    ]
    check = ours._engine.recorder._hear

    def slow(requests: object) -> object:
        if theirs.sessions.transcript("s").total == 0:
            theirs.log("s", "user", "In other words.", client_id="2")
        return check(requests)  # type: ignore[arg-type]

    ours._engine.recorder._hear = slow  # type: ignore[method-assign,assignment]
    with pytest.raises(Conflict, match="another text"):
        ours.log_many(turns)
    said = [turn.content for turn in ours.sessions.transcript("s").turns]
    assert sorted(said) == ["In other words.", "Turn 0 here.", "Turn 1 here."]
