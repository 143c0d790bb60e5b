"""Saving and reading, rule by rule."""

import hashlib
import itertools
import json
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import byheart
from byheart.contracts import Models, Vectors
from byheart.errors import (
    EmbedderUnavailable,
    EmbeddingError,
    InvalidInput,
    NotFound,
    SettingsError,
    StoreError,
)
from byheart.interfaces.operations import OPERATIONS
from byheart.model import to_wire
from byheart.settings import load_settings
from byheart.storage.sql.model_rows import SqlModelRows
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore, Progress
from tests.conftest import ArrowEmbedder, WatchedEmbedder
from tests.databases import database, sqlite_only

__all__ = ["database"]

REPORT = """# Performance Report

The service slowed down in March.

## Database

Query times doubled after the migration to the new cluster.

### Query Times

The p95 went from 20 ms to 45 ms.

## Network

Nothing unusual was seen on the network.
"""


def rows(path: Path) -> dict[str, int]:
    """Count the rows of every table of a store."""
    connection = apsw.Connection(str(path))
    tables = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').get for name in tables}


# --- What a save answers ----------------------------------------------------------------------


def test_a_save_answers_with_id_status_chunks_hash_time_and_pending_vectors(
    store: MemoryStore,
) -> None:
    before = datetime.now(UTC)
    saved = store.save(REPORT)
    assert set(to_wire(saved)) == {
        *("memory_id", "status", "chunks", "content_hash", "created_at", "pending_vectors"),
        *("version", "similar", "conflicts", "degraded", "secrets_found", "secrets_redacted"),
    }
    assert saved.status == "created"
    assert saved.chunks == store.get(saved.memory_id).chunks > 1
    assert saved.content_hash == hashlib.sha256(REPORT.encode()).hexdigest()
    assert before <= saved.created_at <= datetime.now(UTC)
    assert saved.pending_vectors == 0


@sqlite_only
def test_saving_the_same_text_again_changes_nothing_and_returns_the_first_id(
    store: MemoryStore, path: Path
) -> None:
    first = store.save(REPORT, title="first", tags=["a"])
    held = rows(path)
    again = store.save(REPORT, title="second", tags=["b"])
    assert again.status == "unchanged"
    assert (again.memory_id, again.chunks, again.content_hash, again.created_at) == (
        *(first.memory_id, first.chunks, first.content_hash, first.created_at),
    )
    assert rows(path) == held
    assert store.get(first.memory_id).title == "first"


@pytest.mark.parametrize(
    "elsewhere",
    [{"session_id": "other"}, {"kind": "fact"}, {"space": "other"}, {"session_id": None}],
    ids=str,
)
def test_the_same_text_in_another_session_kind_or_space_is_another_memory(
    store: MemoryStore, elsewhere: dict[str, Any]
) -> None:
    here = store.save("the same text", session_id="one")
    there = store.save("the same text", **{"session_id": "one", **elsewhere})
    assert there.status == "created"
    assert there.memory_id != here.memory_id


@pytest.mark.parametrize(
    "elsewhere", [{"agent_id": "b"}, {"title": "t"}, {"task_code": "x"}], ids=str
)
def test_the_same_text_under_another_agent_title_or_task_is_the_same_memory(
    store: MemoryStore, elsewhere: dict[str, Any]
) -> None:
    here = store.save("the same text", agent_id="a")
    assert store.save("the same text", **{"agent_id": "a", **elsewhere}).memory_id == here.memory_id


def test_the_same_text_twice_in_one_batch_is_one_memory(store: MemoryStore) -> None:
    first, second = store.save_many([{"content": "twice"}, {"content": "twice"}])
    assert (first.status, second.status) == ("created", "unchanged")
    assert first.memory_id == second.memory_id
    assert store.list().total == 1


def test_texts_that_differ_in_white_space_alone_are_two_memories(store: MemoryStore) -> None:
    assert store.save("a  b").memory_id != store.save("a b").memory_id


def test_memory_ids_sort_in_the_order_of_saving(store: MemoryStore) -> None:
    saved = store.save_many({"content": f"text {number}"} for number in range(50))
    ids = [each.memory_id for each in saved]
    assert ids == sorted(set(ids))


def test_a_chunk_is_named_by_memory_id_and_index(store: MemoryStore) -> None:
    saved = store.save(REPORT)
    found = store.search("query network service", limit=20).results
    assert {hit.chunk_id for hit in found} == {
        f"{saved.memory_id}#{n}" for n in range(saved.chunks)
    }
    assert all(hit.chunk_id == f"{hit.memory_id}#{hit.chunk_index}" for hit in found)


# --- Text is kept byte for byte ---------------------------------------------------------------

AWKWARD = [
    "no final newline",
    "\n\n  leading and trailing  \n\n",
    "carriage\r\nreturns\rmixed\nup",
    "tabs\tand\u00a0odd\u2003spaces\u200b",
    "\ufeffbyte order mark",
    "nul \0 inside, and \x01\x1b control",
    "decomposed e\u0301 and composed é",
    "emoji 👩‍👩‍👧‍👦 and flags 🇩🇪",
    "\u202eright to left\u202c עברית",
    "“curly” quotes — kept",
    "```\nunclosed fence\n\n# not a heading",
    "---\ntitle: front matter\n---\n\n# Heading\n\ntext",
    "x" * 5000,
    "word " * 3000,
    "𠀀" * 500,
    "\x85next line\u2028separators\u2029",
]


@pytest.mark.parametrize("text", AWKWARD, ids=lambda text: repr(text[:16]))
def test_text_is_kept_byte_for_byte(store: MemoryStore, text: str) -> None:
    memory = store.get(store.save(text).memory_id)
    assert memory.content.encode() == text.encode()
    assert store.reconstruct(memory.memory_id) == text


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=3000))
def test_any_text_that_is_saved_comes_back_byte_for_byte(store: MemoryStore, text: str) -> None:
    if not text.strip():
        with pytest.raises(InvalidInput):
            store.save(text)
        return
    saved = store.save(text)
    assert store.get(saved.memory_id).content == text
    whole = store.expand(f"{saved.memory_id}#0", around=1000)
    assert "".join(chunk.content for chunk in whole.chunks) == text == whole.expanded_content


def test_neither_overlap_nor_context_headers_reach_the_reader(store: MemoryStore) -> None:
    text = "# Top\n\n" + "\n\n".join(f"Paragraph {n}. " + "Words go on. " * 60 for n in range(12))
    saved = store.save(text, title="A title")
    assert saved.chunks > 3
    shown = store.search("paragraph words", limit=50).results
    assert len(shown) == saved.chunks
    assert (
        "".join(hit.chunk_content for hit in sorted(shown, key=lambda hit: hit.chunk_index)) == text
    )
    [section] = store.search("paragraph", granularity="medium").results
    assert section.section_content == text
    assert store.search("paragraph", granularity="coarse").results[0].content == text


