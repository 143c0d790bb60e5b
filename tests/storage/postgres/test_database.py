"""Commits that fail, and connections that are given up."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest

from byheart.errors import StoreBusy, StoreError, StoreUnreachable
from byheart.storage.postgres.address import parse_address
from byheart.storage.postgres.backend import PostgresBackend
from tests.postgres_server import shared_server


def test_a_commit_that_the_server_answers_with_a_rollback_is_an_error(
    backend: PostgresBackend,
) -> None:
    with (
        pytest.raises(StoreError, match="the server rolled the change back"),
        backend.writing("space") as connection,
        contextlib.suppress(psycopg.errors.DivisionByZero),
    ):
        connection.count("SELECT 1 / 0")


def test_a_statement_that_is_unknown_at_the_commit_ends_preparing(backend: PostgresBackend) -> None:
    database = backend.database
    with database.connected() as first, database.connected() as second:
        assert first.prepare_threshold == second.prepare_threshold == 2
    with (
        pytest.raises(StoreBusy, match="pooler"),
        backend.writing("space") as connection,
    ):
        connection.run("EXECUTE prepared_elsewhere")
    with database.connected() as idle, database.connected() as new:
        assert idle in (first, second)
        assert idle.prepare_threshold is new.prepare_threshold is None
    with backend.writing("space") as connection:
        assert connection.get("SELECT 1") == 1


def test_a_server_that_is_refused_keeps_no_connection(tmp_path: Path) -> None:
    server, name = shared_server(), "with_another_encoding"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'".encode()
        )
        with pytest.raises(StoreUnreachable, match="SQL_ASCII"):
            PostgresBackend(parse_address(server.url(name)), tmp_path, 5)
        # The server waits some seconds for connections that end, then it refuses.
        connection.execute(f"DROP DATABASE {name}".encode())
