"""Many clients over HTTP: tokens are walls here as well."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import apsw
import httpx2
import psutil
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from byheart.interfaces.mcp.tool_texts import TOOLS
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.forked_program import PROGRAM, start_script
from tests.interfaces.mcp.conftest import LONG, environment
from tests.waiting import PATIENCE_SECONDS


@dataclass(frozen=True)
class Served:
    """A store, and where it is served."""

    url: str
    store: MemoryStore
    process: subprocess.Popen[bytes]

    def token(self, name: str, **given: Any) -> str:
        return self.store.api_keys.create(f"{name}-{uuid.uuid4().hex}", **given).secret

    @asynccontextmanager
    async def connect(self, secret: str) -> AsyncIterator[ClientSession]:
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=60) as http,
            streamable_http_client(f"{self.url}/mcp", http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            yield session


Serve = Callable[..., Served]


@contextmanager
def serving(
    path: Path, before: str = "", **variables: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a server, having run some other code before, and end it in order."""
    arguments = ("--db", str(path), "--json", "serve", "--port", "0", "--quiet")
    process = start_script(
        *(f"{before}\n{PROGRAM[-1]}", *arguments),
        stdout=subprocess.PIPE,
        env=environment(**variables),
    )
    assert process.stdout
    yield json.loads(process.stdout.readline())["url"], process
    process.terminate()
    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    process.stdout.close()


@pytest.fixture
def serve(path: Path, open_store: OpenStore) -> Iterator[Serve]:
    """Start servers under variables of their own, and stop them at the end."""
    with ExitStack() as stack:

        def start(before: str = "", **variables: str) -> Served:
            url, process = stack.enter_context(serving(path, before, **variables))
            return Served(url, open_store(), process)

        yield start


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, str, subprocess.Popen[bytes]]]:
    """Run one server for many tests: it takes longer to start than to ask."""
    folder = tmp_path_factory.mktemp("shared")
    path, config = folder / "memory.db", str(folder / "config.toml")
    with serving(path, BYHEART_CONFIG=config, XDG_STATE_HOME=str(folder)) as (url, process):
        yield path, url, process


@pytest.fixture
def served(shared: tuple[Path, str, subprocess.Popen[bytes]], open_store: OpenStore) -> Served:
    """Give a space of one's own on the server that the tests share."""
    path, url, process = shared
    return Served(url, open_store(path, space=uuid.uuid4().hex), process)


def test_one_client_finds_what_another_saved(served: Served) -> None:
    async def run() -> None:
        async with (
            served.connect(served.token("one")) as one,
            served.connect(served.token("two")) as two,
        ):
            saved = await one.call_tool("memory_save", {"content": "The harbour opens at six."})
            found = await two.call_tool("memory_search", {"query": "harbour"})
            hits = found.structured_content["results"]
            assert [hit["memory_id"] for hit in hits] == [saved.structured_content["memory_id"]]

    anyio.run(run)
    [entry] = served.store.history(served.store.list().memories[0].memory_id)
    assert entry.operation == "create"


def test_a_client_without_handshakes_is_served_too(served: Served) -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {served.token('modern')}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, verify=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            assert client.protocol_version == "2026-07-28"
            assert len((await client.list_tools()).tools) == len(TOOLS)

    anyio.run(run)