def test_write_to_file_without_metadata_gives_the_text_byte_for_byte(
    store: MemoryStore, tmp_path: Path
) -> None:
    text = "one\r\ntwo\n\ufeffthree"
    written = store.write_to_file(
        store.save(text).memory_id, tmp_path / "a.md", include_metadata=False
    )
    assert (tmp_path / "a.md").read_bytes() == text.encode()
    assert written.file_size_bytes == len(text.encode())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such rights")
def test_write_to_file_leaves_a_private_file_private_and_its_neighbours_alone(
    store: MemoryStore, tmp_path: Path
) -> None:
    memory_id = store.save("private words").memory_id
    target, neighbour = tmp_path / "secret.md", tmp_path / "secret.md.partial"
    target.write_text("x")
    target.chmod(0o600)
    neighbour.write_text("mine")
    store.write_to_file(memory_id, target, overwrite=True)
    assert target.stat().st_mode & 0o777 == 0o600
    assert neighbour.read_text() == "mine"
    new = store.write_to_file(memory_id, tmp_path / "new.md")
    assert Path(new.file_path).stat().st_mode & 0o777 == 0o600


@sqlite_only
@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of files")
def test_write_to_file_leaves_a_file_as_it_was_when_the_disk_is_full(
    store: MemoryStore, path: Path, tmp_path: Path
) -> None:
    memory_id = store.save("# Long\n\n" + "word " * 2000).memory_id
    target = tmp_path / "kept.md"
    target.write_text("precious")
    program = f"""
import resource, byheart
with byheart.open({str(path)!r}, embedding_provider="hash") as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    store.write_to_file({memory_id!r}, {str(target)!r}, overwrite=True)
"""
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "cannot write" in failed.stderr
    assert target.read_text() == "precious"
    assert [each.name for each in tmp_path.glob("*kept*")] == ["kept.md"]


def test_write_to_file_never_replaces_a_file_unasked(store: MemoryStore, tmp_path: Path) -> None:
    target = tmp_path / "mine.md"
    target.write_text("mine")
    memory_id = store.save("text").memory_id
    with pytest.raises(InvalidInput, match="exists already"):
        store.write_to_file(memory_id, target)
    assert target.read_text() == "mine"
    store.write_to_file(memory_id, target, overwrite=True)
    assert target.read_text().endswith("---\n\ntext")


# --- Fields -----------------------------------------------------------------------------------


def test_everything_given_is_kept_as_given(store: MemoryStore) -> None:
    given_fields: dict[str, Any] = {
        "content": "The deployment of Apollo failed.",
        "kind": "report",
        "title": "Deployment",
        "summary": "It failed.",
        "source": "pager",
        "session_id": "s-1",
        "agent_id": "a-1",
        "session_iter": 3,
        "task_code": "T-9",
        "importance": 7.5,
        "metadata": {"nested": {"list": [1, None, "x"]}, "ümlaut": True},
        "space": "team",
        "path": "reports/apollo.md",
    }
    saved = store.save(**given_fields, tags=["b", "a"], entities=["Zeus", "apollo"])
    memory = store.get(saved.memory_id, space="team")
    for name, value in given_fields.items():
        assert getattr(memory, name) == value, name
    assert set(memory.tags) == {"a", "b"}
    assert set(memory.entities) == {"Zeus", "apollo"}
    assert memory.scope == "session"
    assert memory.created_at == memory.updated_at == saved.created_at
    assert memory.access_count == 0
    assert memory.accessed_at is None


def test_a_bare_text_is_a_global_note_from_manual_in_the_default_space(store: MemoryStore) -> None:
    memory = store.get(store.save("just text").memory_id)
    assert (memory.kind, memory.source, memory.space, memory.scope) == (
        *("note", "manual", "default", "global"),
    )
    assert (memory.title, memory.session_id, memory.session_iter, memory.expires_at) == (None,) * 4


def test_a_derived_summary_has_at_most_20_words_from_the_first_real_sentence(
    store: MemoryStore,
) -> None:
    text = "# Notes\n\n" + "Rust is fast and safe. " + "Many more words follow here. " * 50
    assert store.get(store.save(text).memory_id).summary == "Rust is fast and safe."
    endless = store.get(store.save("word " * 500).memory_id).summary
    assert 1 <= len(endless.split()) <= 20


def test_entities_are_derived_when_none_are_given_and_only_then(store: MemoryStore) -> None:
    text = "Alice reports to Bob in Engineering about getUserName."
    derived = store.get(store.save(text).memory_id).entities
    assert {"Alice", "Bob", "Engineering", "getUserName"} <= set(derived)
    assert store.get(store.save(text, kind="fact", entities=[]).memory_id).entities == ()
    given_ones = store.save(text, kind="report", entities=["Carol"])
    assert store.get(given_ones.memory_id).entities == ("Carol",)


def test_entities_that_differ_in_case_alone_are_one(store: MemoryStore) -> None:
    saved = store.save("text", entities=["alice", "Alice", "ALICE"])
    assert len(store.get(saved.memory_id).entities) == 1


def test_importance_is_computed_when_not_given_and_within_0_to_10(store: MemoryStore) -> None:
    computed = store.get(store.save("User prefers TypeScript over JavaScript").memory_id).importance
    assert 0 < computed <= 10
    plain = store.get(store.save("hello world note").memory_id).importance
    assert computed > plain  # a stated preference counts
    assert store.get(store.save("zero", importance=0).memory_id).importance == 0


@pytest.mark.parametrize("written", [2, "2", "v2", "V2"])
def test_session_iter_is_kept_as_a_number(store: MemoryStore, written: object) -> None:
    saved = store.save("text", session_id="s", session_iter=written)
    assert store.get(saved.memory_id).session_iter == 2
    for asked in (2, "2", "v2"):
        found = store.search("text", session_id="s", session_iter=asked).results
        assert [hit.memory_id for hit in found] == [saved.memory_id]


def test_iterations_are_ordered_as_numbers(store: MemoryStore) -> None:
    for number in ("v2", "v10", "v1", 9):
        store.save(f"iteration {number}", session_id="s", session_iter=number)
    store.save("without iteration", session_id="s")
    listed = store.search(granularity="coarse", session_id="s").results
    assert [hit.session_iter for hit in listed] == [10, 9, 2, 1, None]


# --- Expiry -----------------------------------------------------------------------------------


def test_a_memory_without_expiry_is_permanent(store: MemoryStore) -> None:
    assert (
        store.get(store.save("text", ttl_days=None, expires_at=None).memory_id).expires_at is None
    )


