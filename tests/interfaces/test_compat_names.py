"""Check the names of other systems in every interface, from the one list of them."""

from __future__ import annotations

import inspect
from typing import Any

import click
import pytest

from byheart.errors import InvalidInput
from byheart.interfaces.cli.commands import byheart
from byheart.interfaces.mcp.calling import call_tool
from byheart.interfaces.mcp.definitions import make_definitions
from byheart.interfaces.operations import OPERATIONS, Grant, perform
from byheart.interfaces.rest.openapi import describe_api
from byheart.model.compat_names import COMPAT_FIELDS, COMPAT_NAMES, CompatName, translate
from byheart.store import MemoryStore
from tests.store_verbs import every_verb

NAMES = [(verb, each) for verb, names in COMPAT_NAMES.items() for each in names]
IDS = [f"{verb} {each.name}" for verb, each in NAMES]
# A value of each parameter that differs from its default.
VALUES = {"limit": 2, "mode": "fts", None: 0.99}


def test_the_list_has_the_names_that_were_promised() -> None:
    assert {each.name: each.means for each in COMPAT_NAMES["search"]} == {
        "topK": "limit",
        "source": "mode",
        "similarity_threshold": None,
    }


@pytest.mark.parametrize(("verb", "compat"), NAMES, ids=IDS)
def test_python_takes_the_name_and_means_the_parameter(
    verb: str, compat: CompatName, store: MemoryStore
) -> None:
    assert inspect.signature(every_verb()[verb]).parameters[compat.name].default is None
    store.save_many({"content": f"tea number {n}"} for n in range(4))
    value = VALUES[compat.means]
    own = {} if compat.means is None else {compat.means: value}
    named = store.search("tea", **{compat.name: value})
    expected = store.search("tea", **own)
    assert (named.results, named.mode) == (expected.results, expected.mode)
    assert (len(named.results), named.mode) == (
        2 if compat.means == "limit" else 4,
        "fts" if compat.means == "mode" else "hybrid",
    )


@pytest.mark.parametrize(("verb", "compat"), NAMES, ids=IDS)
def test_a_bad_value_is_refused_under_either_name(
    verb: str, compat: CompatName, store: MemoryStore
) -> None:
    with pytest.raises(InvalidInput):
        store.search("tea", **{compat.name: "nonsense"})
    with pytest.raises(InvalidInput):
        perform(store, OPERATIONS[verb], {"query": "tea", compat.name: "nonsense"}, Grant())


@pytest.mark.parametrize(("verb", "compat"), NAMES, ids=IDS)
def test_rest_takes_the_name_with_the_schema_of_the_parameter(
    verb: str, compat: CompatName
) -> None:
    body = describe_api()["paths"][f"/{verb}"]["post"]["requestBody"]
    offered = body["content"]["application/json"]["schema"]["properties"]
    parameters = OPERATIONS[verb].parameters
    assert offered[compat.name]["description"] == compat.note
    if compat.means is not None:
        assert _values(parameters[compat.name].schema) == _values(parameters[compat.means].schema)


def _values(schema: Any) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name != "description"}


@pytest.mark.parametrize(("verb", "compat"), NAMES, ids=IDS)
def test_the_command_line_takes_the_flag(verb: str, compat: CompatName) -> None:
    command = byheart.get_command(click.Context(byheart), verb)
    assert command is not None
    [flag] = [each for each in command.params if compat.flag in each.opts]
    assert flag.name == (compat.means or compat.name)


@pytest.mark.parametrize(("verb", "compat"), NAMES, ids=IDS)
def test_mcp_takes_the_name_and_does_not_show_it(
    verb: str, compat: CompatName, store: MemoryStore
) -> None:
    tools = [each for each in make_definitions() if each["name"] == f"memory_{verb}"]
    assert len(tools) == 1
    assert compat.name not in tools[0]["inputSchema"]["properties"]
    store.save_many({"content": f"tea number {n}"} for n in range(4))
    asked = {"query": "tea", compat.name: str(VALUES[compat.means])}
    answer = call_tool(store, f"memory_{verb}", asked, Grant(), 8_000).structured
    assert answer["count"] == (2 if compat.means == "limit" else 4)
    assert answer["mode"] == ("fts" if compat.means == "mode" else "hybrid")


def test_mcp_answers_the_calls_that_the_seeds_show(store: MemoryStore) -> None:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        return call_tool(store, name, arguments, Grant(), 8_000).structured

    saved = call("memory_save", content="The build server is called athena.", source="chat")
    assert saved["status"] == "created"
    assert "count" not in call("memory_search", query="build server")
    found = call("memory_search", query="build server", limit=10, source="hybrid")
    assert (found["count"], found["results"][0]["source"]) == (1, "hybrid")
    assert found["results"][0]["snippet"]
    assert call("memory_search", query="build server", topK=5)["results"][0]["source"] == "chunk"
    call("memory_save", content="Ada leads the build team.", kind="fact")
    facts = call("memory_recall", query="build", type="fact", max_tokens=1000)
    assert [each["content"] for each in facts["details"]] == ["Ada leads the build team."]


@pytest.mark.parametrize(
    ("verb", "name", "means"),
    [(verb, *pair) for verb, fields in COMPAT_FIELDS.items() for pair in fields.items()],
)
def test_rest_describes_the_other_names_of_an_answers_fields(
    verb: str, name: str, means: str
) -> None:
    api = describe_api()
    answer = api["paths"][f"/{verb}"]["post"]["responses"]["200"]
    own, added = answer["content"]["application/json"]["schema"]["allOf"]
    noun = api["components"]["schemas"][own["$ref"].rpartition("/")[2]]
    assert added["required"] == [name]
    assert added["properties"][name]["type"] == noun["properties"][means]["type"]


def test_a_value_that_is_not_given_overrules_nothing() -> None:
    assert translate("search", {"limit": 5, "topK": None, "query": "tea"}) == {
        "limit": 5,
        "query": "tea",
    }
    assert translate("get", {"topK": 3}) == {"topK": 3}
