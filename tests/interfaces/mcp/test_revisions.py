"""Older clients: traffic that was recorded with them, played again to the server of today.

Recorded with the SDK's clients of that time (mcp 1.2.0 and 1.9.4). Of the tools only the names were
kept, and of the instructions nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.interfaces.mcp.conftest import COMMAND, RawServer, environment

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))


def test_two_revisions_were_recorded() -> None:
    assert [each.stem for each in RECORDED] == ["2024-11-05", "2025-03-26"]


@pytest.mark.parametrize("recording", RECORDED, ids=lambda each: each.stem)
def test_an_older_client_gets_what_it_got_then(
    raw_server: Callable[..., RawServer], recording: Path
) -> None:
    server = raw_server()
    for line in recording.read_text(encoding="utf-8").splitlines():
        [(who, message)] = json.loads(line).items()
        if who == "client":
            server.send(message)
        else:
            answer = server.read()
            assert answer["id"] == message["id"]
            assert_shaped_alike(answer["result"], message["result"])
            if "protocolVersion" in message["result"]:
                assert answer["result"]["protocolVersion"] == recording.stem


def assert_shaped_alike(answer: Any, recorded: Any, at: str = "") -> None:
    """Everything that was there is there, in the same type; ids, times and words may differ."""
    if isinstance(recorded, dict):
        assert set(recorded) <= set(answer), at
        for key, value in recorded.items():
            assert_shaped_alike(answer[key], value, f"{at}.{key}")
    elif isinstance(recorded, list):
        assert len(recorded) <= len(answer), at
        for number, value in enumerate(recorded):
            assert_shaped_alike(answer[number], value, f"{at}[{number}]")
    else:
        assert type(answer) is type(recorded) or {type(answer), type(recorded)} <= {int, float}, at
    if at.endswith(("isError", "role", "type", ".status")):
        assert answer == recorded


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_revision_that_a_client_speaks_is_spoken(
    raw_server: Callable[..., RawServer], version: str
) -> None:
    assert raw_server().begin(version)["result"]["protocolVersion"] == version


def test_a_revision_from_the_future_is_answered_with_one_that_is_known(
    raw_server: Callable[..., RawServer],
) -> None:
    assert raw_server().begin("2099-01-01")["result"]["protocolVersion"] == "2025-11-25"


def test_a_client_of_the_revision_without_handshakes_connects(path: Path) -> None:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--db", str(path), "mcp"], env=environment()
    )

    async def run() -> None:
        async with Client(stdio_client(parameters)) as client:
            assert client.protocol_version == "2026-07-28"
            saved = await client.call_tool("memory_save", {"content": "No handshake."})
            memory_id = saved.structured_content["memory_id"]
            await client.call_tool("memory_update", {"memory_id": memory_id, "title": "None"})
            [read] = (await client.read_resource(f"memory://{memory_id}")).contents
            assert read.text == "No handshake."

    anyio.run(run)