@pytest.mark.parametrize("importance", [0, 10])
@pytest.mark.parametrize("days", [1, 0.5, 90])
def test_ttl_days_is_exact_whatever_the_importance(
    store: MemoryStore, days: float, importance: float
) -> None:
    saved = store.save("text", ttl_days=days, importance=importance)
    assert store.get(saved.memory_id).expires_at == saved.created_at + timedelta(days=days)


def test_expires_at_is_kept_to_the_microsecond(store: MemoryStore) -> None:
    moment = datetime(2099, 12, 31, 23, 59, 59, 123457, tzinfo=UTC)
    assert store.get(store.save("text", expires_at=moment).memory_id).expires_at == moment


@pytest.mark.parametrize(
    ("importance", "days"),
    [
        (10, None),
        (9.9, 365),
        (8, 365),
        (7.9, 180),
        (6, 180),
        (5.9, 90),
        (4, 90),
        (3.9, 30),
        (2, 30),
        (1.9, 7),
        (0, 7),
    ],
)
def test_retention_follows_importance_when_switched_on(
    open_store: Callable[..., MemoryStore], importance: float, days: int | None
) -> None:
    store = open_store(retention_policy=True)
    saved = store.save("text", importance=importance)
    expected = None if days is None else saved.created_at + timedelta(days=days)
    assert store.get(saved.memory_id).expires_at == expected


def test_retention_is_off_unless_asked_for(store: MemoryStore) -> None:
    assert store.get(store.save("text", importance=0).memory_id).expires_at is None


def test_a_given_ttl_wins_over_retention(open_store: Callable[..., MemoryStore]) -> None:
    saved = open_store(retention_policy=True).save("text", importance=1, ttl_days=400)
    memory = open_store().get(saved.memory_id)
    assert memory.expires_at == saved.created_at + timedelta(days=400)


def test_an_expired_memory_is_hidden_from_search_and_list_unless_asked_for(
    store: MemoryStore,
) -> None:
    expired = store.save("stale bread", expires_at="2020-01-01")
    for mode in ("fts", "vector", "hybrid"):
        for granularity in ("fine", "medium", "coarse"):
            ask = {"mode": mode, "granularity": granularity}
            assert not store.search("stale bread", **ask).results
            [hit] = store.search("stale bread", include_expired=True, **ask).results
            assert hit.memory_id == expired.memory_id
    assert store.list().total == 0
    assert store.list(include_expired=True).total == 1


def test_a_memory_expires_at_its_moment_without_anyone_writing(store: MemoryStore) -> None:
    store.save("fleeting thought", ttl_days=0.4 / 86400)
    assert store.search("fleeting").total_results == 1
    time.sleep(0.45)
    assert store.search("fleeting").total_results == 0


# --- Refusals ---------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"content": ""}, "content is blank"),
    ({"content": " \n\t\u2003"}, "content is blank"),
    ({"content": None}, "content is missing"),
    ({"content": 5}, "content must be text"),
    ({"content": b"bytes"}, "content must be text"),
    ({"content": "x" * 2001}, "2,001 bytes; at most 2,000"),
    ({"content": "é" * 1001}, "2,002 bytes; at most 2,000"),
    ({"content": "lone \ud800 surrogate"}, "not valid Unicode at character 5"),
    ({"importance": 11}, "from 0 to 10"),
    ({"importance": -1}, "from 0 to 10"),
    ({"importance": math.nan}, "from 0 to 10"),
    ({"importance": "high"}, "from 0 to 10"),
    ({"kind": "Not A Slug"}, "lower-case slug"),
    ({"kind": ""}, "kind"),
    ({"kind": None}, "kind"),
    ({"title": " "}, "title is blank"),
    ({"title": "x" * 1001}, "title has 1,001 bytes"),
    ({"title": "\udc00"}, "title is not valid Unicode"),
    ({"summary": 1}, "summary must be text"),
    ({"source": ""}, "source is blank"),
    ({"session_id": ""}, "session_id is blank"),
    ({"session_id": "a\nb"}, "control characters"),
    ({"session_id": 7}, "session_id must be text"),
    ({"session_iter": "two"}, "session_iter"),
    ({"session_iter": -1}, "session_iter"),
    ({"agent_id": "x" * 201}, "agent_id has 201 bytes"),
    ({"tags": "one"}, "tags must be a list"),
    ({"tags": [""]}, "tags is blank"),
    ({"tags": [1]}, "tags must be text"),
    ({"tags": [f"t{n}" for n in range(101)]}, "at most 100"),
    ({"entities": "one"}, "entities must be a list"),
    ({"ttl_days": -1}, "ttl_days"),
    ({"ttl_days": math.nan}, "ttl_days"),
    ({"ttl_days": "1"}, "ttl_days"),
    ({"expires_at": "tomorrow"}, "not a date"),
    ({"expires_at": "2026-02-30"}, "not a date"),
    ({"ttl_days": 1, "expires_at": "2030-01-01"}, "both given"),
    ({"metadata": {"x": math.nan}}, "metadata"),
    ({"metadata": {"x": object()}}, "metadata"),
    ({"metadata": [1]}, "metadata must be an object"),
    ({"metadata": {1: 2}}, "metadata must be an object"),
    ({"metadata": {"x": "\ud800"}}, "metadata"),
    ({"space": ""}, "space is blank"),
    ({"space": "a\0b"}, "control characters"),
    ({"colour": "red"}, "unknown field 'colour'"),
    ({"sesion_id": "x"}, "did you mean session_id"),
    ({1: 2}, "unknown field"),
]


@sqlite_only
@pytest.mark.parametrize(("wrong", "said"), REFUSED, ids=lambda value: repr(value)[:40])
def test_bad_input_is_refused_and_writes_nothing(
    open_store: Callable[..., MemoryStore], path: Path, wrong: dict[str, Any], said: str
) -> None:
    store = open_store(max_content_bytes=2000)
    before = rows(path)
    with pytest.raises(InvalidInput, match=re.escape(said)) as refusal:
        store.save_many([{"content": "good", **wrong}])
    assert refusal.value.message.startswith("item 0: ")
    if all(isinstance(name, str) for name in wrong) and not {"colour", "sesion_id"} & set(wrong):
        with pytest.raises(InvalidInput, match=re.escape(said)):
            store.save(**{"content": "good", **wrong})
    assert rows(path) == before


@pytest.mark.parametrize("item", [None, "text", 5, ["content"]], ids=repr)
def test_an_item_that_is_no_mapping_is_refused(store: MemoryStore, item: Any) -> None:
    with pytest.raises(InvalidInput):
        store.save_many([item])


@pytest.mark.parametrize("items", [None, 5, "text", b"text", {"content": "one"}], ids=repr)
def test_items_that_are_no_list_are_refused(store: MemoryStore, items: Any) -> None:
    for keep in (store.save_many, store.log_many):
        with pytest.raises(InvalidInput, match="items must be a list of objects"):
            keep(items)


