"""A store behind a pooler that gives every transaction to another server process."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresBackend, PostgresStorage
from byheart.store import MemoryStore
from tests.postgres_server import shared_server
from tests.postgres_stores import postgres_store
from tests.storage.postgres.proxies import PoolingProxy
from tests.storage.postgres.verb_cases import READS, WRITES, describe
from tests.storage.postgres.wholeness import check_whole


@pytest.mark.slow
def test_every_verb_works_if_each_transaction_has_another_server_process(tmp_path: Path) -> None:
    server = shared_server()
    proxy = PoolingProxy(f"{server.folder}/.s.PGSQL.5432")
    settings = load_settings({"embedding_provider": "hash"})
    try:
        with postgres_store() as address:
            database = address.location.partition("@/")[2].partition("?")[0]
            through = parse_address(server.url(database, **proxy.parameters) + "&parts=2")
            pooled, direct = (
                MemoryStore(
                    PostgresStorage(each, tmp_path / name, busy_timeout_seconds=5),
                    HashEmbedder(32),
                    settings,
                )
                for name, each in (("pooled", through), ("direct", address))
            )
            with pooled, direct:
                pooled.save("The first text chooses the model.")
                for number, case in enumerate([*WRITES, *READS]):
                    space, same = f"pooled{number:03}", f"direct{number:03}"
                    before = proxy.processes
                    # Twice and more: statements are prepared when they are repeated.
                    case.call(pooled, space, case.prepare(pooled, space), tmp_path)
                    assert proxy.processes > before
                    case.call(direct, same, case.prepare(direct, same), tmp_path)
                    assert describe(address, space) == describe(address, same), case.name
                check_whole(direct, address)
    finally:
        proxy.close()


def test_a_pooler_is_noticed(tmp_path: Path) -> None:
    server = shared_server()
    proxy = PoolingProxy(f"{server.folder}/.s.PGSQL.5432")
    try:
        with postgres_store() as address:
            database = address.location.partition("@/")[2].partition("?")[0]
            through = parse_address(server.url(database, **proxy.parameters) + "&parts=2")
            for each, threshold in ((through, None), (address, 2)):
                backend = PostgresBackend(each, tmp_path, 5)
                with backend.database.connected() as connection:
                    assert connection.prepare_threshold == threshold
                backend.close()
    finally:
        proxy.close()
