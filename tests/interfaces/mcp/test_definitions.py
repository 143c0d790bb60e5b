"""The tools' definitions: from the verbs, and for models."""

from __future__ import annotations

import json

import bpe_openai
import pytest
from jsonschema import Draft202012Validator

from byheart.interfaces.mcp.definitions import make_definitions
from byheart.interfaces.mcp.reference import tools_json
from byheart.interfaces.mcp.tool_texts import FILES, TOOLS, ToolProfile, load_definitions
from byheart.interfaces.operations import OPERATIONS
from byheart.model.compat_names import COMPAT_NAMES
from byheart.model.fields import FILTERS

# What a tool does not offer of its verb, and why.
LEFT_OUT = {
    "space": "the server is bound to one, so that no text can talk a model into another",
    "who": "the client's own name is written down",
    **{each.name: each.note for names in COMPAT_NAMES.values() for each in names},
    "fusion": "the default is the better one",
    "vector": "a language model makes no vectors",
    "preview": "for people who try other budgets",
    "include_task": "for hooks, which know the task; a model searches by task_code",
    "trusted": "only the user reviews",
}
# What few calls need, in a list that every conversation pays for.
LEFT_OUT_OF_FORGET = {name for name, (asked, _) in FILTERS.items() if asked.seldom}
LEFT_OUT_OF_LOG = {"origin"}  # the role tells
# Tools that name one memory, or list all of some state: no filter.
UNFILTERED = {"memory_distrust", "memory_feedback", "memory_quarantine"}


@pytest.mark.parametrize("profile", FILES)
def test_the_files_are_what_the_verbs_say(profile: ToolProfile) -> None:
    assert load_definitions(profile) == json.loads(tools_json(profile)), (
        "run: python -m byheart.interfaces.mcp.reference"
    )


def test_tools_offer_the_parameters_of_their_verbs_with_the_same_defaults() -> None:
    for tool, definition in zip(TOOLS, make_definitions("full"), strict=True):
        verb = OPERATIONS[tool.verb].parameters
        for name, schema in definition["inputSchema"]["properties"].items():
            if name not in tool.own:
                assert schema.get("default") == verb[name].default, (tool.name, name)
        if tool.name in ("search", "fetch"):
            continue
        missing = set(verb) - set(tool.parameters)
        allowed = set(LEFT_OUT) | (LEFT_OUT_OF_FORGET if tool.name == "memory_forget" else set())
        if tool.name == "memory_save":
            allowed -= {"source", "trusted"}
        if tool.name == "memory_log":
            allowed |= LEFT_OUT_OF_LOG
        if tool.name in UNFILTERED:
            allowed |= {*FILTERS, "dry_run"}
        assert missing <= allowed, (tool.name, missing - allowed)


def test_every_property_says_what_it_is() -> None:
    for definition in make_definitions("full"):
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
    definitions = load_definitions()
    shown = [
        {key: each[key] for key in ("name", "description", "inputSchema")} for each in definitions
    ]
    assert count_tokens(shown) <= 2_500, "names, descriptions and arguments"
    assert count_tokens(definitions) <= 4_500, "with the answers"


def count_tokens(value: object) -> int:
    """Count the tokens of a language model: `o200k_base`, which comes with the package."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def test_a_client_that_checks_schemas_can_clear_a_field() -> None:
    [update] = [each for each in load_definitions("full") if each["name"] == "memory_update"]
    schema = Draft202012Validator(update["inputSchema"])
    assert schema.is_valid({"memory_id": "mem_1", "title": None, "session_iter": None})
    assert not schema.is_valid({"memory_id": None})
    assert not schema.is_valid({"memory_id": "mem_1", "content": None})
