"""How workers share the chunks that wait for vectors, on PostgreSQL."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byheart.memory import transactions
from byheart.storage.postgres.backend import PostgresBackend
from byheart.storage.sql.storage import SqlStorage
from tests.contracts.drafts import draft
from tests.postgres_stores import postgres_store


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[list[PostgresBackend]]:
    with postgres_store() as address:
        opened = [PostgresBackend(address, tmp_path, busy_timeout_seconds=30) for _ in range(2)]
        yield opened
        for each in opened:
            each.close()


def write(backend: PostgresBackend, *names: str, space: str = "space") -> None:
    drafts = [draft(f"{space} {name}", space=space) for name in names]
    transactions.write(SqlStorage(backend), drafts, None)


def test_two_workers_never_hold_the_same_chunk(backends: list[PostgresBackend]) -> None:
    for space in ("one", "two", "three"):
        write(backends[0], *map(str, range(40)), space=space)

    def take_all(backend: PostgresBackend) -> list[int]:
        taken: list[int] = []
        while share := backend.claim(7, 60, []):
            taken += share
        return taken

    with ThreadPoolExecutor(4) as threads:
        shares = list(threads.map(take_all, backends * 2))
    taken = [number for share in shares for number in share]
    assert len(taken) == len(set(taken)) == 120


def test_a_share_is_free_again_when_its_claim_ends_or_is_released(
    backends: list[PostgresBackend],
) -> None:
    first, second = backends
    write(first, "a", "b")
    [number] = first.claim(1, 0.3, [])
    [other] = second.claim(9, 60, [])
    assert second.claim(9, 60, []) == []
    first.hold([number], 0.6)
    time.sleep(0.35)
    assert second.claim(9, 60, []) == [], "the claim was renewed"
    time.sleep(0.4)
    assert second.claim(9, 60, []) == [number]
    second.hold([other], 0)
    assert first.claim(9, 60, []) == [other]


def test_a_worker_that_lost_its_claim_leaves_the_new_one_alone(
    backends: list[PostgresBackend],
) -> None:
    late, other = backends
    write(late, "a")
    [number] = late.claim(1, 0.2, [])
    time.sleep(0.25)
    assert other.claim(1, 60, []) == [number], "the claim ended, and was taken over"
    late.hold([number], 0)  # it failed, and gives back what it had
    assert late.claim(1, 60, []) == []
    late.hold([number], 0.1)  # or it renews the claim for a chunk that was refused
    time.sleep(0.15)
    assert late.claim(1, 60, []) == []
    other.hold([number], 0)
    assert late.claim(1, 60, []) == [number]


def test_a_claim_neither_waits_for_a_writer_nor_holds_one_up(
    backends: list[PostgresBackend],
) -> None:
    first, second = backends
    write(first, "a", "b")
    oldest = (
        "DELETE FROM pending_vectors WHERE chunk_no = (SELECT min(chunk_no) FROM pending_vectors)"
    )
    with first.writing("space") as connection:
        assert connection.count(oldest) == 1
        [claimed] = second.claim(9, 60, [])
        assert connection.count("DELETE FROM pending_vectors") == 1
    second.hold([claimed], 60)
    assert second.claim(9, 60, []) == []


def test_the_oldest_chunk_of_any_space_comes_first_after_ended_claims(
    backends: list[PostgresBackend],
) -> None:
    backend = backends[0]
    write(backend, "a", space="late")  # the space gets its number first
    write(backend, "b", space="early")
    write(backend, "c", space="late")
    order = [number for _ in range(3) for number in backend.claim(1, 60, [])]
    assert order == sorted(order, key=lambda number: number & ((1 << 36) - 1))
    assert order != sorted(order)
    backend.hold(order, 0)
    backend.hold(order[:2], 60)
    write(backend, "d", space="early")
    assert backend.claim(1, 60, []) == order[2:], "a dead worker's share does not wait for others"


def test_a_claim_reads_the_index_and_not_every_waiting_chunk(
    backends: list[PostgresBackend],
) -> None:
    from byheart.storage.postgres.claims import CLAIM

    backend = backends[0]
    write(backend, *map(str, range(300)))
    with backend.database.noting(None, 5000) as connection:
        connection.run("SET LOCAL enable_seqscan = off")
        plan = connection.all(f"EXPLAIN {CLAIM}", ([], 10, 60.0, "me"))
    assert any("pending_vectors_by_claim" in row[0] for row in plan), plan
    assert not any("Sort  (" in row[0] for row in plan), plan
