"""The tools' definitions: from the verbs, and for models."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.interfaces.mcp.definitions import make_definitions
from byheart.interfaces.mcp.reference import tools_json
from byheart.interfaces.mcp.tool_texts import INSTRUCTIONS, TOOLS, load_definitions
from byheart.interfaces.operations import OPERATIONS
from byheart.model.compat_names import COMPAT_NAMES
from byheart.model.fields import FILTERS

# What a tool does not offer of its verb, and why.
LEFT_OUT = {
    "space": "the server is bound to one, so that no text can talk a model into another",
    "who": "the client's own name is written down",
    **{each.name: each.note for names in COMPAT_NAMES.values() for each in names},
    "fusion": "the default is the better one",
    "include_task": "for hooks, which know the task; a model searches by task_code",
}
# What few calls need, in a list that every conversation pays for.
LEFT_OUT_OF_FORGET = {name for name, (asked, _) in FILTERS.items() if asked.seldom}
LEFT_OUT_OF_LOG = {"origin"}  # the role tells


def test_the_file_is_what_the_verbs_say() -> None:
    assert load_definitions() == json.loads(tools_json()), (
        "run: python -m byheart.interfaces.mcp.reference"
    )


def test_tools_offer_the_parameters_of_their_verbs_with_the_same_defaults() -> None:
    for tool, definition in zip(TOOLS, make_definitions(), strict=True):
        verb = OPERATIONS[tool.verb].parameters
        for name, schema in definition["inputSchema"]["properties"].items():
            if name not in tool.own:
                assert schema.get("default") == verb[name].default, (tool.name, name)
        if tool.name in ("search", "fetch"):
            continue
        missing = set(verb) - set(tool.parameters)
        allowed = set(LEFT_OUT) | (LEFT_OUT_OF_FORGET if tool.name == "memory_forget" else set())
        if tool.name == "memory_save":
            allowed -= {"source"}
        if tool.name == "memory_log":
            allowed |= LEFT_OUT_OF_LOG
        assert missing <= allowed, (tool.name, missing - allowed)


def test_every_property_says_what_it_is() -> None:
    for definition in make_definitions():
        for name, schema in definition["inputSchema"]["properties"].items():
            assert schema.get("description"), (definition["name"], name)
        assert definition["inputSchema"]["additionalProperties"] is False


def test_descriptions_say_when_to_call_a_tool_and_when_not() -> None:
    for tool in TOOLS:
        if tool.name.startswith("memory_"):
            assert "Call it" in tool.description or "call" in tool.description, tool.name
            assert any(
                word in tool.description for word in ("Not for", "not ", "instead", "use ", "Use ")
            ), tool.name


def test_a_conversation_does_not_pay_much_for_the_tools() -> None:
    shown = [
        {key: each[key] for key in ("name", "description", "inputSchema")}
        for each in load_definitions()
    ]
    text = json.dumps(shown) + INSTRUCTIONS
    assert len(EstimatedTokens().token_starts(text)) < 10_000
    assert len(text) < 24_000


def test_a_client_that_checks_schemas_can_clear_a_field() -> None:
    [update] = [each for each in load_definitions() if each["name"] == "memory_update"]
    schema = Draft202012Validator(update["inputSchema"])
    assert schema.is_valid({"memory_id": "mem_1", "title": None, "session_iter": None})
    assert not schema.is_valid({"memory_id": None})
    assert not schema.is_valid({"memory_id": "mem_1", "content": None})
