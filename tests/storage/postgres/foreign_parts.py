"""Make stores of which one part is located on a second PostgreSQL server, by postgres_fdw."""

from __future__ import annotations

import atexit
import functools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from byheart.storage.postgres.address import Address, parse_address
from byheart.storage.postgres.backend import PostgresBackend
from tests.postgres_server import (
    PostgresServer,
    database_url,
    make_template,
    private_server,
    shared_server,
)

_PARTS = 2
# The first space of a store has the number 1, and 1 % 2 is the part of the second server.
PART = "byheart_01"
_PART_TEMPLATE = "part_template"
_LEAVES = """
    SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'byheart_01'::regnamespace
        AND c.relispartition AND c.relkind = 'r' ORDER BY 1"""
_DEFAULTS = """
    SELECT a.attname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE d.adrelid = $1::regclass"""


@functools.cache
def second_server() -> PostgresServer:
    """Start the second server of this process, with an empty store to copy; it ends with us."""
    stack = ExitStack()
    server = stack.enter_context(private_server(fsync="off", max_connections="200"))
    atexit.register(stack.close)
    _execute(server.url(), f"CREATE DATABASE {_PART_TEMPLATE}")
    url = server.url(_PART_TEMPLATE)
    _make_store(url)
    # A part needs nothing of the rest of the store, except the number of a model.
    _execute(url, f"ALTER TABLE {PART}.vectors DROP CONSTRAINT vectors_model_no_fkey")
    return server


@contextmanager
def foreign_part_store() -> Iterator[tuple[Address, str]]:
    """Give the address of a new store, and of the database of its part on the second server."""
    with psycopg.connect(shared_server().url()) as connection:
        query = "SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw'"
        if connection.execute(query).rowcount == 0:
            pytest.skip("this PostgreSQL has no postgres_fdw")
    second = second_server()
    with database_url(make_template("byheart_foreign_part", _prepare)) as url:
        address = _address(url)
        name = f"{conninfo_to_dict(url)['dbname']}_part"
        _execute(second.url(), f"CREATE DATABASE {name} TEMPLATE {_PART_TEMPLATE}")
        # Each process of a run has a second server of its own.
        _execute(url, f"ALTER SERVER second OPTIONS (SET host '{second.folder}')")
        _execute(url, f"ALTER SERVER second OPTIONS (SET dbname '{name}')")
        yield address, second.url(name)
        _execute(second.url(), f"DROP DATABASE {name} WITH (FORCE)")


def _address(url: str) -> Address:
    return parse_address(f"{url}&parts={_PARTS}")


def _make_store(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        PostgresBackend(_address(url), Path(folder), 30).close()


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _prepare(url: str) -> None:
    """Make a store, and replace the tables of a part by foreign tables of the same names."""
    _make_store(url)
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute("CREATE EXTENSION postgres_fdw SCHEMA public")
        # The second server does not know the lock timeout of a transaction: one of its own is set.
        connection.execute(
            "CREATE SERVER second FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
            f"(host '{second_server().folder}', dbname '{_PART_TEMPLATE}', "
            "use_remote_estimate 'true', options '-c lock_timeout=2s')"
        )
        connection.execute(
            "CREATE USER MAPPING FOR postgres SERVER second OPTIONS (user 'postgres')"
        )
        leaves = [row[0] for row in connection.execute(_LEAVES).fetchall()]
        defaults = {each: _defaults(connection, each) for each in leaves}
        connection.execute(f"DROP SCHEMA {PART} CASCADE")
        connection.execute(f"CREATE SCHEMA {PART}")
        for each in leaves:
            # A foreign table can be a partition because the umbrella tables have no unique index.
            connection.execute(
                f"CREATE FOREIGN TABLE {PART}.{each} PARTITION OF byheart.{each} FOR VALUES IN (1) "
                f"SERVER second OPTIONS (schema_name '{PART}')"
            )
            for column, value in defaults[each]:
                connection.execute(
                    f"ALTER TABLE {PART}.{each} ALTER COLUMN {column} SET DEFAULT {value}"
                )
        connection.execute(
            f"IMPORT FOREIGN SCHEMA {PART} LIMIT TO (vocabulary) FROM SERVER second INTO {PART}"
        )


def _defaults(connection: psycopg.Connection[Any], table: str) -> list[tuple[str, str]]:
    return connection.execute(_DEFAULTS, (f"{PART}.{table}",)).fetchall()
