"""`byheart serve` as a process: how it starts, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result

import byheart
from byheart.interfaces.cli.commands import byheart as program
from byheart.interfaces.rest import serving
from tests.forked_program import start_program
from tests.interfaces.rest.conftest import Process, Start


def test_it_says_where_it_listens_and_writes_a_line_for_each_request(start: Start) -> None:
    server = start()
    with server.client() as client:
        client.post("/memories", json={"content": "Anna likes tea."})
        client.get("/memories/a%0Ab?space=secret", headers={"X-Request-Id": "mine-1"})
    code, errors = server.stop()
    assert code == 0
    first, second = errors.splitlines()
    assert " 201 POST /memories " in first
    assert " 403 GET /memories/a%0Ab " in second
    assert second.endswith(" mine-1")
    assert "secret" not in errors


def test_ctrl_c_ends_it_with_0(start: Start) -> None:
    assert start("--quiet").stop(signal.SIGINT) == (0, "")


def wait_for_save(client: httpx2.Client) -> None:
    """Wait until a save is inside the server."""
    for _ in range(600):
        if 'byheart_requests_under_way{lane="write"} 1' in client.get("/metrics").text:
            return
        time.sleep(0.05)
    pytest.fail("the save did not arrive")


def knock_for_long(server: Process) -> None:
    """Ask again and again, each time on a new connection."""
    for _ in range(600):
        httpx2.get(f"{server.url}/health", trust_env=False, verify=False)
        time.sleep(0.05)


def test_what_is_under_way_ends_and_nothing_is_lost(start: Start, tmp_path: Path) -> None:
    import apsw

    server = start("--quiet", BYHEART_BUSY_TIMEOUT_SECONDS="60")
    client = server.client()
    other = apsw.Connection(server.store)
    other.execute("BEGIN IMMEDIATE")  # so that a save takes as long as we want
    answers: list[httpx2.Response] = []
    items = {"items": [{"content": f"Memory {each}"} for each in range(50)]}
    saving = threading.Thread(target=lambda: answers.append(client.post("/memories", json=items)))
    saving.start()
    wait_for_save(client)
    server.running.send_signal(signal.SIGTERM)
    with pytest.raises(httpx2.TransportError):  # nobody new comes in, as soon as it has heard
        knock_for_long(server)
    assert server.running.poll() is None  # and who is inside is waited for
    other.execute("ROLLBACK")
    other.close()
    saving.join()
    assert [each.status_code for each in answers] == [200]
    assert server.running.wait(10) == 0
    with byheart.open(server.store, embedding_provider="hash") as store:
        assert store.status().index.memories == 50


def test_an_idle_connection_does_not_hold_it_up(start: Start) -> None:
    server = start("--quiet")
    with server.client() as client, socket.create_connection(("127.0.0.1", _port(server))):
        client.get("/status")
        assert server.stop()[0] == 0


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    async def accept(listener: socket.socket) -> int:
        """Give what a connection is told of Nagle's delay, with which each answer takes 40 ms."""
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            told.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(look, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await told

    with serving._bind("127.0.0.1", 0) as listener:
        assert asyncio.run(accept(listener)) != 0


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    import apsw

    server = start("--quiet", BYHEART_BUSY_TIMEOUT_SECONDS="60")
    client = server.client()
    other = apsw.Connection(server.store)
    other.execute("BEGIN IMMEDIATE")

    def save() -> None:
        with pytest.raises(httpx2.TransportError):
            client.post("/memories", json={"content": "never acknowledged"})

    saving = threading.Thread(target=save)
    saving.start()
    wait_for_save(client)
    server.running.send_signal(signal.SIGINT)
    with pytest.raises(httpx2.TransportError):  # it has heard, and waits for the save
        knock_for_long(server)
    assert server.stop(signal.SIGINT)[0] == 128 + signal.SIGINT
    saving.join()
    other.close()


def test_a_port_in_use_is_a_clear_error(start: Start, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = _refuse(tmp_path, "--port", port)
    assert ran.exit_code == 1
    assert ran.stderr.startswith(f"error: port {port} of 127.0.0.1 is in use\nhint: ")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
        (("--host", "203.0.113.7"), "cannot listen on 203.0.113.7"),
        (("--port", "70000"), "serve_port"),
    ],
)
def test_an_address_that_is_none_is_a_usage_error(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    ran = _refuse(tmp_path, *arguments)
    assert ran.exit_code == 2
    assert says in ran.stderr
    assert "hint: " in ran.stderr


def test_it_tells_people_how_to_make_a_token_and_of_danger(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    running = start_program(
        *("serve", "--host", "0.0.0.0", "--port", "0"),
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    said = [running.stderr.readline() for _ in range(5)]
    running.send_signal(signal.SIGTERM)
    assert running.wait(10) == 0
    running.stderr.close()
    assert said[0].startswith("Byheart listens on http://0.0.0.0:")
    assert "byheart open" in said[1]
    assert "/docs" in said[2]
    assert "byheart token create" in said[3]
    assert said[4].startswith("warning: ")
    assert "TLS" in said[4]


def test_two_servers_of_one_store_see_each_others_saves(start: Start) -> None:
    first, second = start("--quiet"), start("--quiet")
    with first.client() as one, second.client() as two:
        saved = one.post("/memories", json={"content": "Anna likes tea."}).json()
        found = two.post("/search", json={"query": "tea"}).json()
        assert found["results"][0]["memory_id"] == saved["memory_id"]


def test_access_lines_go_to_the_log_file(start: Start, tmp_path: Path) -> None:
    server = start(BYHEART_LOG_FILE=str(tmp_path / "byheart.log"))
    httpx2.get(f"{server.url}/health", trust_env=False, verify=False)
    assert server.stop() == (0, "")
    assert " 200 GET /health " in (tmp_path / "byheart.log").read_text()


def _port(server: Process) -> int:
    return int(server.url.rpartition(":")[2])


def _environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "BYHEART_CONFIG": str(tmp_path / "config.toml"),
        "BYHEART_DB_PATH": str(tmp_path / "memory.db"),
        "BYHEART_EMBEDDING_PROVIDER": "hash",
    }


def _refuse(tmp_path: Path, *arguments: str) -> Result:
    """Run in this process what ends before it serves: a process takes two seconds to start."""
    return CliRunner().invoke(program, ["serve", *arguments], env=_environment(tmp_path))