def test_the_largest_text_allowed_is_saved(open_store: Callable[..., MemoryStore]) -> None:
    assert open_store(max_content_bytes=2000).save("é" * 1000).status == "created"


# --- save_many --------------------------------------------------------------------------------


def test_save_many_answers_for_each_item_in_order(store: MemoryStore) -> None:
    known = store.save("known")
    items = [{"content": "new 1"}, {"content": "known"}, {"content": "new 2", "kind": "fact"}]
    saved = store.save_many(items)
    assert [each.status for each in saved] == ["created", "unchanged", "created"]
    assert saved[1].memory_id == known.memory_id
    assert [store.get(each.memory_id).content for each in saved] == ["new 1", "known", "new 2"]


def test_save_many_takes_any_iterable_and_reports_progress(store: MemoryStore) -> None:
    seen: list[Progress] = []
    store.save("text 0")
    store.save_many(({"content": f"text {n}"} for n in range(600)), on_progress=seen.append)
    assert [each.memories for each in seen] == sorted(each.memories for each in seen)
    assert seen[-1] == Progress(memories=600, chunks=600, unchanged=1)
    assert len(seen) > 2


def test_a_batch_asks_for_the_stores_model_no_more_often_than_one_text(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Models] = []
    read = SqlModelRows.read
    monkeypatch.setattr(SqlModelRows, "read", lambda rows: asked.append(read(rows)) or asked[-1])
    with MemoryStore(SqliteStorage(path), WatchedEmbedder(), load_settings({})) as store:
        store.save("one text")
        once = len(asked)
        store.save_many({"content": f"text {n}"} for n in range(50))
        assert 0 < len(asked) - once <= once


def test_a_bad_item_stops_save_many_after_what_came_before_it_was_saved(store: MemoryStore) -> None:
    items = [{"content": f"text {n}"} for n in range(300)]
    items[290] = {"content": ""}
    with pytest.raises(InvalidInput, match="item 290: content is blank"):
        store.save_many(items)
    assert store.list().total == 290
    assert {memory.content for memory in store.list(limit=300).memories} == {
        item["content"] for item in items[:290]
    }


def test_a_bad_item_leaves_nothing_saved_when_all_are_checked_first(store: MemoryStore) -> None:
    items: list[dict[str, Any]] = [{"content": f"text {n}", "role": "user"} for n in range(300)]
    turns = [{**item, "session_id": "s1"} for item in [*items[:290], {"role": "user"}]]
    texts = [{"content": item["content"]} for item in items[:290]] + [{"content": ""}]
    for keep, said in ((store.save_many, texts), (store.log_many, turns)):
        with pytest.raises(InvalidInput, match="item 290: "):
            keep(iter(said), check_first=True)
        assert store.list().total == 0
        assert len(keep(iter(said[:290]), check_first=True)) == 290
        store.forget(kind=["note", "message"], hard=True, dry_run=False)


