"""Make empty stores on the PostgreSQL server of the tests.

With `BYHEART_TEST_ROW_SECURITY=1` in the environment, the stores belong to a role that is no
superuser, and have row level security.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import psycopg

from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresBackend
from tests.postgres_server import database_url, make_template

# Few parts are made quickly, and show the same as many.
_PARTS = 2
_SECURED = os.environ.get("BYHEART_TEST_ROW_SECURITY") == "1"
OWNER = "byheart_owner"


def _prepare(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        PostgresBackend(_address(url), Path(folder), 30).close()


def _prepare_secured(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"CREATE ROLE {OWNER} LOGIN".encode())
        connection.execute(f'GRANT CREATE ON DATABASE "{name}" TO {OWNER}'.encode())
    _prepare(as_owner(url))
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        connection.execute("SELECT byheart.set_row_security(true)")


def schema_script(name: str, schema: str) -> bytes:
    """Give the statements of one file of the schema; the name of the schema is quoted."""
    script = files("byheart.storage.postgres.schema") / f"{name}.sql"
    return script.read_text(encoding="utf-8").format(schema=f'"{schema}"').encode()


def as_owner(url: str) -> str:
    """Give the address for the role that owns a secured store."""
    return url.replace("//postgres@", f"//{OWNER}@")


def _address(url: str) -> Address:
    return parse_address(f"{url}&parts={_PARTS}")


@contextmanager
def postgres_store() -> Iterator[Address]:
    """Give the address of a new, empty store."""
    with postgres_store_url() as url:
        yield _address(url)


@contextmanager
def postgres_store_url() -> Iterator[str]:
    """Give the address of a new, empty store as users write it."""
    with secured_store_url() if _SECURED else _plain_store_url() as url:
        yield url


@contextmanager
def _plain_store_url() -> Iterator[str]:
    with database_url(make_template("byheart_template", _prepare)) as url:
        yield url


@contextmanager
def secured_store_url() -> Iterator[str]:
    """Give the address of a new, empty store with row level security."""
    with database_url(make_template("byheart_secured", _prepare_secured)) as url:
        yield as_owner(url)
