"""One client over stdin and stdout: the SDK's own client, and lines by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams

from byheart.interfaces.mcp.tool_texts import TOOLS
from tests.interfaces.mcp.conftest import COMMAND, Connect, RawServer, environment
from tests.waiting import PATIENCE_SECONDS

StartRaw = Callable[..., RawServer]


def text_of(result: Any) -> str:
    return str(result.content[0].text)


def test_what_one_client_saves_another_finds(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as first, connect() as second:
            saved = await first.call_tool(
                "memory_save", {"content": "The deploy key is in the vault under ci/deploy."}
            )
            found = await second.call_tool("memory_search", {"query": "deploy key vault"})
            memory_id = saved.structured_content["memory_id"]
            assert found.structured_content["results"][0]["memory_id"] == memory_id
            assert memory_id in text_of(found)

    anyio.run(run)


def test_every_tool_says_what_it_does_to_the_memory_and_what_it_answers(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            tools = (await session.list_tools()).tools
        assert [each.name for each in tools] == [each.name for each in TOOLS]
        assert len(tools) <= 15
        for tool in tools:
            assert tool.annotations
            assert tool.annotations.title
            assert tool.annotations.open_world_hint is False
            assert None not in (
                tool.annotations.read_only_hint,
                tool.annotations.destructive_hint,
                tool.annotations.idempotent_hint,
            )
            assert tool.output_schema
            assert tool.output_schema["type"] == "object"
            Draft202012Validator.check_schema(tool.input_schema)
            Draft202012Validator.check_schema(tool.output_schema)
        read_only = {each.name for each in tools if each.annotations.read_only_hint}
        assert {each.name for each in tools} - read_only == {
            *("memory_save", "memory_update", "memory_forget", "memory_log"),
            *("memory_feedback", "memory_distrust", "memory_recall"),  # a recall counts accesses
        }
        [forget] = [each for each in tools if each.annotations.destructive_hint]
        assert forget.name == "memory_forget"

    anyio.run(run)


def test_answers_are_as_their_schemas_say(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            schemas = {each.name: each.output_schema for each in (await session.list_tools()).tools}
            report = "# Release\n\n## Steps\n\nTag, build, publish.\n\n## Owner\n\nMara does it.\n"
            saved = await session.call_tool(
                "memory_save", {"content": report, "kind": "report", "session_id": "s1"}
            )
            memory_id = saved.structured_content["memory_id"]
            calls: list[tuple[str, dict[str, Any]]] = [
                ("memory_save", {"content": "Mara owns releases."}),
                ("memory_search", {"query": "who releases?", "explain": True}),
                ("memory_search", {"query": "release", "granularity": "medium"}),
                ("memory_search", {"query": "release", "granularity": "coarse"}),
                ("memory_recall", {"query": "release", "explain": True}),
                ("memory_get", {"memory_id": memory_id}),
                ("memory_get", {"memory_id": f"{memory_id}#0"}),
                ("memory_update", {"memory_id": memory_id, "title": "Releasing"}),
                ("memory_log", {"session_id": "s1", "role": "user", "content": "Who releases?"}),
                ("memory_context", {"session_id": "s1"}),
                ("memory_sessions", {}),
                ("memory_status", {}),
                ("search", {"query": "release"}),
                ("fetch", {"id": memory_id}),
                (
                    "memory_feedback",
                    {"memory_id": memory_id, "query": "who releases?", "outcome": "used"},
                ),
                ("memory_distrust", {"memory_id": memory_id, "reason": "a trial"}),
                ("memory_quarantine", {}),
                ("memory_forget", {"memory_id": memory_id}),
            ]
            assert {name for name, _ in calls} == set(schemas)
            for name, arguments in calls:
                answer = await session.call_tool(name, arguments)
                assert not answer.is_error, (name, text_of(answer))
                Draft202012Validator(schemas[name]).validate(answer.structured_content)
                assert text_of(answer).strip()

    anyio.run(run)


BAD: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("memory_search", {"query": "x", "limit": 0}, "from 1 to 1,000"),
    ("memory_search", {"quer": "x"}, "did you mean query?"),
    ("memory_recall", {}, "needs query"),
    ("memory_save", {"content": "  "}, "blank"),
    ("memory_save", {"content": 5}, "must be text"),
    ("memory_get", {"memory_id": "nope"}, "memory_search"),
    ("memory_get", {"memory_id": "nope#x"}, "nope#x"),
    ("memory_recall", {"query": "x", "created_after": "soon"}, "ISO 8601"),
    ("memory_search", {"query": '"', "raw": True}, "Hint"),
    ("memory_search", {"query": "x", "space": "other"}, "unknown argument"),
    ("memory_log", {"session_id": "s"}, "needs role"),
    ("memory_context", {}, "give session_id: "),
    ("memory_save", {"content": "x", "metadata": "{bad"}, "metadata is not JSON: "),
    ("memory_save", {"content": "x", "metadata": "{bad"}, 'as in: {"key": "value"}'),
    ("memory_update", {"memory_id": "x", "metadata": "{bad"}, "metadata is not JSON: "),
)


def test_bad_arguments_are_answers_that_say_what_to_do(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            for tool, arguments, told in BAD:
                answer = await session.call_tool(tool, arguments)
                assert answer.is_error, (tool, arguments)
                assert told in text_of(answer), (tool, arguments)

    anyio.run(run)


def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            with pytest.raises(MCPError, match="there is no tool 'memory_delete'"):
                await session.call_tool("memory_delete", {})

    anyio.run(run)


def test_nulls_count_as_not_given_but_clear_a_field_in_an_update(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            saved = await session.call_tool(
                "memory_save", {"content": "Tea at four.", "title": "Tea", "tags": None}
            )
            memory_id = saved.structured_content["memory_id"]
            await session.call_tool("memory_update", {"memory_id": memory_id, "title": None})
            read = await session.call_tool("memory_get", {"memory_id": memory_id})
            assert "title" not in read.structured_content

    anyio.run(run)


def test_the_history_names_the_client(connect: Connect, open_store: Any) -> None:
    async def run() -> None:
        async with connect() as session:
            saved = await session.call_tool("memory_save", {"content": "Tea at four."})
            memory_id = saved.structured_content["memory_id"]
            await session.call_tool("memory_update", {"memory_id": memory_id, "title": "Tea"})
            return memory_id

    memory_id = anyio.run(run)
    assert [each.who for each in open_store().history(memory_id)][-1] == "mcp"


def test_a_server_of_one_space_sees_no_other(connect: Connect) -> None:
    async def run() -> None:
        async with connect("--space", "work") as work, connect() as home:
            saved = await work.call_tool("memory_save", {"content": "The quarterly figures."})
            memory_id = saved.structured_content["memory_id"]
            found = await home.call_tool("memory_search", {"query": "quarterly figures"})
            assert found.structured_content["results"] == []
            assert (await home.call_tool("memory_get", {"memory_id": memory_id})).is_error
            with pytest.raises(MCPError):
                await home.read_resource(f"memory://{memory_id}")

    anyio.run(run)


def test_resources_and_prompts_bring_memories(connect: Connect) -> None:
    async def run() -> None:
        async with connect() as session:
            await session.call_tool(
                "memory_save", {"content": "Ünïcode 漢字 🎉", "session_id": "s/1 ü"}
            )
            resources = (await session.list_resources()).resources
            assert len(resources) == 2
            texts = []
            for each in resources:
                [read] = (await session.read_resource(each.uri)).contents
                texts.append(read.text)
            assert "# Session s/1 ü" in texts[0]
            assert texts[1] == "Ünïcode 漢字 🎉"
            prompt = await session.get_prompt("recall", {"topic": "漢字"})
            assert "Ünïcode 漢字 🎉" in prompt.messages[0].content.text
            wrap_up = await session.get_prompt("wrap_up", {"session_id": "s1"})
            assert "'s1'" in wrap_up.messages[0].content.text
            for cursor in ("zzz", "9" * 5_000, "-1"):
                with pytest.raises(MCPError, match="none of ours"):
                    await session.list_resources(params=PaginatedRequestParams(cursor=cursor))
            for name, arguments in (("recall", {}), ("unknown", {})):
                with pytest.raises(MCPError):
                    await session.get_prompt(name, arguments)

    anyio.run(run)


def test_lines_that_are_no_messages_do_not_end_the_server(raw_server: StartRaw) -> None:
    server = raw_server()
    server.begin()
    for line in (b"", b"hello", b"[]", b"{}", b"\xff\xfe", b'{"jsonrpc":"2.0"}', b"9" * 100_000):
        server.send(line)
    assert "tools" in server.ask("tools/list", id=7)["result"]


def test_nothing_but_the_protocol_is_on_stdout(raw_server: StartRaw) -> None:
    server = raw_server(BYHEART_LOG_LEVEL="debug", PYTHONWARNINGS="always")
    server.begin()
    save = {"name": "memory_save", "arguments": {"content": "Loud.", "unknown": 1}}
    server.ask("tools/call", save, id=2)
    assert server.process.stdin
    assert server.process.stdout
    server.process.stdin.close()
    assert server.process.stdout.read() == b"", "every line so far was a message"


def test_it_ends_by_itself_when_its_client_has_gone(raw_server: StartRaw) -> None:
    server = raw_server()
    server.begin()
    server.ask("tools/call", {"name": "memory_save", "arguments": {"content": "Last."}}, id=2)
    assert server.process.stdin
    server.process.stdin.close()
    assert server.process.wait(timeout=PATIENCE_SECONDS) == 0


def test_it_ends_with_one_ctrl_c(raw_server: StartRaw) -> None:
    server = raw_server()
    server.begin()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=PATIENCE_SECONDS) == 0


def test_it_ends_with_its_parent_though_the_pipe_stays_open(path: Path, tmp_path: Path) -> None:
    """A killed client can leave its end of the pipe with another child."""
    read_end, write_end = os.pipe()
    note = tmp_path / "pid"
    program = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen({[*COMMAND, '--db', str(path), 'mcp']!r}, stdin={read_end},"
        f" stdout=subprocess.DEVNULL)\nopen({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], pass_fds=[read_end], env=environment()
    )
    while not note.exists() or not note.read_text():
        time.sleep(0.05)
    child = int(note.read_text())
    time.sleep(1.5)  # until it looks after its parent
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 5
    while _runs(child):
        assert time.monotonic() < deadline, "it outlived its parent"
        time.sleep(0.05)
    os.close(read_end)
    os.close(write_end)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_was_asked_before_the_pipe_closed_is_saved(path: Path, open_store: Any) -> None:
    handshake = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "pipe", "version": "1"},
    }
    save = {"name": "memory_save", "arguments": {"content": "Through a pipe."}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": save},
    ]
    server = RawServer(path)
    for line in lines:
        server.send(line)
    while server.read().get("id") != 1:
        pass
    server.process.kill()
    server.process.communicate()
    assert open_store().list().total == 1


def test_a_store_that_cannot_be_opened_is_told_by_the_tools(
    raw_server: StartRaw, path: Path
) -> None:
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    server = raw_server()
    server.begin()
    answer = server.ask("tools/call", {"name": "memory_status", "arguments": {}}, id=3)["result"]
    assert answer["isError"]
    assert "Hint" in answer["content"][0]["text"]


def test_ten_servers_work_side_by_side_on_one_store(raw_server: StartRaw, open_store: Any) -> None:
    servers = [raw_server() for _ in range(10)]

    def use(number: int) -> None:
        servers[number].begin()
        for turn in range(5):
            arguments = {"content": f"Server {number} says {turn}."}
            call = {"name": "memory_save", "arguments": arguments}
            answer = servers[number].ask("tools/call", call, id=turn + 1)["result"]
            assert not answer["isError"], answer

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(use, range(10)))
    assert open_store().list().total == 50


def test_nothing_of_the_engine_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from byheart.interfaces.mcp import stdio\n"
        "from byheart.interfaces.mcp.lazy_store import LazyStore\n"
        "from byheart.interfaces.mcp.server import make_server\n"
        "from byheart.interfaces.mcp.subscriptions import Subscriptions\n"
        "store = LazyStore(None)\n"
        "make_server(store, None, None, None, Subscriptions(store, None))\n"
        "print(*(set(sys.modules) & {'numpy', 'apsw', 'onnxruntime', 'tokenizers', "
        "'markdown_it', 'byheart.store', 'byheart.model'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.split() == []


def test_a_text_of_too_many_chunks_is_a_tool_error_with_advice(connect: Connect) -> None:
    async def run() -> None:
        async with connect(BYHEART_MAX_CHUNKS="3") as session:
            text = "Plain words fill this passage. " * 300
            answer = await session.call_tool("memory_save", {"content": text})
            assert answer.is_error
            assert "more than 3 chunks" in text_of(answer)
            assert "max_chunks" in text_of(answer)

    anyio.run(run)
