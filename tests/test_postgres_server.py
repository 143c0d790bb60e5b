"""The PostgreSQL servers of the tests are isolated, survive a kill, and end with their users."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest

pytest.importorskip("fcntl", reason="the PostgreSQL server of the tests needs Unix sockets")

from tests.postgres_server import (
    database_url,
    has_ended,
    make_template,
    private_server,
    shared_server,
)

ROOT = Path(__file__).parents[1]


def count_tables(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_each_database_is_empty_and_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE here (n integer)")
    with database_url() as other:
        assert (count_tables(postgres_url), count_tables(other)) == (1, 0)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(other)


def test_a_template_is_prepared_once_and_copied() -> None:
    prepared: list[str] = []

    def prepare(url: str) -> None:
        prepared.append(url)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE here (n integer)")

    name = f"template_of_{os.getpid()}"
    for _ in range(2):
        with database_url(make_template(name, prepare)) as url:
            assert count_tables(url) == 1
    assert len(prepared) == 1


def test_a_private_server_keeps_commits_when_it_is_killed_or_restarted() -> None:
    with private_server() as server:
        with psycopg.connect(server.url()) as connection:
            connection.execute("CREATE TABLE kept (n integer)")
        for n, interrupt in enumerate((server.kill, lambda: server.stop("immediate"))):
            with psycopg.connect(server.url()) as connection:
                connection.execute("INSERT INTO kept VALUES (%s)", (n,))
            interrupt()
            assert not server.running
            server.start()
        server.restart()
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SELECT n FROM kept ORDER BY n").fetchall() == [(0,), (1,)]
            assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_a_server_ends_when_the_process_that_uses_it_is_killed() -> None:
    shared_server()  # skip where no server can run
    script = (
        "import time\nfrom tests.postgres_server import private_server\n"
        "with private_server() as server:\n"
        "    print(server.folder, server._postmaster().pid, flush=True)\n    time.sleep(600)"
    )
    user = subprocess.Popen((sys.executable, "-c", script), cwd=ROOT, stdout=subprocess.PIPE)
    assert user.stdout is not None
    folder, pid = user.stdout.readline().decode().split()
    postmaster = psutil.Process(int(pid))
    user.send_signal(signal.SIGKILL)
    user.wait()
    deadline = time.monotonic() + 90
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert has_ended(postmaster)
