"""What a client can do besides calling tools: complete, subscribe, follow, cancel and log."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.conftest import OpenStore
from tests.interfaces.mcp.conftest import LONG, Connect, RawServer

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

MEMORY = types.ResourceTemplateReference(uri="memory://{memory_id}")


class Heard:
    """Keep what a server says unasked."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def __call__(self, message: Any) -> None:
        self.messages.append(message)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.messages if isinstance(each, kind)]

    async def wait_for(self, kind: type, number: int = 1) -> list[Any]:
        with anyio.fail_after(20):
            while len(self.of(kind)) < number:
                await anyio.sleep(0.02)
        return self.of(kind)


def test_ids_sessions_kinds_and_tags_are_completed(connect: Connect, open_store: OpenStore) -> None:
    store = open_store()
    saved = store.save("tea", kind="fact", tags=["drink", "dry"], session_id="spring")
    store.save("sand", tags=["dune"], session_id="summer")

    async def run() -> None:
        async with connect() as client:

            async def complete(name: str, value: str, ref: Any = MEMORY) -> list[str]:
                argument = {"name": name, "value": value}
                return (await client.complete(ref, argument)).completion.values

            assert await complete("memory_id", saved.memory_id[:-3]) == [saved.memory_id]
            assert await complete("session_id", "s") == ["summer", "spring"]
            assert await complete("kind", "f") == ["fact"]
            assert await complete("tag", "d") == ["dune", "drink", "dry"]
            prompt = types.PromptReference(name="recall")
            assert await complete("session_id", "sp", prompt) == ["spring"]
            assert await complete("topic", "te", prompt) == []
            [of_kind] = (await client.read_resource("memory://kinds/fact")).contents
            assert "tea" in of_kind.text
            assert "sand" not in of_kind.text
            [of_tag] = (await client.read_resource("memory://tags/dune")).contents
            assert "sand" in of_tag.text

    anyio.run(run)


def test_a_client_learns_what_another_process_changes(
    connect: Connect, open_store: OpenStore
) -> None:
    store, heard = open_store(), Heard()
    memory = store.save("tea", session_id="spring").memory_id
    other = store.save("sand").memory_id

    async def run() -> None:
        async with connect(heard=heard) as client:
            with pytest.raises(MCPError, match="mem_none"):
                await client.subscribe_resource("memory://mem_none")
            await client.subscribe_resource(f"memory://{memory}")
            await client.subscribe_resource("memory://sessions/spring")
            store.update(other, content="sand and stone")
            store.update(memory, content="green tea")
            told = await heard.wait_for(types.ResourceUpdatedNotification, 2)
            assert {each.params.uri for each in told} == {
                f"memory://{memory}",
                "memory://sessions/spring",
            }
            await client.unsubscribe_resource("memory://sessions/spring")
            heard.messages.clear()
            store.forget(memory, hard=True)
            [told] = await heard.wait_for(types.ResourceUpdatedNotification)
            assert told.params.uri == f"memory://{memory}"

    anyio.run(run)


def test_a_long_save_reports_its_progress(connect: Connect) -> None:
    reports: list[tuple[float, float | None]] = []

    async def report(progress: float, total: float | None, _message: str | None) -> None:
        reports.append((progress, total))

    async def run() -> None:
        async with connect() as client:
            answer = await client.call_tool(
                "memory_save", {"content": LONG}, progress_callback=report
            )
            assert answer.structured_content
            assert answer.structured_content["pending_vectors"] == 0
            total = answer.structured_content["chunks"]
            assert {each for _, each in reports} == {total}
            assert 0 < max(reports)[0] <= total

    anyio.run(run)


def test_a_cancelled_save_stops_and_keeps_the_text(path: Any, open_store: OpenStore) -> None:
    # The embedder takes a moment for each text, so that there is something to cancel.
    server = RawServer(path, BYHEART_EMBEDDING_PROVIDER="hash", BYHEART_EMBED_ON_SAVE="1")
    try:
        server.begin()
        call = {
            "name": "memory_save",
            "arguments": {"content": LONG},
            "_meta": {"progressToken": 7},
        }
        server.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call})
        report = server.read()
        assert report["method"] == "notifications/progress"
        assert report["params"]["progressToken"] == 7
        cancel = {"requestId": 5, "reason": "the user pressed Escape"}
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
        pong = server.ask("ping", id=6)
        assert pong["result"] == {}
    finally:
        server.process.kill()
        server.process.wait()
    assert open_store().status().index.memories == 1


def test_the_log_of_a_call_reaches_the_client_that_asked_for_it(raw_server: Any) -> None:
    server = raw_server()
    assert "logging" in server.begin()["result"]["capabilities"]
    call = {"name": "memory_search", "arguments": {"query": "tea"}}
    quiet = []
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    while (message := server.read()).get("id") != 1:
        quiet.append(message)
    assert quiet == []
    assert server.ask("logging/setLevel", {"level": "debug"}, id=2)["result"] == {}
    server.send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
    said = []
    while (message := server.read()).get("id") != 3:
        said.append(message["params"])
    assert any(
        each["level"] == "debug" and each["data"].startswith("memory_search took") for each in said
    )
