"""Roles with few rights: an error names what is missing, and the statements that help."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import StoreError, StoreReadOnly, StoreUnreachable
from byheart.settings import load_settings
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresStorage
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store_url

# All databases of a server share its roles, and tests run in several processes.
ROLE = f"daily_{os.getpid()}"


@pytest.fixture
def url() -> Iterator[str]:
    """Give the address of a store; another role than its owner may connect."""
    pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")
    with postgres_store_url() as url:
        admin(url, f"CREATE ROLE {ROLE} LOGIN")
        try:
            yield url
        finally:
            admin(url, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


def admin(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for each in statements:
            connection.execute(each.encode())


def open_store(url: str, folder: Path, user: str = ROLE) -> MemoryStore:
    address = parse_address(re.sub("//[^@]*@", f"//{user}@", url))
    settings = load_settings({"embedding_provider": "hash"})
    return MemoryStore(PostgresStorage(address, folder / user), HashEmbedder(), settings)


def grants_in(error: StoreError) -> list[str]:
    return re.findall(r"GRANT [^;]+ TO \w+", error.hint)


def test_the_statements_of_the_hints_let_a_role_work(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="permission denied for schema byheart") as caught:
        open_store(url, tmp_path)
    assert f"GRANT USAGE ON SCHEMA byheart, byheart_00, byheart_01 TO {ROLE}" in caught.value.hint
    assert "let postgres, who owns the store, run" in caught.value.hint
    admin(url, *grants_in(caught.value))
    with open_store(url, tmp_path) as store:
        saved = store.save("The ferry leaves at noon.")
        assert store.search("ferry").results[0].memory_id == saved.memory_id
        store.update(saved.memory_id, title="Ferry")
        store.forget(saved.memory_id)


def test_one_table_without_rights_is_named_with_its_schema(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable) as caught:
        open_store(url, tmp_path)
    admin(url, *grants_in(caught.value), f"REVOKE DELETE ON byheart_01.tombstones FROM {ROLE}")
    with (
        open_store(url, tmp_path) as store,
        pytest.raises(StoreUnreachable, match="permission denied for table tombstones") as caught,
    ):
        store.save("The ferry leaves at noon.")  # the first space is in the second part
    assert "ALL TABLES IN SCHEMA byheart_01 TO" in caught.value.hint
    assert grants_in(caught.value) != []


def test_a_role_that_may_only_read_searches_and_is_told_what_writing_needs(
    url: str, tmp_path: Path
) -> None:
    with open_store(url, tmp_path, "postgres") as store:
        store.save("The ferry leaves at noon.")
    for schema in ("byheart", "byheart_00", "byheart_01"):
        admin(
            url,
            f"GRANT USAGE ON SCHEMA {schema} TO {ROLE}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {ROLE}",
        )
    with open_store(url, tmp_path) as store:
        assert store.search("ferry").results
        status = store.status()
        assert not status.writable
        checked = {each.check: each for each in store.admin.doctor()}
        assert [name for name, each in checked.items() if not each.ok] == ["write access"]
        assert checked["sequences"].message == "not checked: the role may not read them"
        with pytest.raises(StoreReadOnly, match="may read it and not write to it") as caught:
            store.save("Another text.")
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA" in caught.value.hint
    admin(url, *grants_in(caught.value))
    with open_store(url, tmp_path) as store:
        assert store.save("Another text.").status == "created"


def test_a_role_that_may_not_create_the_store_is_told_so(postgres_url: str, tmp_path: Path) -> None:
    admin(postgres_url, f"CREATE ROLE {ROLE} LOGIN")
    try:
        with pytest.raises(StoreUnreachable) as caught:
            open_store(postgres_url, tmp_path)
        [grant] = grants_in(caught.value)
        assert grant.startswith("GRANT CREATE ON DATABASE")
        admin(postgres_url, grant)
        open_store(postgres_url, tmp_path).close()
    finally:
        admin(postgres_url, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


def test_an_erasure_by_a_role_that_owns_nothing_says_that_it_is_not_finished(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnreachable) as caught:
        open_store(url, tmp_path)
    admin(url, *grants_in(caught.value))
    with open_store(url, tmp_path) as store:
        saved = store.save("The vermilion zeppelin lands on Thursday behind Oakley.")
        removal = store.forget(saved.memory_id, hard=True).removal
    assert removal is not None
    assert (removal.memories, removal.traces) == (1, ())
    assert "only their owner may run VACUUM" in str(removal.unfinished)
    assert "doctor(fix=True)" in str(removal.unfinished)
    with open_store(url, tmp_path, "postgres") as store:
        assert [each.check for each in store.admin.doctor() if not each.ok] == ["forgetting"]
        assert all(each.ok for each in store.admin.doctor(fix=True))
        saved = store.save("The vermilion zeppelin lands on Thursday behind Oakley.")
        removal = store.forget(saved.memory_id, hard=True).removal
        assert removal is not None
        assert removal.unfinished is None
