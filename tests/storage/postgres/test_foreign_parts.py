"""A part may be located on another server, as foreign tables: its spaces are read from there.

Writing to such a part does not work; docs/decisions/0016-parts-on-other-servers.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreError, StoreUnreachable
from byheart.model import SearchAnswer
from byheart.settings import load_settings
from byheart.storage.postgres import repairs
from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from byheart.store import MemoryStore
from tests.storage.postgres.foreign_parts import PART, foreign_part_store, second_server

_TEXTS = (
    "The harbour of Lisbon was rebuilt after the earthquake",
    "Lisbon has seven hills and yellow trams",
    "A tram driver needs a licence of its own",
)
_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"query": "Lisbon trams", "mode": "hybrid"},
    {"query": "harbour", "mode": "fts"},
    {"query": "a licence to drive", "mode": "vector"},
    {"query": "tram*", "raw": True},
    {"query": "Lisbon", "tags": ["city"]},
)


class Sharded(NamedTuple):
    """A store with a part on another server, and the database of that part as a store."""

    whole: MemoryStore
    backend: PostgresBackend
    part: MemoryStore
    part_url: str


@pytest.fixture
def sharded(tmp_path: Path) -> Iterator[Sharded]:
    with foreign_part_store() as (address, part_url):
        part, _ = _open(parse_address(part_url), tmp_path / "part")
        # The first space has the number 1, and belongs to the part on the second server.
        part.save_many({"content": text, "tags": ["city"], "space": "far"} for text in _TEXTS)
        with psycopg.connect(part_url) as source, psycopg.connect(address.conninfo) as target:
            for table in ("spaces", "models", "store"):
                for row in source.execute(f"SELECT * FROM byheart.{table}".encode()).fetchall():
                    marks = ", ".join(["%s"] * len(row))
                    added = f"INSERT INTO byheart.{table} VALUES ({marks}) ON CONFLICT DO NOTHING"
                    target.execute(added.encode(), row)
            for name in ("numbers", "space_numbers"):
                [(last,)] = source.execute(f"SELECT last_value FROM byheart.{name}".encode())
                target.execute(f"SELECT setval('byheart.{name}', {last})".encode())
        whole, backend = _open(address, tmp_path / "whole")
        yield Sharded(whole, backend, part, part_url)
        whole.close()
        part.close()


def _open(address: Address, cache: Path) -> tuple[MemoryStore, PostgresBackend]:
    backend = PostgresBackend(address, cache, busy_timeout_seconds=30)
    settings = load_settings({"embedding_provider": "hash"})
    return MemoryStore(SqlStorage(backend), HashEmbedder(), settings), backend


def _found(store: MemoryStore, space: str, question: dict[str, Any]) -> SearchAnswer:
    return replace(store.search(space=space, **question), elapsed_ms=0)


@pytest.mark.parametrize("question", _QUESTIONS, ids=lambda question: question["query"])
def test_a_space_on_another_server_is_searched_from_there(
    sharded: Sharded, question: dict[str, Any]
) -> None:
    answer = _found(sharded.whole, "far", question)
    assert answer.results
    assert answer == _found(sharded.part, "far", question)


def test_memories_on_another_server_are_read_from_there(sharded: Sharded) -> None:
    here, there = (each.list(space="far") for each in (sharded.whole, sharded.part))
    assert here == there
    assert {each.summary for each in here.memories} == set(_TEXTS)
    for each in here.memories:
        read = [
            (store.get(each.memory_id, "far"), store.history(each.memory_id, "far"))
            for store in (sharded.whole, sharded.part)
        ]
        assert read[0] == read[1]


def test_joined_tables_of_one_space_are_one_foreign_scan(sharded: Sharded) -> None:
    with sharded.backend.reading("far") as connection:
        plan = connection.all(
            "EXPLAIN (VERBOSE) SELECT m.memory_id, c.content, v.embedding FROM memories m "
            "JOIN chunks c USING (memory_no) JOIN vectors v USING (chunk_no) WHERE m.space = ?",
            ("far",),
        )
    first, *rest = [line for (line,) in plan]
    assert first.startswith("Foreign Scan")
    assert not [line for line in rest if "->" in line]
    [remote] = [line for line in rest if "Remote SQL" in line]
    assert all(f"{PART}.{table} " in remote for table in ("memories", "chunks", "vectors"))


def test_the_whole_store_is_read_from_both_servers(sharded: Sharded) -> None:
    sharded.whole.save("Porto lies at the Douro", space="near")
    with sharded.backend.reading(None) as connection:
        counted = connection.all("SELECT space, count(*) FROM memories GROUP BY 1 ORDER BY 1")
    assert counted == [("far", len(_TEXTS)), ("near", 1)]


def test_a_space_of_this_server_needs_no_other_server(sharded: Sharded) -> None:
    # Only the first save of a space reads all parts.
    saved = [sharded.whole.save("Porto lies at the Douro", space="near").memory_id]
    name = conninfo_to_dict(sharded.part_url)["dbname"]
    _run(second_server().url(), f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    _run(
        second_server().url(),
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    )
    saved.append(sharded.whole.save("The Douro ends in Porto", space="near").memory_id)
    found = sharded.whole.search("Douro", space="near").results
    assert sorted(hit.memory_id for hit in found) == sorted(saved)
    with pytest.raises(StoreUnreachable):
        sharded.whole.search("Lisbon", space="far")


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_memories_on_another_server_are_pinned_hidden_and_restored_from_here(
    sharded: Sharded,
) -> None:
    first, second, _ = sharded.whole.list(space="far").memories
    sharded.whole.pin(first.memory_id, space="far")
    sharded.whole.forget(second.memory_id, space="far")
    listed = {each.memory_id: each.pinned_at for each in sharded.part.list(space="far").memories}
    assert second.memory_id not in listed
    assert listed[first.memory_id] is not None
    for question in _QUESTIONS:
        answers = [_found(each, "far", question) for each in (sharded.whole, sharded.part)]
        assert second.memory_id not in {hit.memory_id for hit in answers[0].results}
        assert answers[0].results == answers[1].results
    sharded.whole.restore(second.memory_id, space="far")
    assert sharded.part.get(second.memory_id, "far") == sharded.whole.get(second.memory_id, "far")


def test_a_save_to_another_server_is_refused_as_a_whole(sharded: Sharded) -> None:
    # The second server has given out numbers of its own.
    repairs.advance_sequences(sharded.backend.database)
    with pytest.raises(StoreError, match="ON CONFLICT"):
        sharded.whole.save("Coimbra has a library", space="far")
    assert len(sharded.part.list(space="far").memories) == len(_TEXTS)
    assert not [each for each in sharded.part.admin.doctor() if not each.ok]