@pytest.mark.parametrize("header", [None, "Bearer bh_wrong", "Basic YTpi", "Bearer"])
def test_no_token_no_entry(served: Served, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx2.post(f"{served.url}/mcp", json=call, headers=headers)
    assert answer.status_code == 401
    assert "tools" not in answer.text


def test_a_page_of_somebody_else_gets_nowhere_even_with_a_token(served: Served) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    token = {"Authorization": f"Bearer {served.token('stolen')}"}
    for rebound in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        answer = httpx2.post(f"{served.url}/mcp", json=call, headers=token | rebound)
        assert answer.status_code in (403, 421)


def test_a_token_that_may_read_only_changes_nothing(served: Served) -> None:
    memory_id = served.store.save("Kept.").memory_id

    async def run() -> None:
        async with served.connect(served.token("reader", access="read")) as session:
            for tool, arguments in (
                ("memory_save", {"content": "New."}),
                ("memory_update", {"memory_id": memory_id, "title": "New"}),
                ("memory_forget", {"memory_id": memory_id}),
                ("memory_log", {"session_id": "s", "role": "user", "content": "Hi."}),
            ):
                answer = await session.call_tool(tool, arguments)
                assert answer.is_error
                assert "may read only" in answer.content[0].text
            read = await session.call_tool("memory_get", {"memory_id": memory_id})
            assert read.structured_content["content"] == "Kept."

    anyio.run(run)
    assert served.store.list().total == 1
    assert served.store.get(memory_id).version == 1


def test_a_token_of_another_space_sees_nothing(served: Served) -> None:
    memory_id = served.store.save("The secret plan.", session_id="s1").memory_id

    async def run() -> None:
        async with served.connect(served.token("stranger", space="elsewhere")) as session:
            await expect_nothing(session, memory_id, "s1", "secret plan")

    anyio.run(run)
    assert served.store.get(memory_id).version == 1, "it was there all the while, untouched"


def test_a_token_of_one_session_sees_no_other_but_what_is_global(served: Served) -> None:
    store = served.store
    other = store.save("The secret plan.", session_id="s1").memory_id
    own = store.save("Our plan.", session_id="s2").memory_id
    everyones = store.save("A plan for everybody.").memory_id

    async def run() -> None:
        async with served.connect(served.token("bound", session_id="s2")) as session:
            await expect_nothing(session, other, "s1", "secret plan")
            found = await session.call_tool("memory_search", {"query": "plan", "limit": 10})
            seen = {hit["memory_id"] for hit in found.structured_content["results"]}
            assert seen == {own, everyones}
            for tool, arguments in (
                ("memory_search", {"query": "plan", "session_id": "s1"}),
                ("memory_save", {"content": "Mine.", "session_id": "s1"}),
                ("memory_log", {"session_id": "s1", "role": "user", "content": "Hi."}),
                ("memory_context", {"session_id": "s1"}),
                ("memory_update", {"memory_id": own, "session_id": "s1"}),
                ("memory_update", {"memory_id": everyones, "title": "Mine now"}),
                ("memory_forget", {"memory_id": everyones}),
                ("memory_forget", {"memory_id": [own, other]}),
            ):
                assert (await session.call_tool(tool, arguments)).is_error, (tool, arguments)
            saved = await session.call_tool("memory_save", {"content": "Where does it go?"})
            assert store.get(saved.structured_content["memory_id"]).session_id == "s2"
            swept = await session.call_tool("memory_forget", {"older_than": 0, "dry_run": False})
            assert not swept.is_error

    anyio.run(run)
    assert {each.memory_id for each in store.list().memories} == {other, everyones}


async def expect_nothing(
    session: ClientSession, memory_id: str, session_id: str, query: str
) -> None:
    """By id, by search, by listing and by address: not there."""
    found = await session.call_tool("memory_search", {"query": query})
    assert memory_id not in found.content[0].text
    recalled = await session.call_tool("memory_recall", {"query": query})
    assert memory_id not in recalled.content[0].text
    for name in (memory_id, f"{memory_id}#0", f"{memory_id}@1"):
        assert (await session.call_tool("memory_get", {"memory_id": name})).is_error
        assert (await session.call_tool("fetch", {"id": name})).is_error
    assert (
        await session.call_tool("memory_update", {"memory_id": memory_id, "title": "x"})
    ).is_error
    assert (await session.call_tool("memory_forget", {"memory_id": memory_id})).is_error
    listed = await session.call_tool("memory_sessions", {})
    assert session_id not in listed.content[0].text or listed.is_error
    assert memory_id not in str((await session.list_resources()).resources)
    for address in (f"memory://{memory_id}", f"memory://sessions/{session_id}"):
        with pytest.raises(MCPError):
            await session.read_resource(address)
    prompt = await session.get_prompt("recall", {"topic": query})
    assert memory_id not in str(prompt)


def call_save(served: Served, secret: str, content: str) -> httpx2.Response:
    """Call a tool by hand."""
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    params = {"name": "memory_save", "arguments": {"content": content}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(
        f"{served.url}/mcp", json=call, headers=headers, trust_env=False, verify=False, timeout=60
    )


def wait_for_save(served: Served, secret: str) -> None:
    """Wait until a save is inside the server."""
    headers = {"Authorization": f"Bearer {secret}"}
    for _ in range(600):
        told = httpx2.get(
            f"{served.url}/metrics", headers=headers, trust_env=False, verify=False, timeout=60
        )
        if 'byheart_requests_under_way{lane="write"} 1' in told.text:
            return
        time.sleep(0.05)
    pytest.fail("the save did not arrive")


IN_A_HURRY = "from byheart.interfaces.rest import serving; serving._LAST_SECONDS = 0.1"


def test_a_save_under_way_is_kept_and_answered_when_the_server_is_stopped(serve: Serve) -> None:
    served = serve(IN_A_HURRY, BYHEART_BUSY_TIMEOUT_SECONDS="60")
    secret, answers = served.token("late"), list[httpx2.Response]()
    other = apsw.Connection(served.store.status().store)
    other.execute("BEGIN IMMEDIATE")  # so that a save takes as long as we want
    saving = threading.Thread(
        target=lambda: answers.append(call_save(served, secret, "Just in time."))
    )
    saving.start()
    wait_for_save(served, secret)
    served.process.terminate()
    time.sleep(0.5)  # longer than answers on their way are given
    assert served.process.poll() is None
    other.execute("ROLLBACK")
    other.close()
    saving.join()
    assert [answer.json()["result"]["isError"] for answer in answers] == [False]
    assert served.process.wait(10) == 0
    assert [each.content for each in served.store.list().memories] == ["Just in time."]


def test_agents_and_programs_share_the_limits_of_the_server(serve: Serve) -> None:
    served = serve(
        BYHEART_MAX_CONCURRENT_WRITES="1",
        BYHEART_MAX_WAITING_REQUESTS="0",
        BYHEART_BUSY_TIMEOUT_SECONDS="60",
    )
    secret = served.token("busy")
    other = apsw.Connection(served.store.status().store)
    other.execute("BEGIN IMMEDIATE")
    program = threading.Thread(
        target=lambda: httpx2.post(
            f"{served.url}/memories",
            json={"content": "First."},
            headers={"Authorization": f"Bearer {secret}"},
            trust_env=False,
            timeout=PATIENCE_SECONDS,
        )
    )
    program.start()
    wait_for_save(served, secret)
    refused = call_save(served, secret, "Second.").json()["result"]
    other.execute("ROLLBACK")
    other.close()
    program.join()
    assert refused["isError"]
    assert "under way or waiting" in refused["content"][0]["text"]
    assert [each.content for each in served.store.list().memories] == ["First."]


def test_there_is_no_stream_to_listen_to(served: Served) -> None:
    headers = {
        "Authorization": f"Bearer {served.token('listener')}",
        "Accept": "text/event-stream",
    }
    answer = httpx2.get(f"{served.url}/mcp", headers=headers, trust_env=False, timeout=10)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_the_status_tells_a_token_of_its_space_alone(served: Served) -> None:
    served.store.save("Ours.")

    async def run() -> None:
        async with served.connect(served.token("one")) as session:
            answer = await session.call_tool("memory_status", {})
            assert not answer.is_error, answer.content[0].text
            assert answer.structured_content["index"]["memories"] == 1
            assert not {"store", "spaces", "size_bytes"} & set(answer.structured_content)
        async with served.connect(served.token("two", session_id="s2")) as session:
            answer = await session.call_tool("memory_status", {})
            assert "the whole space" in answer.content[0].text

    anyio.run(run)


def post(served: Served, secret: str, body: bytes, version: str) -> httpx2.Response:
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": version,
    }
    return httpx2.post(
        f"{served.url}/mcp", content=body, headers=headers, trust_env=False, timeout=60
    )


def search_with(extra: bytes) -> bytes:
    """Write a search with an argument that has any JSON as its value."""
    return (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_search", '
        b'"arguments": {"query": "x", "tags": ' + extra + b"}}}"
    )


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("access", ["read", "write"])
def test_a_body_that_would_take_long_to_parse_is_refused_before_it_is_parsed(
    served: Served, access: str, version: str
) -> None:
    secret = served.token("hostile", access=access)
    process = psutil.Process(served.process.pid)
    before = process.memory_info().rss
    lists = b"[" + b"[]," * 6_000_000 + b"[]]"
    for body, status, reason in (
        (search_with(lists), 413, "bytes" if access == "read" else "values"),
        (search_with(b"[" * 100 + b"]" * 100), 400, "64 levels"),
        (search_with(b"[1" + b",1" * 60_000 + b"]"), 413, "values"),
        (search_with(b'["a"]').decode().encode("utf-16"), 400, "UTF-8"),
    ):
        answer = post(served, secret, body, version)
        assert (answer.status_code, answer.json()["jsonrpc"]) == (status, "2.0"), answer.text
        assert reason in answer.json()["error"]["message"]
    assert process.memory_info().rss - before < 200_000_000  # parsed, they take 500 MB


def test_a_long_text_can_be_saved_by_a_key_that_may_write(served: Served) -> None:
    text = "x" * 1_100_000
    answer = call_save(served, served.token("writer"), text)
    assert not answer.json()["result"]["isError"], answer.text[:500]
    refused = call_save(served, served.token("reader", access="read"), text)
    assert refused.status_code == 413
    assert "1,000,000 bytes" in refused.json()["error"]["message"]


def test_a_call_whose_client_hung_up_while_it_waited_is_not_carried_out(serve: Serve) -> None:
    served = serve(BYHEART_MAX_CONCURRENT_WRITES="1", BYHEART_BUSY_TIMEOUT_SECONDS="60")
    secret = served.token("impatient")
    other = apsw.Connection(served.store.status().store)
    other.execute("BEGIN IMMEDIATE")
    first = threading.Thread(target=call_save, args=(served, secret, "First."))
    first.start()
    wait_for_save(served, secret)
    host, _, port = served.url.removeprefix("http://").partition(":")
    connections = []
    for version in ("2025-06-18", "2026-07-28") * 5:
        connections.append(socket.create_connection((host, int(port))))
        connections[-1].sendall(save_bytes(secret, "Never.", version))
    wait_for_writes(served, secret, 11)
    for each in connections:
        each.close()
    wait_for_writes(served, secret, 1)
    other.execute("ROLLBACK")
    other.close()
    first.join()
    wait_for_writes(served, secret, 0)
    assert [each.content for each in served.store.list().memories] == ["First."]


def save_bytes(secret: str, content: str, version: str) -> bytes:
    """Write the whole request that saves a text."""
    name = "io.modelcontextprotocol"
    meta = {f"{name}/protocolVersion": version, f"{name}/clientCapabilities": {}}
    params = {"name": "memory_save", "arguments": {"content": content}, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(call)
    head = (
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {secret}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {version}",
        "Mcp-Method: tools/call",
        "Mcp-Name: memory_save",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*head, "", body)).encode()


def wait_for_writes(served: Served, secret: str, count: int) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    for _ in range(600):
        told = httpx2.get(f"{served.url}/metrics", headers=headers, trust_env=False, verify=False)
        if f'byheart_requests_under_way{{lane="write"}} {count}\n' in told.text:
            return
        time.sleep(0.05)
    pytest.fail(f"never were {count} writes under way")


def test_progress_comes_over_http_before_the_answer(served: Served) -> None:
    reports: list[float] = []

    async def report(progress: float, _total: float | None, _message: str | None) -> None:
        reports.append(progress)

    async def run() -> None:
        async with served.connect(served.token("writer")) as client:
            answer = await client.call_tool(
                "memory_save", {"content": LONG}, progress_callback=report
            )
            assert answer.structured_content
            assert reports
            assert max(reports) <= answer.structured_content["chunks"]

    anyio.run(run)


def test_a_client_without_handshakes_listens_over_http(served: Served) -> None:
    memory = served.store.save("tea", session_id="spring").memory_id
    hidden = served.store.save("secret", session_id="autumn").memory_id
    secret = served.token("reader", session_id="spring")

    async def run() -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, verify=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            with pytest.raises(MCPError):
                async with client.listen(resource_subscriptions=[f"memory://{hidden}"]):
                    pass
            uri = f"memory://{memory}"
            async with client.listen(
                resource_subscriptions=[uri], resources_list_changed=True
            ) as events:
                served.store.update(hidden, content="another secret")
                served.store.update(memory, content="green tea")
                with anyio.fail_after(20):
                    event = await anext(aiter(events))
                assert event.uri == uri

    anyio.run(run)
