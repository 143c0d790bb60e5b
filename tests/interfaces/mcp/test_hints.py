"""Errors and remarks name tools, never commands of the command line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import byheart
from tests.interfaces.mcp.conftest import Connect


def test_no_answer_of_a_tool_names_a_command(connect: Connect, path: Any) -> None:
    with byheart.open(path, embedding_provider="none") as store:
        hidden = store.save("Anna drinks tea.").memory_id
        store.forget(hidden)
        shown = store.save("Ben drinks coffee.").memory_id
    calls: list[tuple[str, dict[str, Any]]] = [
        ("memory_get", {"memory_id": hidden}),
        ("memory_get", {"memory_id": "mem_none"}),
        ("memory_update", {"memory_id": hidden, "title": "Tea"}),
        ("memory_update", {"memory_id": shown, "title": "Coffee", "expected_version": 7}),
        ("memory_forget", {"memory_id": "mem_none"}),
        ("memory_search", {"query": "coffee"}),
        ("memory_status", {}),
    ]

    async def ask() -> list[str]:
        async with connect() as session:
            answers = [await session.call_tool(name, given) for name, given in calls]
        return [json.dumps(each.model_dump(mode="json")) for each in answers]

    said = asyncio.run(ask())
    assert not [each for each in said if "byheart " in each or "store." in each]
    assert f"the operation restore {hidden}, which no tool offers" in said[0]
    assert "memory_search with" in said[1]
    assert "memory_get with" in said[3]
    assert all("doctor with fix" in each for each in said[-2:])
