"""Every tool with every argument its schema names, on a store of a usual size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from byheart.errors import ByheartError
from byheart.interfaces.mcp.answer_text import write_text
from byheart.interfaces.mcp.calling import call_tool
from byheart.interfaces.mcp.definitions import describe_answer
from byheart.interfaces.mcp.tool_texts import TOOLS, ToolText, load_definitions
from byheart.interfaces.operations import Grant
from byheart.store import MemoryStore
from tests.fuzz.values import Schema, valid_values

MEMORIES = 1_000
DEFINITIONS = {each["name"]: each for each in load_definitions("full")}
# Arguments that are valid only with another, or only without the one that the tool is called with.
WITH: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("memory_search", "raw"): {"mode": "fts", "query": "harbour OR pump"},
    ("memory_forget", "memory_id"): {},
    ("memory_get", "history"): {},
    ("memory_update", "superseded_by"): {},
}
# A tool that needs none of its arguments still needs something to go by.
ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "memory_forget": {"kind": "plan"},
    "memory_update": {"title": "Harbour notes"},
}


@pytest.fixture(scope="module")
def filled(shared_store: MemoryStore) -> MemoryStore:
    """Save so many memories that no retriever ranks them all."""
    shared_store.save_many(
        [
            {
                "content": f"Fact {number}: the {('harbour', 'pump', 'crane')[number % 3]} of dock "
                f"{number % 17} stops at {number % 24} during the night shift.",
                "kind": ("note", "report")[number % 2],
                "session_id": f"s{number % 5}" if number % 3 else None,
                "tags": ["harbour"] if number % 4 else [],
                "path": f"notes/{number}.md" if number % 10 == 0 else None,
            }
            for number in range(MEMORIES)
        ]
    )
    for number in range(30):
        shared_store.log("s1", ("user", "assistant")[number % 2], f"Turn {number} on the harbour.")
    return shared_store


def calls(ids: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Enumerate calls: each value of each argument that a tool's schema names."""
    for name, definition in DEFINITIONS.items():
        schema = definition["inputSchema"]
        values = {
            # Other tools read the first two.
            argument: valid_values(argument, each, ids[2:4] if name == "memory_forget" else ids)
            for argument, each in schema["properties"].items()
        }
        needed = {argument: values[argument][0] for argument in schema["required"]}
        yield name, "", {**needed, **ALWAYS.get(name, {})}
        for argument, several in values.items():
            more = WITH.get((name, argument), ALWAYS.get(name, {}))
            if argument in ("expected_version", "superseded_by"):
                more = {**more, "memory_id": ids[4]}  # another one, still of the first version
            yield from ((name, argument, {**needed, **more, argument: each}) for each in several)


def test_every_tool_answers_with_every_argument(filled: MemoryStore) -> None:
    ids = [each.memory_id for each in filled.list(limit=5).memories]
    accepted: set[tuple[str, str]] = set()
    refused: dict[tuple[str, str], str] = {}
    for name, argument, given in calls(ids):
        try:
            answer = call_tool(filled, name, given, Grant(), 8_000)
        except ByheartError as error:  # one value of several; another of them must be accepted
            refused[name, argument] = f"{given}: {error}"
        else:
            assert answer.text.strip(), (name, given)
            accepted.add((name, argument))
    expected = {
        (name, argument)
        for name, definition in DEFINITIONS.items()
        for argument in ("", *definition["inputSchema"]["properties"])
    }
    assert not expected - accepted, {each: refused.get(each) for each in expected - accepted}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("granularity", ["fine", "medium", "coarse"])
def test_every_hit_of_a_large_store_can_be_explained(
    filled: MemoryStore, mode: str, granularity: str
) -> None:
    explained: list[str] = []
    for query in ("harbour", "pump dock 3", "night shift crane", "zebra", "stops at 7"):
        asked = {"query": query, "mode": mode, "granularity": granularity, "explain": True}
        text = call_tool(filled, "memory_search", {**asked, "limit": 100}, Grant(), 100_000).text
        assert "place" in text or "Nothing found" in text, query
        explained.append(text)
    assert any("in place 1" in each for each in explained)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.name not in ("search", "fetch")])
def test_text_is_written_whichever_optional_fields_an_answer_lacks(tool: ToolText) -> None:
    schema = describe_answer(tool)
    defined = schema.get("$defs", {})
    for number in itertools.count():
        left_out = _LeaveOut(number)
        whole = make_value(schema, defined, left_out)
        assert write_text(tool, {}, whole).strip(), left_out.name
        if not left_out.name:
            break
    assert number or tool.name not in ("memory_search", "memory_save"), "nothing was left out"
    assert write_text(tool, {}, make_value(schema, defined, _LeaveOut(0, all_of_them=True)))


class _LeaveOut:
    """Choose the optional field of a given number, or all of them, while a value is made."""

    def __init__(self, number: int, *, all_of_them: bool = False) -> None:
        self._left = number
        self._all = all_of_them
        self.name = ""

    def __call__(self, name: str) -> bool:
        self._left -= 1
        if self._left == -1:
            self.name = name
        return self._all or self._left == -1


def make_value(schema: Schema, defined: Mapping[str, Schema], leave_out: _LeaveOut) -> Any:
    """Make a value of a schema with every field, except for those to be left out."""
    if "$ref" in schema:
        return make_value(defined[schema["$ref"].rpartition("/")[2]], defined, leave_out)
    if "anyOf" in schema:
        return make_value(schema["anyOf"][0], defined, leave_out)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [make_value(schema.get("items", {"type": "string"}), defined, leave_out)]
    if schema.get("type") == "object":
        required = schema.get("required", ())
        return {
            name: make_value(each, defined, leave_out)
            for name, each in schema.get("properties", {}).items()
            if name != "read_on" and (name in required or not leave_out(name))
        }
    return {"string": "x", "boolean": False, "integer": 0, "number": 0.5}[schema["type"]]
