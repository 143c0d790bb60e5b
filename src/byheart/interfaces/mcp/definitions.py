"""Make the tools' definitions from the verbs: input schemas, output schemas and hints."""

from __future__ import annotations

import json
import re
from typing import Any

from byheart.interfaces.mcp.tool_texts import (
    NULL_MEANS_CLEAR,
    OTHER_ANSWERS,
    PLAIN_NAMES,
    TOOLS,
    ToolProfile,
    ToolText,
)
from byheart.interfaces.operations import OPERATIONS, Parameter
from byheart.interfaces.operations.schemas import describe

Schema = dict[str, Any]

# The fields that this interface adds to answers that were cut.
_READ_ON: Schema = {
    "truncated": {"type": "boolean", "description": "Whether something was left out for length."},
    "read_on": {"type": "object", "description": "The tool and arguments that give the rest."},
}
_DOCUMENT: Schema = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("id", "title", "text", "url")}
    | {"metadata": {"type": "object"}},
    "required": ["id", "title", "text", "url"],
}
_RESULTS: Schema = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("id", "title", "url")},
                "required": ["id", "title", "url"],
            },
        }
    },
    "required": ["results"],
}


def make_definitions(profile: ToolProfile = "core") -> list[Schema]:
    """Describe every tool in the form that the protocol carries."""
    return [_define(tool, profile) for tool in TOOLS]


def _define(tool: ToolText, profile: ToolProfile) -> Schema:
    whole = profile == "full"
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _input(tool) if whole else _core_input(tool),
        "outputSchema": _output(tool) if whole else _core_output(tool),
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.reads_only,
            "destructiveHint": tool.destroys,
            "idempotentHint": tool.repeatable,
            "openWorldHint": False,
        },
    }


def _input(tool: ToolText) -> Schema:
    offered = OPERATIONS[tool.verb].parameters
    properties = {
        name: dict(tool.own[name]) if name in tool.own else _property(tool, offered[name])
        for name in tool.parameters
    }
    required = [
        name
        for name in tool.parameters
        if name in tool.required or (name not in tool.own and offered[name].required)
    ]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _core_input(tool: ToolText) -> Schema:
    """Describe the usual arguments: no limits, no alternatives, the filters as one object.

    The server checks every value and explains what is wrong. Without alternatives, patterns and
    free objects, the schemas suit the strict modes of OpenAI and Gemini too.
    """
    whole = _input(tool)
    properties = whole["properties"]
    shown = {name: _slim(name, properties[name]) for name in tool.core or properties}
    if tool.core_filters:
        shown["filters"] = {
            "type": "object",
            "description": "Only memories with all of these. Times in ISO 8601.",
            "properties": {name: _slim(name, properties[name]) for name in tool.core_filters},
        }
    required = {"required": whole["required"]} if whole["required"] else {}
    return {"type": "object", "properties": shown, **required}


def _slim(name: str, schema: Schema) -> Schema:
    """Keep the type, the choices and the first sentence about an argument."""
    kinds = [each for each in schema.get("anyOf", [schema]) if each["type"] != "null"]
    kind = kinds[-1]["type"]  # of one value or a list of values, the list can say both
    if isinstance(kind, list):
        kind = next(each for each in kind if each != "null")
    if kind == "object":  # strict modes refuse a free object, and take a text of JSON
        return {"type": "string", "description": "A JSON object."}
    slim = {"type": kind}
    if name not in PLAIN_NAMES:
        slim["description"] = schema["description"].partition(". ")[0].removesuffix(".") + "."
    if kind == "array":
        slim["items"] = {"type": "string"}
    if "enum" in schema:
        slim["enum"] = schema["enum"]
    return slim


def _core_output(tool: ToolText) -> Schema:
    """Name the fields of an answer with their types; a model reads the answer itself."""
    properties = _output(tool)["properties"]
    kinds = {name: _kind_only(each) for name, each in properties.items() if name not in _READ_ON}
    return {"type": "object", "properties": kinds}


def _kind_only(schema: Schema) -> Schema:
    if "anyOf" in schema:
        schema = next(each for each in schema["anyOf"] if each.get("type") != "null")
    if "$ref" in schema:
        return {"type": "object"}
    return {"type": schema.get("type", "string")}  # choices are texts


def _property(tool: ToolText, parameter: Parameter) -> Schema:
    default = {} if parameter.default is None else {"default": parameter.default}
    schema = {**parameter.schema, **default}
    if tool.verb not in NULL_MEANS_CLEAR or not parameter.nullable:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _output(tool: ToolText) -> Schema:
    # An argument of some tools asks for the answer of another verb, which has other fields.
    return describe_answer(tool) | ({"required": []} if tool.name in OTHER_ANSWERS else {})


def describe_answer(tool: ToolText) -> Schema:
    """Describe the answer of a tool's own verb."""
    if tool.name in ("search", "fetch"):
        return _RESULTS if tool.name == "search" else _DOCUMENT
    defined: dict[str, Schema] = {}
    result = describe(OPERATIONS[tool.verb].result, defined)
    if "$ref" in result:
        whole = defined.pop(result["$ref"].rpartition("/")[2])
    else:
        whole = {"properties": {tool.verb: result}, "required": [tool.verb]}
    for name in (*tool.leaves_out, *tool.only_in_text):
        del whole["properties"][name]
        whole["required"].remove(name)
    for name in OPERATIONS[tool.verb].withheld:  # API keys do not see them; the owner does
        whole["required"].remove(name)
    defined = _used(whole, defined)
    definitions = {name: _lean(each) for name, each in defined.items()}
    if tool.verb == "search":
        for hit in definitions.values():
            # A caller that names the mode `source` gets the mode back in this field.
            hit["properties"].pop("source", None)
            hit["required"] = [name for name in hit["required"] if name != "source"]
    own = {"start_char": {"type": "integer"}} if tool.verb == "get" else {}
    return {
        "type": "object",
        "properties": whole["properties"] | own | _READ_ON,
        "required": _always_there(whole),
        **({"$defs": definitions} if definitions else {}),
    }


def _used(whole: Schema, defined: dict[str, Schema]) -> dict[str, Schema]:
    """Keep the definitions that something refers to."""
    used: dict[str, Schema] = {}
    looked_at = [json.dumps(whole["properties"])]
    while looked_at:
        for name in re.findall(r"#/\$defs/(\w+)", looked_at.pop()):
            if name not in used:
                used[name] = defined[name]
                looked_at.append(json.dumps(defined[name]))
    return {name: each for name, each in defined.items() if name in used}


def _lean(noun: Schema) -> Schema:
    return {
        "type": "object",
        "properties": noun["properties"],
        "required": _always_there(noun),
    }


def _always_there(noun: Schema) -> list[str]:
    """List the fields that are always present: null fields are left out of answers."""
    return [name for name in noun["required"] if not _nullable(noun["properties"][name])]


def _nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
