"""The tools' schemas suit OpenAI's strict mode, Gemini and VS Code, and so do their calls."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from byheart.interfaces.mcp.calling import call_tool
from byheart.interfaces.mcp.tool_texts import TOOLS, load_definitions
from byheart.interfaces.operations import Grant
from byheart.store import MemoryStore
from tests.interfaces.mcp.schema_rules import (
    gemini_problems,
    make_strict,
    strict_problems,
    vscode_changes,
    vscode_problems,
)

DEFINITIONS = {each["name"]: each for each in load_definitions()}
EMPTY: dict[str, Any] = {"string": "", "array": [], "boolean": False, "integer": 0, "number": 0}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_tool_suits_every_consumer_of_its_schema(name: str) -> None:
    definition = DEFINITIONS[name]
    assert strict_problems(definition["inputSchema"]) == []
    assert gemini_problems(name, definition["inputSchema"]) == []
    assert vscode_problems(definition) == []
    assert vscode_changes(definition) == []


@pytest.mark.parametrize("definition", load_definitions("full"), ids=lambda each: each["name"])
def test_vs_code_takes_every_tool_with_every_argument_too(definition: dict[str, Any]) -> None:
    assert vscode_problems(definition) == []


def test_the_rules_find_what_they_are_for() -> None:
    free = {"type": "object", "properties": {"any": {"type": "object"}}}
    assert strict_problems(free) == ["$.any: an object that can only be empty"]
    assert strict_problems({"type": "object", "additionalProperties": True}) == ["$: a free object"]
    either = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert gemini_problems("tool", {"type": "object", "properties": {"a": either}})
    assert gemini_problems("1 tool", {"type": "object"}) == ["name: 1 tool"]
    bare = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["b"]}
    assert vscode_problems({"name": "tool", "description": "A tool.", "inputSchema": bare}) == [
        "$: b is required and not described",
        "$.a: an array without items",
    ]


def empty(schema: dict[str, Any]) -> Any:
    """Return the emptiest value of a type, as a model sends it that must send something."""
    if schema["type"] == "object":
        return {name: empty(each) for name, each in schema["properties"].items()}
    return EMPTY[schema["type"]]


def send_all(name: str, **given: Any) -> dict[str, Any]:
    """Fill every argument of a tool, as strict mode demands it."""
    arguments: dict[str, Any] = empty(DEFINITIONS[name]["inputSchema"]) | given
    allowed = make_strict(DEFINITIONS[name]["inputSchema"])
    for each in allowed["properties"].values():
        if "enum" in each:  # a model that chooses must choose something
            each["enum"] = [*each["enum"], ""]
    assert Draft202012Validator(allowed).is_valid(arguments)
    return arguments


def test_a_model_that_must_send_every_argument_leaves_the_others_empty(store: MemoryStore) -> None:
    def call(name: str, **given: Any) -> dict[str, Any]:
        return call_tool(store, name, send_all(name, **given), Grant(), 8_000).structured

    called = []

    def made(name: str, **given: Any) -> dict[str, Any]:
        called.append(name)
        return call(name, **given)

    saved = made("memory_save", content="The build server is called athena.", tags=["build"])
    memory_id = saved["memory_id"]
    memory = made("memory_get", memory_id=memory_id)
    assert (memory["kind"], memory["tags"]) == ("note", ["build"])
    assert memory["importance"] > 0
    assert "expires_at" not in memory
    for name in ("memory_search", "memory_recall", "search"):
        assert made(name, query="build server")
    assert len(call("memory_search", query="build server")["results"]) == 1
    assert len(call("memory_search")["results"]) == 1, "a listing"
    changed = made("memory_update", memory_id=memory_id, content="The build server is zeus.")
    assert changed["version"] == 2
    kept = call("memory_get", memory_id=memory_id)
    assert (kept["tags"], kept["importance"]) == (["build"], memory["importance"])
    made("memory_log", session_id="s", role="user", content="Which server builds?")
    assert made("memory_context", session_id="s", query="build server")["text"]
    made("memory_feedback", memory_id=memory_id, query="build server", outcome="used")
    made("memory_distrust", memory_id=[memory_id])
    assert len(made("memory_quarantine")["memories"]) == 1
    assert len(made("memory_sessions")["sessions"]) == 1
    made("memory_status")
    assert made("fetch", id=memory_id)["text"] == "The build server is zeus."
    assert made("memory_forget", memory_id=[memory_id])["count"] == 1
    assert {*called} == {each.name for each in TOOLS}


def test_an_empty_list_that_was_chosen_empties_the_field(store: MemoryStore) -> None:
    memory_id = store.save("tea", tags=["drink"]).memory_id
    call_tool(store, "memory_update", {"memory_id": memory_id, "tags": []}, Grant(), 8_000)
    assert store.get(memory_id).tags == ()


def test_nothing_named_forgets_nothing(store: MemoryStore) -> None:
    memory_id = store.save("tea").memory_id
    with pytest.raises(Exception, match="no memory was named and no filter given"):
        call_tool(store, "memory_forget", send_all("memory_forget"), Grant(), 8_000)
    assert store.get(memory_id).content == "tea"
