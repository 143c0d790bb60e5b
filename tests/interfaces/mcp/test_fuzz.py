"""Whatever arguments a model makes up, the server lives and says what was wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from byheart.interfaces.mcp.tools import BY_NAME, TOOLS
from tests.interfaces.mcp.conftest import RawServer

SEED = 20261116
CALLS = 400
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 10**30, 1.5, -0.0, 1e308, "", " ", "x", "mem_1#0", "a@b#c"),
    *("2026-01-01", "v2", "%", '"', "'; DROP TABLE memories;--", "\x00", "\ud83d\ude00", "漢字"),
    *(
        [],
        [None],
        ["a", 1],
        [[]],
        {},
        {"a": {"b": []}},
        "y" * 5_000,
        ["t"] * 200,
        "../../etc/passwd",
    ),
)


@pytest.mark.slow
def test_made_up_arguments_do_not_end_the_server(raw_server: Callable[..., RawServer]) -> None:
    chance = random.Random(SEED)
    server = raw_server()
    server.begin()
    names = [*sorted({name for tool in TOOLS for name in tool.parameters}), "bogus", ""]
    answered = {"error": 0, "fine": 0}
    for number in range(CALLS):
        tool = chance.choice(TOOLS)
        own = (
            [*tool.parameters, *chance.sample(names, 1)]
            if chance.random() < 0.2
            else tool.parameters
        )
        arguments = {
            name: chance.choice(ODD)
            for name in chance.sample(list(own), chance.randint(0, min(4, len(own))))
        }
        for name in ("query", "content", "memory_id", "session_id"):
            if name in BY_NAME[tool.name].parameters and chance.random() < 0.7:
                arguments[name] = f"text {number}"
        params = {"name": tool.name, "arguments": arguments}
        answer = server.ask("tools/call", params, id=number + 10)
        result = answer["result"]
        told = result["content"][0]["text"]
        assert told.strip(), params
        assert "something unexpected" not in told, (params, told)
        answered["error" if result["isError"] else "fine"] += 1
    assert server.ask("ping", id=5)["result"] == {}
    assert min(answered.values()) > CALLS / 20, answered
