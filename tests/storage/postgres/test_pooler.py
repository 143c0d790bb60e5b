"""A store behind a pooler that gives every transaction to another server process."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresBackend, PostgresStorage
from byheart.store import MemoryStore
from tests.postgres_server import as_server_user, shared_server
from tests.postgres_stores import postgres_store
from tests.storage.postgres.proxies import PoolingProxy
from tests.storage.postgres.verb_cases import READS, WRITES, describe
from tests.storage.postgres.wholeness import check_whole

Pooler = Callable[[], contextlib.AbstractContextManager[dict[str, str]]]
_PGBOUNCER = """
[databases]
* = host={server} port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
"""


@contextmanager
def pgbouncer() -> Iterator[dict[str, str]]:
    """Run PgBouncer before the server of the tests; give the parameters that lead through it."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    server = shared_server()
    with tempfile.TemporaryDirectory(prefix="byheart-pgb-") as name:
        folder = Path(name)
        (folder / "users").write_text('"postgres" ""\n', encoding="utf-8")
        config = folder / "pgbouncer.ini"
        config.write_text(_PGBOUNCER.format(server=server.folder, folder=folder), encoding="utf-8")
        running = subprocess.Popen((program, "-q", config), **as_server_user(folder))
        try:
            deadline = time.monotonic() + 30
            while not (folder / ".s.PGSQL.6432").exists():
                assert running.poll() is None, (folder / "log").read_text(encoding="utf-8")
                assert time.monotonic() < deadline, "PgBouncer did not start"
                time.sleep(0.02)
            yield {"host": str(folder), "port": "6432"}
        finally:
            running.kill()
            running.wait()


@contextmanager
def strict_proxy() -> Iterator[dict[str, str]]:
    """Run our own pooler; transactions must not be sent before the answer to the one before."""
    proxy = PoolingProxy(f"{shared_server().folder}/.s.PGSQL.5432")
    with contextlib.closing(proxy):
        yield proxy.parameters
    assert proxy.processes > 1
    assert not proxy.sent_early


def lead_through(address: Address, parameters: dict[str, str]) -> Address:
    """Give the address of the same store behind a pooler."""
    database = address.location.partition("@/")[2].partition("?")[0]
    return parse_address(shared_server().url(database, **parameters) + "&parts=2")


@pytest.mark.slow
@pytest.mark.parametrize("pooler", [strict_proxy, pgbouncer])
def test_every_verb_works_if_each_transaction_has_another_server_process(
    tmp_path: Path, pooler: Pooler
) -> None:
    settings = load_settings({"embedding_provider": "hash"})
    with pooler() as parameters, postgres_store() as address:
        pooled, direct = (
            MemoryStore(
                PostgresStorage(each, tmp_path / name, busy_timeout_seconds=5),
                HashEmbedder(32),
                settings,
            )
            for name, each in (("pooled", lead_through(address, parameters)), ("direct", address))
        )
        with pooled, direct:
            pooled.save("The first text chooses the model.")
            for number, case in enumerate([*WRITES, *READS]):
                space, same = f"pooled{number:03}", f"direct{number:03}"
                # Twice and more: statements are prepared when they are repeated.
                case.call(pooled, space, case.prepare(pooled, space), tmp_path)
                case.call(direct, same, case.prepare(direct, same), tmp_path)
                assert describe(address, space) == describe(address, same), case.name
            check_whole(direct, address)


@pytest.mark.parametrize("pooler", [strict_proxy, pgbouncer])
def test_a_pooler_is_noticed(tmp_path: Path, pooler: Pooler) -> None:
    with pooler() as parameters, postgres_store() as address:
        for each, threshold in ((lead_through(address, parameters), None), (address, 2)):
            backend = PostgresBackend(each, tmp_path, 5)
            with backend.database.connected() as connection:
                assert connection.prepare_threshold == threshold
            backend.close()
