"""The command line on a PostgreSQL database: missing stores, passwords and the missing driver."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.interfaces.cli.conftest import Run
from tests.postgres_server import database_url


@pytest.fixture
def url(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the address of an empty database, with a password that the server does not need."""
    monkeypatch.setenv("BYHEART_CACHE_DIR", str(home / "cache"))
    with database_url() as address:
        yield f"{address}&password=s3cret&parts=1"


def schemas(url: str) -> set[str]:
    with psycopg.connect(url.replace("&parts=1", "")) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")
        return {row[0] for row in rows} - {"public", "information_schema"}


def test_a_command_that_only_reads_makes_no_store(run: Run, url: str) -> None:
    assert schemas(url) == set()
    for command in (["search", "tea"], ["list"], ["status"], ["import", "-", "--dry-run"]):
        ran = run(*command, "--db", url, stdin="")
        assert schemas(url) == set(), command
    ran = run("list", "--db", f"{url}&schema=mistyped")
    assert ran.code == 1
    assert "error: there is no store in the schema mistyped of postgresql://" in ran.err
    assert "hint: check the address, or make one with: byheart save TEXT" in ran.err


def test_a_dry_run_of_an_import_knows_the_memories_that_are_there(run: Run, url: str) -> None:
    run("save", "Ann likes tea.", "--db", url)
    exported = run("export", "-", "--db", url).out
    ran = run("import", "-", "--dry-run", "--json", "--db", url, stdin=exported)
    assert ran.json["imported"] == 0


def test_no_output_has_the_password(
    run: Run, url: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    outputs = [run("config", "set", "db_path", url)]
    saved = run("save", "Ann likes tea.", "--db", url)
    for command in (["status"], ["stats"], ["config", "list"], ["config", "get", "db_path"]):
        for flags in ([], ["--json"], ["--debug"]):
            outputs.append(run(*command, *flags, "--db", url))
    database = url.partition("@/")[2].partition("?")[0]
    absent = url.replace(f"@/{database}?", "@/nosuch?")
    for wrong in (absent, f"{url}&port=1", f"{url}&nosuch=1", f"{url}&password=s3@cret%zz"):
        outputs.append(run("list", "--debug", "--db", wrong))
        assert outputs[-1].code == 1
    for ran in (saved, *outputs):
        assert "s3cret" not in ran.out + ran.err
        assert "s3@cret" not in ran.out + ran.err
    assert saved.code == 0
    assert "s3cret" not in caplog.text
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600


def test_an_erasure_that_the_role_cannot_finish_fails_and_says_why(run: Run, url: str) -> None:
    memory_id = run("save", "Ann likes tea.", "--json", "--db", url).json["memory_id"]
    role = f"eraser_{os.getpid()}"
    weak = url.replace("//postgres@", f"//{role}@")
    with psycopg.connect(url.replace("&parts=1", ""), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            ran = run("list", "--db", weak)
            assert (ran.code, "hint: let postgres, who owns" in ran.err) == (1, True)
            for grant in re.findall(r"GRANT [^;]+ TO \w+", ran.err):
                connection.execute(grant.encode())
            ran = run("forget", memory_id, "--hard", "--yes", "--db", weak)
        finally:
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
    assert ran.code == 1
    assert "forgot 1 memory" in ran.out
    said = " ".join(ran.out.split())
    assert "✗ not finished: the rows are deleted" in said
    assert "byheart doctor --fix" in said


def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "byheart.storage.postgres.address", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = run("list", "--db", "postgresql://db.example/team")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error: the driver for PostgreSQL is not installed: psycopg",
        'hint: install it with: pip install "byheart[postgres]"',
    ]
