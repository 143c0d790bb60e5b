"""Queues: API keys take turns, and a request whose client hung up is not carried out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import apsw
import httpx2
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from byheart.interfaces.rest.work import Caller, Overloaded, Work
from byheart.settings import load_settings
from tests.interfaces.rest.conftest import Serve, Server

IDLE = {"read": 0, "write": 0, "export": 0}


def make_work(threads: int = 1, waiting: int = 100) -> Work:
    return Work(load_settings({"max_concurrent_reads": threads, "max_waiting_requests": waiting}))


class Clients:
    """Clients of a lane with one thread: they line up while it is busy."""

    def __init__(self, waiting: int = 100) -> None:
        self.work = make_work(waiting=waiting)
        self.done: list[str] = []
        self.refused: list[str] = []
        self.gone: list[str] = []
        self._busy = threading.Event()

    async def ask(
        self, name: str, caller: Caller, task: Callable[[], object] | None = None
    ) -> None:
        try:
            await self.work.run("read", task or (lambda: self.done.append(name)), caller)
        except Overloaded:
            self.refused.append(name)
        except ClientDisconnect:
            self.gone.append(name)

    async def run(self, *asked: tuple[str, Caller], then: Callable[[], object] = bool) -> None:
        """Let all of them line up behind a task that is running, then let that task end."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.ask, "first", Caller("z"), self._busy.wait)
            await anyio.wait_all_tasks_blocked()
            for name, caller in asked:
                group.start_soon(self.ask, name, caller)
            await anyio.sleep(0.05)
            then()
            await anyio.sleep(0.05)
            self._busy.set()
        assert self.work.under_way() == IDLE


def test_keys_take_turns() -> None:
    clients = Clients()
    asked = [(f"a{each}", Caller("a")) for each in range(20)]
    asked += [("b0", Caller("b")), ("b1", Caller("b")), ("c0", Caller("c"))]
    anyio.run(lambda: clients.run(*asked))
    assert clients.done[:6] == ["a0", "b0", "c0", "a1", "b1", "a2"]
    assert clients.done[6:] == [f"a{each}" for each in range(3, 20)]


def test_a_key_that_fills_the_queue_makes_room_for_another() -> None:
    clients = Clients(waiting=4)
    asked = [(f"a{each}", Caller("a")) for each in range(6)]
    asked += [("b0", Caller("b")), ("b1", Caller("b")), ("b2", Caller("b"))]
    anyio.run(lambda: clients.run(*asked))
    # Two of a are one too many each; then b takes the place of a's latest until both have two.
    assert clients.refused[:2] == ["a4", "a5"]
    assert sorted(clients.refused) == ["a2", "a3", "a4", "a5", "b2"]
    assert clients.done == ["a0", "b0", "a1", "b1"]


def test_a_client_that_hangs_up_leaves_the_queue_and_the_others_keep_their_order() -> None:
    clients = Clients()
    hung_up: list[anyio.Event] = []

    def receiver() -> Callable[[], object]:
        event = anyio.Event()
        hung_up.append(event)

        async def receive() -> Message:
            await event.wait()
            return {"type": "http.disconnect"}

        return receive

    async def run() -> None:
        asked = [(f"a{each}", Caller("a", receiver())) for each in range(6)]
        await clients.run(*asked, then=lambda: [hung_up[each].set() for each in (0, 1, 4)])

    anyio.run(run)
    assert clients.done == ["a2", "a3", "a5"]
    assert sorted(clients.gone) == ["a0", "a1", "a4"]


def test_many_clients_that_come_and_go_lose_no_thread() -> None:
    work = make_work(threads=3, waiting=50)
    done: list[int] = []

    async def receive_at_once() -> Message:
        await anyio.sleep(0)
        return {"type": "http.disconnect"}

    async def ask(number: int) -> None:
        receive = receive_at_once if number % 3 == 0 else None
        with anyio.move_on_after(0.002 * (number % 7)) if number % 5 == 0 else anyio.CancelScope():
            try:
                key = str(number % 4)
                await work.run("read", lambda: time.sleep(0.001), Caller(key, receive))
            except (ClientDisconnect, Overloaded):
                return
            done.append(number)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for number in range(500):
                group.start_soon(ask, number)
                if number % 40 == 0:
                    await anyio.sleep(0.01)
        assert work.under_way() == IDLE
        await work.run("read", lambda: done.append(-1))

    anyio.run(run)
    assert done[-1] == -1
    assert len(done) > 50


@contextmanager
def locked(server: Server) -> Iterator[None]:
    """Let every save wait for a lock of somebody else."""
    other = apsw.Connection(server.store.status().store)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def wait_for(client: httpx2.Client, under_way: int) -> None:
    for _ in range(600):
        if f'under_way{{lane="write"}} {under_way}\n' in client.get("/metrics").text:
            return
        time.sleep(0.02)
    pytest.fail(f"never were {under_way} writes under way")


def test_a_save_whose_client_hung_up_while_it_waited_is_not_carried_out(serve: Serve) -> None:
    server = serve(max_concurrent_writes=1, busy_timeout_seconds=30)
    watcher, impatient = server.client("watcher"), server.client("impatient")
    with locked(server):
        sockets = [send_save(server, impatient, number) for number in range(20)]
        wait_for(watcher, 20)
        for each in sockets:
            each.close()
        wait_for(watcher, 1)  # one had begun, and waits for the lock
    wait_for(watcher, 0)
    assert server.store.status().index.memories == 1  # a write that has begun is finished
    counted = watcher.get("/metrics").text
    assert 'route="/memories",status="499",token="yes"} 19' in counted


def send_save(server: Server, client: httpx2.Client, number: int) -> socket.socket:
    """Send a save on a connection of its own, and wait for nothing."""
    body = f'{{"content": "Memory {number}."}}'
    head = (
        "POST /memories HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Authorization: {client.headers['authorization']}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.sendall("\r\n".join((*head, "", body)).encode())
    return connection


def test_a_save_of_one_key_overtakes_the_many_of_another(serve: Serve) -> None:
    server = serve(max_concurrent_writes=1, busy_timeout_seconds=30)
    greedy, modest, watcher = (server.client(each) for each in ("greedy", "modest", "watcher"))
    with locked(server):
        threads = [
            threading.Thread(
                target=greedy.post, args=("/memories",), kwargs={"json": {"content": f"G {each}."}}
            )
            for each in range(30)
        ]
        for thread in threads:
            thread.start()
        wait_for(watcher, 30)
        last = threading.Thread(
            target=modest.post, args=("/memories",), kwargs={"json": {"content": "Modest."}}
        )
        last.start()
        wait_for(watcher, 31)
    for thread in (*threads, last):
        thread.join()
    saved = [each.content for each in reversed(server.store.list(limit=100).memories)]
    assert len(saved) == 31
    assert saved.index("Modest.") <= 2
