"""Make the tools' definitions from the verbs: input schemas, output schemas and hints."""

from __future__ import annotations

import json
import re
from typing import Any

from byheart.interfaces.mcp.tool_texts import NULL_MEANS_CLEAR, TOOLS, ToolText
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


def make_definitions() -> list[Schema]:
    """Describe every tool in the form that the protocol carries."""
    return [_define(tool) for tool in TOOLS]


def _define(tool: ToolText) -> Schema:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _input(tool),
        "outputSchema": _output(tool),
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


def _property(tool: ToolText, parameter: Parameter) -> Schema:
    default = {} if parameter.default is None else {"default": parameter.default}
    schema = {**parameter.schema, **default}
    if tool.verb not in NULL_MEANS_CLEAR or not parameter.nullable:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _output(tool: ToolText) -> Schema:
    if tool.name in ("search", "fetch"):
        return _RESULTS if tool.name == "search" else _DOCUMENT
    defined: dict[str, Schema] = {}
    result = describe(OPERATIONS[tool.verb].result, defined)
    if "$ref" in result:
        whole = defined.pop(result["$ref"].rpartition("/")[2])
    else:
        whole = {"properties": {tool.verb: result}, "required": [tool.verb]}
    for name in tool.leaves_out:
        del whole["properties"][name]
        whole["required"].remove(name)
    for name in OPERATIONS[tool.verb].withheld:  # API keys do not see them; the owner does
        whole["required"].remove(name)
    defined = _used(whole, defined)
    definitions = {name: _lean(each) for name, each in defined.items()}
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
