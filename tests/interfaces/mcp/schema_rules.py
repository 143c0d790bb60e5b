"""The rules that three consumers of tool schemas have, as their own sources state them.

- OpenAI, strict functions (platform.openai.com/docs/guides/structured-outputs): every object lists
  its properties and allows no others, and every property is required. SDKs add both to a schema
  (`ensure_strict_json_schema`), which they cannot do for a free object.
- Gemini (ai.google.dev/api/caching#Schema): a subset of OpenAPI 3.0 with one type for each value.
- VS Code (`toolSchemaNormalizer.ts` of Copilot Chat): it refuses a tool, or takes keywords away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from jsonschema import Draft7Validator

Schema = Mapping[str, Any]
_TYPES = {"object", "array", "string", "number", "integer", "boolean"}
_STRICT_KEYWORDS = {
    *("type", "description", "title", "properties", "required", "additionalProperties", "items"),
    *("enum", "const", "anyOf", "$ref", "$defs", "pattern", "format", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}
_STRICT_DEPTH, _STRICT_PROPERTIES, _STRICT_ENUM_VALUES = 10, 5_000, 1_000
_GEMINI_KEYWORDS = {
    *("type", "format", "title", "description", "nullable", "enum", "items", "properties"),
    *("required", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
}
_VSCODE_DROPPED = {
    *("minLength", "maxLength", "pattern", "default", "format", "minimum", "maximum", "multipleOf"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "contains"),
    *("minItems", "maxItems", "uniqueItems"),
}
_VSCODE_DESCRIPTION_CHARS = 1024


def nodes(schema: Schema, path: str = "$", depth: int = 1) -> Iterator[tuple[str, int, Schema]]:
    """Walk through a schema: path, depth and node."""
    yield path, depth, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}", depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"], f"{path}[]", depth + 1)
    for each in schema.get("anyOf", ()):
        yield from nodes(each, f"{path}|", depth)


def make_strict(schema: Schema) -> dict[str, Any]:
    """Make a schema strict as SDKs do: every property required, and no others allowed."""
    strict: dict[str, Any] = deepcopy(dict(schema))
    for _, _, node in nodes(strict):
        if node.get("type") == "object":
            assert isinstance(node, dict)
            node.setdefault("additionalProperties", False)
            node["required"] = list(node.get("properties", {}))
    return strict


def strict_problems(schema: Schema) -> list[str]:
    """List what OpenAI's strict mode refuses in a schema that an SDK has made strict."""
    strict = make_strict(schema)
    found = []
    walked = list(nodes(strict))
    for path, depth, node in walked:
        if node.get("additionalProperties", False) is not False:
            found.append(f"{path}: a free object")
        if node.get("type") == "object" and depth > 1 and not node.get("properties"):
            found.append(f"{path}: an object that can only be empty")
        found += [f"{path}: {each}" for each in node.keys() - _STRICT_KEYWORDS]
        if depth > _STRICT_DEPTH:
            found.append(f"{path}: nested too deeply")
    if strict.get("type") != "object" or "anyOf" in strict:
        found.append("$: the root must be an object")
    if sum(len(node.get("properties", ())) for _, _, node in walked) > _STRICT_PROPERTIES:
        found.append("$: too many properties")
    if sum(len(node.get("enum", ())) for _, _, node in walked) > _STRICT_ENUM_VALUES:
        found.append("$: too many choices")
    return found


def gemini_problems(name: str, schema: Schema) -> list[str]:
    """List what Gemini's function declarations refuse."""
    found = []
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}", name):
        found.append(f"name: {name}")
    for path, _, node in nodes(schema):
        kind = node.get("type")
        if kind not in _TYPES:
            found.append(f"{path}: type {kind}")
        found += [f"{path}: {each}" for each in node.keys() - _GEMINI_KEYWORDS]
        if kind == "array" and "items" not in node:
            found.append(f"{path}: an array without items")
        if kind == "object" and path != "$" and not node.get("properties"):
            found.append(f"{path}: an object without properties")
        if "enum" in node and (kind != "string" or "" in node["enum"]):
            found.append(f"{path}: choices that are not texts")
        found += [
            f"{path}: {each} is required and not described"
            for each in set(node.get("required", ())) - set(node.get("properties", ()))
        ]
    return found


def vscode_problems(definition: Mapping[str, Any]) -> list[str]:
    """List why VS Code would refuse a tool."""
    schema = definition["inputSchema"]
    found = [
        error.message for error in Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(schema)
    ]
    if not re.fullmatch(r"[a-z0-9_-]{1,64}", definition["name"]):
        found.append(f"name: {definition['name']}")
    if not definition["description"]:
        found.append("no description")
    if schema.get("type") != "object" or "properties" not in schema:
        found.append("$: the root must be an object with properties")
    found += [f"$: {each}" for each in ("anyOf", "oneOf", "allOf", "not", "if") if each in schema]
    for path, _, node in nodes(schema):
        if node.get("type") == "array" and not node.get("items"):
            found.append(f"{path}: an array without items")
        found += [
            f"{path}: {each} is required and not described"
            for each in set(node.get("required", ())) - set(node.get("properties", ()))
        ]
    return found


def vscode_changes(definition: Mapping[str, Any]) -> list[str]:
    """List what VS Code takes out of a tool's schema for models of OpenAI."""
    found = []
    for path, _, node in nodes(definition["inputSchema"]):
        found += [f"{path}: {each}" for each in node.keys() & _VSCODE_DROPPED]
        if len(node.get("description", "")) > _VSCODE_DESCRIPTION_CHARS:
            found.append(f"{path}: a long description")
    if len(definition["description"]) > _VSCODE_DESCRIPTION_CHARS:
        found.append("a long description")
    return found