def test_an_interrupted_save_many_goes_on_later_without_doing_anything_twice(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    texts = [f"item number {n} is about topic {n % 7}" for n in range(700)]

    def until_interrupted() -> Any:
        for number, text in enumerate(texts):
            if number == 400:
                raise KeyboardInterrupt
            yield {"content": text}

    with pytest.raises(KeyboardInterrupt):
        store.save_many(until_interrupted())
    kept = store.list().total
    assert 0 < kept <= 400
    assert store.search("topic").index.pending_vectors == 0

    again = open_store(embedder=watched)
    saved = again.save_many({"content": text} for text in texts)
    assert [each.status for each in saved] == ["unchanged"] * kept + ["created"] * (700 - kept)
    assert again.list().total == 700
    items = [each for each in watched.embedded if each.startswith("item")]
    assert sorted(items) == sorted(texts)  # every text once, none twice


LONG = "".join(f"## Section {n}\n\nWords about topic {n}.\n\n" for n in range(500))


class InterruptedEmbedder(WatchedEmbedder):
    """Be interrupted at the third batch, once."""

    batches = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        if self.batches == 3:
            raise KeyboardInterrupt
        return super().embed(texts)


@pytest.mark.parametrize("go_on", ["save", "save_many", "embed_pending", "doctor"])
def test_a_long_text_that_is_interrupted_is_kept_and_goes_on_later_without_doing_anything_twice(
    open_store: Callable[..., MemoryStore], go_on: str
) -> None:
    embedder = InterruptedEmbedder()
    store = open_store(embedder=embedder)
    with pytest.raises(KeyboardInterrupt):
        store.save(LONG)
    made = len(embedder.embedded)
    assert 0 < made < 500
    [memory] = store.list().memories
    assert store.get(memory.memory_id).content == LONG
    assert store.search("topic 499", mode="fts").results[0].chunk_index == 499
    assert store.status().index.pending_vectors == 500 - made

    if go_on == "save":
        saved = store.save(LONG)
        assert (saved.status, saved.pending_vectors) == ("unchanged", 0)
    elif go_on == "save_many":
        [saved] = store.save_many([{"content": LONG}])
        assert (saved.status, saved.pending_vectors) == ("unchanged", 0)
    elif go_on == "embed_pending":
        assert store.admin.embed_pending() == 500 - made
    assert all(finding.ok for finding in store.admin.doctor(fix=go_on == "doctor"))
    assert len(embedder.embedded) == len(set(embedder.embedded)) == 500
    assert store.search("topic 499", mode="vector").results[0].chunk_index == 499


def test_a_long_text_is_complete_when_it_is_saved_and_says_how_far_it_is_meanwhile(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    told: list[Progress] = []
    saved = store.save(LONG, on_progress=told.append)
    assert (saved.status, saved.chunks, saved.pending_vectors) == ("created", 500, 0)
    assert told[0] == Progress(1, 500, 0, vectors=0, vectors_total=500)
    assert told[-1] == Progress(1, 500, 0, vectors=500, vectors_total=500)
    assert len(told) > 3
    told.clear()
    [short, long] = store.save_many([{"content": "x"}, {"content": LONG, "kind": "report"}])
    assert (short.pending_vectors, long.pending_vectors) == (0, 0)
    assert len(watched.embedded) == 501
    store.save_many([{"content": f"{LONG}!"}], told.append)
    assert told[-1] == Progress(1, 500, 0)
    assert told[-2].vectors == told[-2].vectors_total == 500


@sqlite_only
def test_a_text_that_is_safe_is_reported_so_though_its_vectors_cannot_be_counted(
    open_store: Callable[..., MemoryStore], path: Path
) -> None:
    store = open_store()
    moved = path.with_name("moved.db")

    def take_away(progress: Progress) -> None:
        if progress.vectors == 500:
            path.rename(moved)

    saved = store.save(LONG, on_progress=take_away)
    moved.rename(path)
    assert saved.status == "created"
    assert str(path) in str(saved.degraded)
    assert store.save(LONG).pending_vectors == 0


def test_a_long_text_that_is_given_twice_is_counted_once(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    told: list[Progress] = []
    open_store(embedder=watched).save_many([{"content": LONG}] * 2, told.append)
    assert {each.vectors_total for each in told[:-1]} == {500}


def test_who_saves_beside_a_long_text_makes_none_of_its_vectors_again(
    open_store: Callable[..., MemoryStore],
) -> None:
    class Slow(WatchedEmbedder):
        """Take a while over what waited."""

        def embed(self, texts: Sequence[str]) -> Vectors:
            if len(texts) > 1:
                began.set()
                time.sleep(0.05)
            return super().embed(texts)

    began, slow = threading.Event(), Slow()
    store = open_store(embedder=slow)
    savers = [threading.Thread(target=store.save, args=(LONG,)) for _ in range(2)]
    for each in savers:
        each.start()
        assert began.wait(20)
    number = 0
    while any(each.is_alive() for each in savers):
        store.save(f"a short text {number}")
        number += 1
    assert number > 1
    assert store.admin.count_pending() == 0
    assert len(slow.embedded) == len(set(slow.embedded)) == 500 + number


def test_many_short_texts_beside_a_long_one_are_embedded_before_they_are_written(
    open_store: Callable[..., MemoryStore],
) -> None:
    choosy, told = ChoosyEmbedder(), []
    store = open_store(embedder=choosy)
    notes = [
        f"## One {n}\n\nA word.\n\n## Two {n}\n\nWords.\n\n## Three\n\nPOISON." for n in range(60)
    ]
    items = [{"content": text.replace("POISON", "Yes")} for text in notes]
    items[7]["content"] = notes[7]
    saved = store.save_many([*items, {"content": LONG}], told.append)
    assert [n for n, each in enumerate(saved) if each.pending_vectors] == [7]
    assert saved[7].degraded == "400: this input is refused"
    assert told[0].vectors_total == 501
    assert store.search("topic 499", mode="vector").results[0].chunk_index == 499


def test_a_long_text_that_takes_the_place_of_another_is_complete_too(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save("short").memory_id
    changed = store.update(memory_id, content=LONG)
    assert (changed.chunks, changed.pending_vectors) == (500, 0)
    watched.embedded.clear()
    changed = store.update(memory_id, content=LONG.replace("topic 250", "quokkas"))
    assert changed.pending_vectors == 0
    assert 0 < len(watched.embedded) < 10  # only what differs


def test_saving_nothing_is_fine(store: MemoryStore) -> None:
    assert store.save_many([]) == []


# --- Reading ----------------------------------------------------------------------------------


def test_get_takes_the_id_of_a_memory_or_of_one_of_its_chunks(store: MemoryStore) -> None:
    saved = store.save(REPORT)
    assert store.get(f"{saved.memory_id}#1") == store.get(saved.memory_id)


@pytest.mark.parametrize("name", ["mem_00000000000000000000000000", "nothing", "x#1"])
def test_what_is_not_there_is_not_found_by_name(store: MemoryStore, name: str) -> None:
    with pytest.raises(NotFound, match=re.escape(name.split("#")[0])):
        store.get(name)


@pytest.mark.parametrize("name", ["", "\ud800", 5, None, b"x"], ids=repr)
def test_what_cannot_be_an_id_is_refused_in_our_own_words(store: MemoryStore, name: Any) -> None:
    for read in (store.get, store.reconstruct, store.expand):
        with pytest.raises((InvalidInput, NotFound)):
            read(name)


@pytest.mark.parametrize(
    ("around", "indexes"), [(0, [3]), (1, [2, 3, 4]), (2, [1, 2, 3, 4, 5]), (99, list(range(8)))]
)
def test_expand_gives_the_neighbours_on_both_sides(
    store: MemoryStore, around: int, indexes: list[int]
) -> None:
    parts = [f"## Part {n}\n\n{'Sentence of this part. ' * 40}\n\n" for n in range(8)]
    text = "".join(parts)
    saved = store.save(text)
    assert saved.chunks == 8
    window = store.expand(f"{saved.memory_id}#3", around=around)
    assert [chunk.index for chunk in window.chunks] == indexes
    assert window.expanded_content == "".join(parts[index] for index in indexes)
    assert (window.memory_id, window.target_chunk_index, window.context_window) == (
        *(saved.memory_id, 3, around),
    )
    assert window.chunks_returned == len(indexes)


def test_expand_shows_two_neighbours_on_each_side_by_default(store: MemoryStore) -> None:
    text = "".join(f"## Part {n}\n\n{'Sentence of this part. ' * 40}\n\n" for n in range(8))
    saved = store.save(text)
    assert [c.index for c in store.expand(f"{saved.memory_id}#0").chunks] == [0, 1, 2]
    assert [c.index for c in store.expand(f"{saved.memory_id}#7").chunks] == [5, 6, 7]


def test_a_chunk_behind_the_last_is_not_found(store: MemoryStore) -> None:
    saved = store.save("one chunk")
    with pytest.raises(NotFound):
        store.expand(f"{saved.memory_id}#1")


def test_list_is_newest_first_with_the_total_and_whether_more_follow(store: MemoryStore) -> None:
    for number in range(5):
        store.save(f"text {number}")
    page = store.list(limit=2, offset=1)
    assert [memory.content for memory in page.memories] == ["text 3", "text 2"]
    assert (page.total, page.has_more) == (5, True)
    assert not store.list(limit=2, offset=3).has_more


def test_sessions_count_by_agent_with_their_latest_iteration_and_kinds(store: MemoryStore) -> None:
    store.save("a", session_id="s1", agent_id="x", session_iter=11, kind="report")
    store.save("b", session_id="s1", agent_id="x", session_iter=2, kind="fact")
    store.save("c", session_id="s1", agent_id="y")
    last = store.save("d", session_id="s2", agent_id="x")
    store.save("e")
    found = {(each.session_id, each.agent_id): each for each in store.sessions.list()}
    assert set(found) == {("s1", "x"), ("s1", "y"), ("s2", "x")}
    both = found["s1", "x"]
    assert (both.memory_count, both.latest_iter, both.kinds) == (2, 11, ("fact", "report"))
    assert both.first_activity < both.latest_activity
    assert store.sessions.list()[0].session_id == "s2"  # the latest active first
    assert store.sessions.list()[0].latest_activity == last.created_at
    assert {each.session_id for each in store.sessions.list(agent_id="y")} == {"s1"}
    assert len(store.sessions.list(limit=2)) == 2
    assert len(store.sessions.list(limit=2, offset=2)) == 1


def test_everything_answered_can_be_written_as_json(store: MemoryStore) -> None:
    saved = store.save(
        REPORT, tags=["t"], metadata={"a": [1]}, session_id="s", expires_at="2099-01-01"
    )
    answers = [
        saved,
        store.get(saved.memory_id),
        store.list(),
        store.sessions.list(),
        store.status(),
    ]
    answers += [store.expand(f"{saved.memory_id}#0"), store.admin.doctor()]
    for granularity in ("fine", "medium", "coarse"):
        answers.append(store.search("query", granularity=granularity, explain=True))
    assert json.loads(json.dumps(to_wire(answers)))[0]["created_at"].endswith("Z")


@sqlite_only
def test_status_counts_what_is_there(store: MemoryStore, path: Path) -> None:
    store.save(REPORT, session_id="s")
    store.save("other", space="elsewhere")
    status = store.status()
    assert (status.index.memories, status.spaces, status.sessions) == (1, 2, 1)
    assert status.index.chunks == store.get(store.list().memories[0].memory_id).chunks
    assert status.vectors == status.index.chunks
    assert status.store == str(path)
    assert status.size_bytes > 0
    assert status.writable
    assert status.degraded is None


_NOTHING = ("title", "summary", "session_id", "agent_id", "session_iter", "task_code")
_DEFAULTS: dict[str, dict[str, Any]] = {
    "save": {
        **dict.fromkeys((*_NOTHING, "tags", "entities", "importance", "ttl_days", "expires_at")),
        **dict.fromkeys(("metadata", "space")),
        "kind": "note",
        "source": "manual",
    },
    "search": {
        **dict.fromkeys(("kind", "session_id", "agent_id", "session_iter", "task_code", "tags")),
        **dict.fromkeys(("entities", "path", "min_importance", "created_after", "created_before")),
        **dict.fromkeys(("as_of", "similarity_threshold", "source", "topK")),
        "limit": 10,
        "mode": "hybrid",
        "granularity": "fine",
        "include_global": True,
        "match": "any",
        "include_expired": False,
        "offset": 0,
        "raw": False,
        "explain": False,
    },
    "cleanup": {"days_old": 90, "dry_run": True},
    "expand": {"around": 2},
    "recall": {"max_tokens": None, "limit": 20},  # settings say how many tokens
    "context": {"include_global": True},
}


@pytest.mark.parametrize("verb", _DEFAULTS)
def test_what_is_not_given_is_as_promised(verb: str) -> None:
    parameters = OPERATIONS[verb].parameters
    assert {name: parameters[name].default for name in _DEFAULTS[verb]} == _DEFAULTS[verb]


# --- Degraded ---------------------------------------------------------------------------------


def test_with_the_provider_down_a_text_is_saved_and_found_by_its_words(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    saved = store.save("the quick brown fox")
    assert (saved.status, saved.pending_vectors) == ("created", 1)
    for mode in ("hybrid", "vector"):
        answer = store.search("fox", mode=mode)
        assert [hit.memory_id for hit in answer.results] == [saved.memory_id]
        assert "on holiday" in str(answer.degraded)
        assert answer.mode == "fts"
        assert answer.index.pending_vectors == 1
        assert answer.results[0].similarity is None
    assert store.status().degraded is not None


def test_a_keyword_search_and_a_listing_are_complete_without_vectors(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    watched.down = True
    store = open_store(embedder=watched)
    store.save("the quick brown fox")
    assert store.search("fox", mode="fts").degraded is None
    assert store.search(granularity="coarse").degraded is None


def test_what_lacks_vectors_says_why(open_store: Callable[..., MemoryStore], watched: Any) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save("the quick brown fox").memory_id
    assert store.save("the quick brown fox").degraded is None
    watched.down = True
    for saved in (
        store.save("a lazy dog"),
        store.save("a lazy dog"),
        store.save(LONG),
        store.update(memory_id, content="the slow red fox"),
        store.log("s1", "user", "where is the lazy dog?"),
        *store.save_many([{"content": "one more dog"}]),
    ):
        assert saved.pending_vectors > 0
        assert "on holiday" in str(saved.degraded)
    watched.down = False
    saved = store.save("a lazy dog")
    assert (saved.status, saved.pending_vectors, saved.degraded) == ("unchanged", 0, None)


def test_an_answer_is_not_called_complete_while_vectors_are_missing(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save("the quick brown fox")
    watched.down = False
    answer = store.search("fox")
    assert answer.mode == "hybrid"
    assert "1 of 1 chunks have no vectors yet" in str(answer.degraded)


def test_missing_vectors_are_made_up_for_by_later_saves(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    for number in range(20):
        store.save(f"written while the provider was away {number}")
    watched.down = False
    for number in range(3):  # each brings along eight that wait
        store.save(f"written when it was back {number}")
    answer = store.search("provider", mode="vector", limit=50)
    assert answer.index.pending_vectors == 0
    assert answer.degraded is None
    assert len(answer.results) == 23


@pytest.mark.parametrize("verb", ["save_many", "log", "log_many", "update"])
def test_every_verb_that_embeds_makes_up_for_missing_vectors(
    open_store: Callable[..., MemoryStore], watched: Any, verb: str
) -> None:
    store = open_store(embedder=watched)
    memory_id = store.save("written before").memory_id
    watched.down = True
    store.save_many({"content": f"written while the provider was away {n}"} for n in range(20))
    watched.down = False
    for number in range(3):  # each brings along eight that wait
        text = f"this was written when it was back again {number}"
        if verb == "save_many":
            store.save_many([{"content": text}])
        elif verb == "log":
            store.log("s1", "user", text)
        elif verb == "log_many":
            store.log_many([{"session_id": "s1", "role": "user", "content": text}])
        else:
            store.update(memory_id, content=text)
    assert store.admin.count_pending() == 0


def test_a_turn_that_needs_no_vectors_does_not_wait_for_those_of_others(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save("written while the provider was away")
    watched.down = False
    store.log("s1", "user", "ok")
    assert (store.admin.count_pending(), watched.embedded) == (1, [])


def test_missing_vectors_are_made_by_embed_pending(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save_many({"content": f"text {n}"} for n in range(600))
    assert store.search("text").index.pending_vectors == 600
    with pytest.raises(EmbedderUnavailable, match="on holiday"):
        store.admin.embed_pending()
    watched.down = False
    progress: list[int] = []
    assert store.admin.embed_pending(on_progress=progress.append) == 600
    assert progress[-1] == 600
    assert store.admin.embed_pending() == 0
    assert store.search("text", mode="vector", limit=600).total_results == 600
    assert all(finding.ok for finding in store.admin.doctor())


def test_vectors_made_later_are_those_that_would_have_been_made_at_once(
    open_store: Callable[..., MemoryStore], watched: Any, tmp_path: Path
) -> None:
    at_once = open_store(tmp_path / "at-once.db", embedder=watched)
    at_once.save(REPORT * 20, title="A report")
    shown = sorted(watched.embedded)
    watched.embedded.clear()
    later = open_store(tmp_path / "later.db", embedder=watched)
    watched.down = True
    later.save(REPORT * 20, title="A report")
    watched.down = False
    later.admin.embed_pending()
    assert sorted(watched.embedded) == shown


def test_doctor_names_missing_vectors_and_makes_them_when_told_to_fix(
    open_store: Callable[..., MemoryStore], watched: Any
) -> None:
    store = open_store(embedder=watched)
    watched.down = True
    store.save("text")
    watched.down = False
    [finding] = [each for each in store.admin.doctor() if not each.ok]
    assert (finding.check, finding.hint) == (
        "vectors complete",
        "run: store.admin.doctor(fix=True)",
    )
    assert all(finding.ok for finding in store.admin.doctor(fix=True))
    assert store.search("text").degraded is None


class ChoosyEmbedder(WatchedEmbedder):
    """Refuse every batch with a text that says POISON, and count what was asked."""

    requests = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.requests += 1
        if any("POISON" in text for text in texts):
            raise EmbeddingError("400: this input is refused")
        return super().embed(texts)


def test_a_text_that_is_refused_holds_up_no_other(open_store: Callable[..., MemoryStore]) -> None:
    choosy = ChoosyEmbedder()
    store = open_store(embedder=choosy)
    items = [{"content": f"text {n}{' POISON' if n in (0, 7) else ''}"} for n in range(64)]
    saved = store.save_many(items)
    assert [n for n, each in enumerate(saved) if each.pending_vectors] == [0, 7]
    assert [n for n, each in enumerate(saved) if each.degraded] == [0, 7]
    assert store.save(items[7]["content"]).degraded == "400: this input is refused"
    assert store.search("text", mode="vector", limit=100).total_results == 62
    assert store.search("POISON", mode="fts").total_results == 2


def test_what_waits_behind_a_text_that_is_refused_is_embedded(
    open_store: Callable[..., MemoryStore],
) -> None:
    choosy = ChoosyEmbedder()
    store = open_store(embedder=choosy)
    choosy.down = True
    store.save_many({"content": f"text {n}{' POISON' if n < 3 else ''}"} for n in range(40))
    choosy.down = False
    for number in range(5):  # each brings along eight that wait
        store.save(f"written when it was back {number}")
    assert store.status().index.pending_vectors == 3
    choosy.requests = 0
    store.save("one more")
    assert choosy.requests == 1  # what was refused is not asked for with every save
    assert store.admin.embed_pending() == 0


def test_what_was_refused_is_asked_for_again_only_by_the_doctor(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    choosy = ChoosyEmbedder()
    store = open_store(embedder=choosy)
    store.save("".join(f"## POISON {n}\n\nWords {n}.\n\n" for n in range(12)), title="A title")
    choosy.requests = 0
    store.save("a text")
    assert choosy.requests == 1
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# Hello\n\nworld")
    store.index(tmp_path / "notes")
    assert choosy.requests == 2
    assert store.admin.embed_pending() == 0
    assert choosy.requests == 2
    store.admin.doctor(fix=True)
    assert choosy.requests > 12


def test_the_doctor_names_what_the_embedder_refuses(
    open_store: Callable[..., MemoryStore],
) -> None:
    store = open_store(embedder=ChoosyEmbedder())
    memory_id = store.save("some POISON").memory_id
    [finding] = [each for each in store.admin.doctor(fix=True) if not each.ok]
    assert finding.check == "vectors complete"
    assert finding.message == f"the embedder refuses {memory_id}#0: 400: this input is refused"
    store.forget(memory_id, hard=True)
    assert all(finding.ok for finding in store.admin.doctor(fix=True))


def test_an_embedder_that_refuses_everything_is_not_asked_text_by_text(
    open_store: Callable[..., MemoryStore],
) -> None:
    class Refusing(ChoosyEmbedder):
        def embed(self, texts: Sequence[str]) -> Vectors:
            return super().embed([f"{text} POISON" for text in texts])

    refusing = Refusing()
    store = open_store(embedder=refusing)
    saved = store.save_many({"content": f"text {n}"} for n in range(64))
    assert all(each.pending_vectors for each in saved)
    assert refusing.requests == 2
    assert store.status().index.model is None
    with pytest.raises(EmbedderUnavailable, match="this input is refused"):
        store.admin.embed_pending()


@sqlite_only
def test_vectors_of_another_model_are_never_compared(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any], path: Path
) -> None:
    open_store(embedder=make_watched(64, "first")).save("the quick brown fox")
    other = make_watched(64, "second")  # of the same dimensions, so nothing but the name tells
    store = open_store(embedder=other)
    answer = store.search("fox", mode="vector")
    assert answer.mode == "fts"
    assert "first" in str(answer.degraded)
    assert "second" in str(answer.degraded)
    saved = store.save("a lazy dog")
    assert saved.pending_vectors == 1
    assert other.embedded == []
    assert [hit.chunk_content for hit in store.search("dog").results] == ["a lazy dog"]
    with pytest.raises(EmbedderUnavailable, match="first"):
        store.admin.embed_pending()
    models = apsw.Connection(str(path)).execute(
        "SELECT DISTINCT name FROM vectors JOIN models USING (model_no)"
    )
    assert models.fetchall() == [("first",)]


def test_the_same_text_is_embedded_once_per_model(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any]
) -> None:
    watched = make_watched()
    store = open_store(embedder=watched)
    for session in ("a", "b", "c"):
        assert store.save("the same text", session_id=session).pending_vectors == 0
    store.save_many({"content": "the same text", "space": space} for space in "xyz")
    assert watched.embedded == ["the same text"]
    assert store.search("same text", mode="vector").total_results == 3


def test_an_embedder_that_lies_about_its_dimensions_does_not_break_the_search(
    open_store: Callable[..., MemoryStore], make_watched: Callable[..., Any]
) -> None:
    liar = make_watched(64)
    store = open_store(embedder=liar)
    store.save("an honest text")
    honest = liar.dimensions
    liar.embed = lambda texts: make_watched(32).embed(texts)
    try:
        store.save("a lying text")
    except Exception:  # noqa: BLE001 - refusing is one right answer, keeping it without vectors another
        assert store.list().total == 1
    del liar.embed
    assert liar.dimensions == honest
    assert store.search("honest text", mode="vector").results[0].chunk_content == "an honest text"
    assert all(finding.ok for finding in store.admin.doctor(fix=True))


class BentArrows(ArrowEmbedder):
    """Give vectors that are as long as `length` says, or fail in a way of its own."""

    def __init__(self, length: float = 1.0, error: Exception | None = None) -> None:
        self.length = length
        self.error = error

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.error is not None:
            raise self.error
        return super().embed(texts) * np.float32(self.length)


@pytest.mark.parametrize("length", [3.0, 0.2])
def test_vectors_of_any_length_rank_by_their_direction(
    open_store: Callable[..., MemoryStore], length: float
) -> None:
    store = open_store(embedder=BentArrows(length))
    for degrees in (0, 30, 60, 90, 180):
        store.save(f"at {degrees}")
    answer = store.search("at 10", mode="vector")
    found = [hit.chunk_content for hit in answer.results]
    assert found == ["at 0", "at 30", "at 60", "at 90", "at 180"]
    assert answer.results[0].similarity == pytest.approx(math.cos(math.radians(10)), abs=1e-3)


@pytest.mark.parametrize("length", [0.0, math.nan])
def test_vectors_without_a_direction_are_not_stored(
    open_store: Callable[..., MemoryStore], length: float
) -> None:
    embedder = BentArrows(length)
    store = open_store(embedder=embedder)
    assert store.save("to the east").pending_vectors == 1
    answer = store.search("east")
    assert (answer.mode, answer.total_results) == ("fts", 1)
    assert "zero or not finite" in str(answer.degraded)
    embedder.length = 1.0
    assert store.admin.embed_pending() == 1
    assert store.search("east", mode="vector").degraded is None


def test_an_embedder_that_fails_in_its_own_way_fails_no_save(
    open_store: Callable[..., MemoryStore],
) -> None:
    store = open_store(embedder=BentArrows(error=ValueError("no JSON")))
    assert store.save("to the east").pending_vectors == 1
    answer = store.search("east")
    assert (answer.total_results, answer.degraded) == (1, "the embedder failed: no JSON")


# --- Threads ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_16_threads_save_and_search_on_one_store(store: MemoryStore) -> None:
    def work(thread: int) -> list[str]:
        made = []
        for number in range(12):
            word = f"zq{chr(97 + thread)}q{chr(97 + number)}qz"
            saved = store.save(f"Thread {thread} wrote {word} and more", session_id=f"s{thread}")
            # What was saved is found by the very next search, while others go on writing.
            [hit] = store.search(word, mode="fts").results
            assert hit.memory_id == saved.memory_id
            assert store.search(f"thread {thread}", session_id=f"s{thread}", limit=50).total_results
            made.append(saved.memory_id)
        return made

    with ThreadPoolExecutor(16) as threads:
        made = [memory_id for ids in threads.map(work, range(16)) for memory_id in ids]
    assert len(set(made)) == 16 * 12 == store.list().total
    assert all(finding.ok for finding in store.admin.doctor())
    assert store.search("thread", mode="fts", limit=500).total_results == 16 * 12


def test_a_closed_store_says_so(open_store: Callable[..., MemoryStore]) -> None:
    with open_store() as store:
        store.save("text")
    with pytest.raises(StoreError, match="closed"):
        store.search("text")


def test_a_text_that_expired_can_be_saved_again(store: MemoryStore) -> None:
    store.save("Zebra note about Paris", expires_at="2020-01-01")
    again = store.save("Zebra note about Paris")
    assert again.status == "created"
    assert [hit.memory_id for hit in store.search("zebra").results] == [again.memory_id]
    assert store.list(include_expired=True).total == 1
    assert all(finding.ok for finding in store.admin.doctor())


def test_what_expired_keeps_its_history_when_it_is_saved_again(store: MemoryStore) -> None:
    first = store.save("Door code is 4711.", title="Door", expires_at="2020-01-01").memory_id
    again = store.save("Door code is 4711.")
    assert [each.operation for each in store.history(first)] == ["create", "forget"]
    assert [each.title for each in store.list(forgotten=True, include_expired=True).memories] == [
        "Door"
    ]
    store.forget(again.memory_id)
    assert store.restore(first).title == "Door"


def test_the_figures_of_a_status_are_of_one_moment_also_beside_a_writer(
    store: MemoryStore,
) -> None:
    store.save("text 0")
    done = threading.Event()

    def write() -> None:
        for number in itertools.count(1):
            if done.is_set():
                return
            store.save(f"text {number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [store.status() for _ in range(100)]
    finally:
        done.set()
        writer.join()
    assert [each.vectors for each in found] == [each.index.chunks for each in found]


@pytest.mark.parametrize("name", ["include_global", "include_expired", "raw", "explain"])
def test_a_switch_that_is_not_true_or_false_is_refused(store: MemoryStore, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        store.search("text", **{name: "false"})


def test_a_closed_store_says_so_at_every_verb(open_store: Callable[..., MemoryStore]) -> None:
    closed = open_store()
    closed.save("text")
    closed.search("text")
    closed.close()
    for verb in (lambda: closed.search("text"), lambda: closed.save("more"), closed.list):
        with pytest.raises(StoreError, match="closed"):
            verb()


def test_a_switched_off_memory_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="switched off"):
        byheart.open(tmp_path / "memory.db", enabled=False)


@sqlite_only
def test_the_doctor_sees_a_text_that_was_changed_or_cut(
    open_store: Callable[..., MemoryStore], path: Path
) -> None:
    open_store().save("one text that matters")
    apsw.Connection(str(path)).execute("UPDATE chunks SET content = 'another'")
    found = {finding.check: finding.ok for finding in open_store().admin.doctor()}
    assert not found["texts as saved"]


def test_matches_are_counted_among_the_first_20_chunks_for_each_memory_asked_for(
    store: MemoryStore,
) -> None:
    store.save("\n\n".join(f"## Part {n}\n\n{'apple pear ' * 20}" for n in range(40)))
    for limit, expected in ((1, 20), (2, 40), (10, 40)):
        [hit] = store.search("apple", granularity="coarse", limit=limit).results
        assert (hit.matching_chunks, hit.total_chunks) == (expected, 40)


def test_a_list_begins_with_the_latest_and_that_of_a_session_with_its_latest_iteration(
    store: MemoryStore,
) -> None:
    old = store.save("second", session_id="run", session_iter=2).memory_id
    late = store.save("first, said later", session_id="run", session_iter=1).memory_id
    latest = store.save("the very latest").memory_id
    assert [each.memory_id for each in store.list().memories] == [latest, late, old]
    of_run = store.list(session_id="run", include_global=False).memories
    assert [each.memory_id for each in of_run] == [old, late]


@pytest.mark.parametrize("wrong", [5, b"memory.db", 1.5])
def test_what_is_no_path_is_not_opened(
    wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="path_or_url must be a path"):
        byheart.open(wrong)
    assert not list(tmp_path.iterdir())
