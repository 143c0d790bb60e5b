"""`byheart serve` with several processes: they share the work, and replace each other."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import psutil
import pytest

import byheart
from byheart.errors import SettingsError
from byheart.interfaces.rest import worker_pool
from byheart.interfaces.rest.shared_counts import SharedCounts
from byheart.interfaces.rest.work import Work
from byheart.interfaces.rest.worker_pool import Job, WorkerPool, count_workers, share_settings
from byheart.settings import Settings, load_settings
from tests.interfaces.rest.conftest import Process, Start, make_client
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them"),
]


def others(server: Process) -> list[psutil.Process]:
    """List the processes besides the first one."""
    return psutil.Process(server.running.pid).children()


def connections_of(process: psutil.Process, server: Process) -> int:
    """Count the connections of clients that a process serves."""
    port = int(server.url.rpartition(":")[2])
    held = process.net_connections("tcp")
    return sum(1 for each in held if each.status == "ESTABLISHED" and each.laddr.port == port)


def is_ready(server: Process, count: int) -> bool:
    """Tell whether each of the other processes takes a connection."""
    found = others(server)
    clients = [make_client(server.url) for _ in range(2 * (count + 1))]
    try:
        for each in clients:
            each.get("/health")
        return len(found) == count and all(connections_of(each, server) for each in found)
    except psutil.Error:
        return False
    finally:
        for each in clients:
            each.close()


def wait_for_all(server: Process, count: int) -> None:
    wait_until(lambda: is_ready(server, count))
    time.sleep(0.3)  # until the closed connections are told of


def test_connections_are_shared_evenly_and_all_processes_know_the_same(start: Start) -> None:
    server = start("--quiet", "--workers", "3")
    wait_for_all(server, 2)
    headers = dict(server.client().headers)
    clients = [make_client(server.url, headers=headers) for _ in range(9)]
    for number, each in enumerate(clients):
        assert each.post("/memories", json={"content": f"Tea number {number}"}).status_code == 201
    for each in clients:
        found = each.post("/search", json={"query": "tea", "limit": 20}).json()
        assert found["total_results"] == 9
    held = [connections_of(psutil.Process(server.running.pid), server)]
    held += [connections_of(each, server) for each in others(server)]
    assert held == [3, 3, 3]
    proofs = {each.get("/login/server?challenge=abc").text for each in clients}
    assert len(proofs) == 1
    for each in clients:
        each.close()
    assert server.stop() == (0, "")


def test_calls_of_one_mcp_client_may_reach_different_processes(start: Start) -> None:
    server = start("--quiet", "--workers", "2")
    wait_for_all(server, 1)
    headers = {**server.client().headers, "accept": "application/json, text/event-stream"}
    begin = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    calls = [("initialize", begin), ("tools/list", {}), ("tools/list", {}), ("tools/list", {})]
    clients = [make_client(server.url, headers=headers) for _ in calls]
    for number, (client, (method, params)) in enumerate(zip(clients, calls, strict=True)):
        call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        answer = client.post("/mcp", json=call)
        assert (answer.status_code, "result" in answer.json()) == (200, True)
    assert connections_of(others(server)[0], server) == 2
    for each in clients:
        each.close()


def count_health(client: httpx2.Client) -> float:
    name = 'byheart_requests_total{method="GET",route="/health",status="200",token="no"} '
    lines = client.get("/metrics").text.splitlines()
    return sum(float(each.removeprefix(name)) for each in lines if each.startswith(name))


def test_a_crashed_process_is_replaced_and_its_counts_are_kept(start: Start) -> None:
    server = start("--workers", "2", BYHEART_LOG_LEVEL="warning")
    wait_for_all(server, 1)
    client = server.client()
    time.sleep(1.5)  # every second, each process tells the others its counts
    before = count_health(client)
    assert before >= 4
    [first] = others(server)
    os.kill(first.pid, signal.SIGKILL)
    with make_client(server.url) as other:  # the first process still answers
        assert other.get("/health").status_code == 200
    wait_until(lambda: others(server) != [first] and is_ready(server, 1))
    with server.client() as again:
        wait_until(lambda: count_health(again) > before)
    code, errors = server.stop()
    assert code == 0
    assert f"worker process {first.pid} ended with code -9, and is started again" in errors


def test_the_processes_end_when_the_first_is_killed(start: Start) -> None:
    server = start("--quiet", "--workers", "2")
    wait_for_all(server, 1)
    [other] = others(server)
    server.running.kill()
    other.wait(30)


def test_a_request_under_way_in_another_process_ends_before_the_server(start: Start) -> None:
    import apsw

    server = start("--quiet", "--workers", "2", BYHEART_BUSY_TIMEOUT_SECONDS="60")
    wait_for_all(server, 1)
    client = server.client()
    blocking = apsw.Connection(server.store)
    blocking.execute("BEGIN IMMEDIATE")
    answers: list[httpx2.Response] = []

    def save() -> None:
        answers.append(client.post("/memories", json={"content": "Anna likes tea."}))

    saving = threading.Thread(target=save)
    saving.start()
    wait_until(lambda: connections_of(others(server)[0], server) == 1)
    time.sleep(0.3)
    server.running.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert server.running.poll() is None
    blocking.execute("ROLLBACK")
    blocking.close()
    saving.join()
    assert [each.status_code for each in answers] == [201]
    assert server.running.wait(20) == 0


def test_a_second_signal_ends_all_processes_at_once(start: Start) -> None:
    import apsw

    server = start("--quiet", "--workers", "2", BYHEART_BUSY_TIMEOUT_SECONDS="60")
    wait_for_all(server, 1)
    client = server.client()
    [other] = others(server)
    blocking = apsw.Connection(server.store)
    blocking.execute("BEGIN IMMEDIATE")

    def save() -> None:
        with pytest.raises(httpx2.TransportError):
            client.post("/memories", json={"content": "never acknowledged"})

    saving = threading.Thread(target=save)
    saving.start()
    wait_until(lambda: connections_of(other, server) == 1)
    time.sleep(0.3)
    server.running.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert server.running.poll() is None
    assert server.stop(signal.SIGINT)[0] == 128 + signal.SIGINT
    saving.join()
    other.wait(30)
    blocking.close()


def test_a_process_that_cannot_start_is_tried_again_and_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings({"db_path": str(tmp_path / "memory.db")}, environ={})
    job = Job(1, settings, "key", tmp_path, quiet=True, log_level=logging.WARNING)
    pool = WorkerPool("byheart.no_such_module", [job], tmp_path)

    async def look() -> None:
        pool.start()
        while len(caplog.records) < 2:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                assert not pool.give(ours, own=100)
            await asyncio.sleep(0.05)
        pool.stop()
        await pool.wait()

    asyncio.run(asyncio.wait_for(look(), 60))
    assert all("ended with code 1" in each.message for each in caplog.records)


def settings_with(**given: object) -> Settings:
    return load_settings(given, environ={})


def test_processes_share_the_limits_of_the_server() -> None:
    share = share_settings(settings_with(max_concurrent_reads=9, max_connections=500), 4)
    assert (share.max_concurrent_reads, share.max_connections) == (3, 125)
    assert (share.max_concurrent_writes, share.max_waiting_requests) == (2, 64)
    alone = settings_with(max_concurrent_reads=1)
    assert share_settings(alone, 4).max_concurrent_reads == 1
    assert share_settings(alone, 1) == alone


def test_there_is_a_process_for_each_core_but_no_more_than_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cores, wanted in ((1, 1), (3, 3), (64, 4)):
        monkeypatch.setattr(worker_pool, "count_cores", lambda cores=cores: cores)
        assert count_workers(settings_with()) == wanted
    assert count_workers(settings_with(serve_workers=7)) == 7
    monkeypatch.delattr(socket, "send_fds")
    assert count_workers(settings_with()) == 1
    with pytest.raises(SettingsError, match="cannot run several workers"):
        count_workers(settings_with(serve_workers=2))


def test_damaged_counts_are_left_out(tmp_path: Path) -> None:
    work = Work(settings_with())
    (tmp_path / "1.json").write_text("{")
    first, second = SharedCounts(tmp_path, 0, work), SharedCounts(tmp_path, 1, work)
    first.write()
    second.write()
    whole, under_way = first.of_all()
    assert whole.snapshot() == {"requests": [], "latencies": []}
    assert under_way == {"read": 0, "write": 0, "export": 0}


def test_a_folder_of_the_user_does_not_replace_modules(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    job = Job(1, settings_with(), "key", tmp_path, quiet=True, log_level=logging.WARNING)
    pool = WorkerPool("byheart", [job], tmp_path)
    ran = subprocess.run(pool._command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "not this one" not in ran.stderr
    assert byheart.__name__ in ran.stdout


def test_the_setting_has_the_same_effect_as_the_option(start: Start) -> None:
    server = start("--quiet", BYHEART_SERVE_WORKERS="1")
    time.sleep(1)
    assert others(server) == []
