"""Make the OpenAPI document from the routes, the verbs' signatures and the nouns' types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import byheart
from byheart.interfaces.operations import Parameter
from byheart.interfaces.operations.parameters import PARAMETERS, SPECIAL
from byheart.interfaces.operations.schemas import describe
from byheart.interfaces.rest.examples import ANSWERS, BODIES
from byheart.interfaces.rest.exports import EXPORT_PATH
from byheart.interfaces.rest.exports import MEDIA_TYPE as EXPORT_TYPE
from byheart.interfaces.rest.health import Health, Readiness
from byheart.interfaces.rest.problems import MEDIA_TYPE
from byheart.interfaces.rest.routes import ROUTES, RouteEntry
from byheart.model.compat_names import COMPAT_FIELDS

Schema = dict[str, Any]
_PLACE = "#/components/schemas/"
_INTRODUCTION = """\
Long-term memory for AI agents: save texts, get the right passages back.

Every request except `/health` needs an API key in the header `Authorization: Bearer KEY`. The
operator of the server creates API keys. A key gives access to one space, or to one session of it,
for reading only or for reading and writing. Errors are `application/problem+json` with a `hint`;
every answer has `X-Request-Id`. AI clients connect to `/mcp` (Model Context Protocol) with the same
keys."""
_PROBLEMS: Mapping[int, str] = {
    400: "The body is not JSON.",
    401: "There is no API key, or it is unknown, revoked or expired.",
    403: "The API key does not allow it, or the origin of the web page is not allowed.",
    404: "There is no such memory, or no such path.",
    408: "The client took too long to send the request.",
    409: "Another memory or a concurrent change prevents it.",
    413: "The body is too large.",
    415: "The body is not of the type application/json.",
    421: "The server does not accept this host name.",
    422: "A value is not allowed; nothing was written.",
    429: "The API key, or the address without one, sends too many requests.",
    500: "The store is damaged, or Byheart has a defect.",
    503: "The store is busy, or too many requests are waiting.",
    507: "The disk is full.",
}
_ALWAYS, _WITH_BODY = (401, 403, 404, 421, 422, 429, 500, 503), (400, 408, 413, 415)
_WHEN_WRITING = (409, 507)
_TAGS = {
    "search": "Finding",
    "recall": "Finding",
    "expand": "Finding",
    "sessions": "Conversations",
    **dict.fromkeys(
        ("session_stats", "resume", "promote", "forget_session", "restore_session"), "Conversations"
    ),
    "log": "Conversations",
    "transcript": "Conversations",
    "summarize": "Conversations",
    "context": "Conversations",
    "receipts": "Conversations",
    "receipt": "Conversations",
    "entities": "Listing",
    "list": "Listing",
    "brief": "Listing",
    "timeline": "Listing",
    "similar": "Finding",
    "status": "The store",
    "stats": "The store",
    "cleanup": "Upkeep",
    "dedupe": "Upkeep",
    "forget": "Upkeep",
    "rename_entity": "Upkeep",
    "merge_entities": "Upkeep",
}
# The schema name of a single item, for verbs whose body may also be a list of items.
_SEVERAL_OF = {"save": "NewMemory", "log": "NewTurn"}
_PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong, and what to do next.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "position": {"type": "integer", "description": "Of a raw query: where it is not valid."},
    },
    "required": ["type", "title", "status", "detail", "hint", "instance", "request_id"],
}


def describe_api() -> Schema:
    """Make the whole document."""
    nouns: dict[str, Schema] = {"Problem": _PROBLEM}
    paths: dict[str, Schema] = {}
    for entry in ROUTES:
        paths.setdefault(entry.path, {})[entry.method.lower()] = _operation(entry, nouns)
    paths[EXPORT_PATH] = _export()
    paths |= _about_itself(nouns)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Byheart", "version": byheart.__version__, "description": _INTRODUCTION},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": nouns,
            "responses": {str(status): _problem(text) for status, text in _PROBLEMS.items()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, created by the operator of the server.",
                }
            },
        },
    }


def _operation(entry: RouteEntry, nouns: dict[str, Schema]) -> Schema:
    verb = entry.operation
    described: Schema = {
        "operationId": _operation_id(entry),
        "summary": entry.summary or verb.summary,
        "tags": [_TAGS.get(verb.name, "Memories")],
        "parameters": [_in_path(verb.parameters[name]) for name in entry.in_path],
        "responses": {**_results(entry, nouns), **_problems(entry)},
    }
    if entry.has_body:
        described["requestBody"] = _body(entry, nouns)
    else:
        described["parameters"] += [_in_query(each) for each in entry.parameters.values()]
    return described


def _operation_id(entry: RouteEntry) -> str:
    """Name an operation after its verb; at further paths, after the method as well."""
    same = [each for each in ROUTES if each.operation.name == entry.operation.name]
    first = same[0] is entry
    return entry.operation.name if first else f"{entry.operation.name}_by_{entry.method.lower()}"


def _in_path(parameter: Parameter) -> Schema:
    # A path contains a single name, even if the verb also takes a list of names.
    schema = parameter.schema if "type" in parameter.schema else parameter.schema["anyOf"][0]
    described = {"description": parameter.schema["description"], **schema}
    return {
        "name": parameter.name,
        "in": "path",
        "required": True,
        "description": described.pop("description"),
        "schema": described,
    }


def _in_query(parameter: Parameter) -> Schema:
    schema = {**parameter.schema, **_default(parameter)}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": schema.pop("description"),
        "schema": schema,
    }


def _body(entry: RouteEntry, nouns: dict[str, Schema]) -> Schema:
    schema = body_schema(entry.parameters)
    if noun := _SEVERAL_OF.get(entry.operation.name):
        nouns[noun] = schema
        several = {
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"$ref": f"{_PLACE}{noun}"}, "minItems": 1},
            },
            "required": ["items"],
            "additionalProperties": False,
        }
        schema = {"anyOf": [{"$ref": f"{_PLACE}{noun}"}, several]}
    content: Schema = {"schema": schema}
    if (entry.method, entry.path) in BODIES:
        content["example"] = BODIES[entry.method, entry.path]
    required = any(each.required for each in entry.parameters.values())
    return {"required": required, "content": {"application/json": content}}


def body_schema(parameters: Mapping[str, Parameter]) -> Schema:
    """Describe a JSON object with these parameters as members."""
    return {
        "type": "object",
        "properties": {name: _property(each) for name, each in parameters.items()},
        "required": [name for name, each in parameters.items() if each.required],
        "additionalProperties": False,
    }


def _property(parameter: Parameter) -> Schema:
    schema = dict(parameter.schema)
    if parameter.nullable:
        description = schema.pop("description")
        inner = schema.pop("anyOf") if "anyOf" in schema else [schema]
        schema = {"anyOf": [*inner, {"type": "null"}], "description": description}
    return {**schema, **_default(parameter)}


def _default(parameter: Parameter) -> Schema:
    return {} if parameter.default is None else {"default": parameter.default}


def _results(entry: RouteEntry, nouns: dict[str, Schema]) -> Schema:
    verb = entry.operation
    schema = describe(verb.result, nouns, _PLACE)
    if verb.withheld:
        _leave_out(verb.withheld, nouns[verb.result.__name__])
    if others := COMPAT_FIELDS.get(verb.name):
        schema = {"allOf": [schema, _describe_compat_fields(others, nouns[verb.result.__name__])]}
    if verb.name in _SEVERAL_OF:
        several = {"type": "array", "items": schema}
        return {
            "200": _result(
                "It was there already; or what became of each of the items.",
                {"anyOf": [schema, several]},
            ),
            "201": _result("It was saved.", schema, ANSWERS.get((entry.method, entry.path)))
            | {
                "headers": {
                    "Location": {"description": "Where it is.", "schema": {"type": "string"}}
                }
            },
        }
    example = ANSWERS.get((entry.method, entry.path))
    return {"200": _result("What the verb answers.", schema, example)}


def _leave_out(withheld: tuple[str, ...], noun: Schema) -> None:
    """Remove the fields that no API key may see: every caller of REST has a key."""
    noun["properties"] = {
        name: each for name, each in noun["properties"].items() if name not in withheld
    }
    noun["required"] = list(noun["properties"])


def _describe_compat_fields(others: Mapping[str, str], noun: Schema) -> Schema:
    """Describe the other names that this interface adds for fields of an answer."""
    properties = {
        name: {**noun["properties"][field], "description": f"Another name of {field}."}
        for name, field in others.items()
    }
    return {"type": "object", "properties": properties, "required": list(others)}


def _result(description: str, schema: Schema, example: Any = None) -> Schema:
    content: Schema = {"schema": schema} | ({} if example is None else {"example": example})
    return {"description": description, "content": {"application/json": content}}


def _problems(entry: RouteEntry) -> Schema:
    statuses = [*_ALWAYS, *(_WITH_BODY if entry.has_body else ())]
    if entry.operation.needs == "write" or entry.operation.writes_if:
        statuses += _WHEN_WRITING
    return _references(*statuses)


def _references(*statuses: int) -> Schema:
    return {str(each): {"$ref": f"#/components/responses/{each}"} for each in sorted(statuses)}


def _problem(description: str) -> Schema:
    return {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_PLACE}Problem"}}},
    }


def _export() -> Schema:
    """Describe the route whose answer is a file."""
    flag = {"type": "boolean", "description": "Include vectors."}
    parameters = [
        Parameter("memory_id", SPECIAL["brief", "memory_id"], required=False, nullable=True),
        Parameter("vectors", flag, required=False, nullable=False, default=False),
        Parameter("space", PARAMETERS["space"], required=False, nullable=True),
    ]
    file = {"content": {EXPORT_TYPE: {"schema": {"type": "string"}}}}
    described: Schema = {
        "summary": "Export a space, or some memories of it, as a file that can be imported.",
        "tags": ["The store"],
        "responses": {"200": {"description": "The file.", **file}, **_references(*_ALWAYS, 507)},
    }
    body = {
        "schema": body_schema({each.name: each for each in parameters}),
        "example": {"memory_id": ["mem_01k2"]},
    }
    return {
        "get": {
            **described,
            "operationId": "export",
            "parameters": [_in_query(each) for each in parameters],
        },
        "post": {
            **described,
            "operationId": "export_by_post",
            "requestBody": {"required": False, "content": {"application/json": body}},
            "responses": {**described["responses"], **_references(*_WITH_BODY)},
        },
    }


def _about_itself(nouns: dict[str, Schema]) -> Schema:
    live = _result("It is.", describe(Health, nouns, _PLACE))
    readiness = describe(Readiness, nouns, _PLACE)
    text = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    page = {"content": {"text/html": {"schema": {"type": "string"}}}}
    document = _result("This document.", {"type": "object"})
    return {
        "/health": _get("health", "Say whether the server is alive.", {"200": live}, free=True),
        "/health/ready": _get(
            "ready",
            "Say whether the store answers, and whether something in it is missing.",
            {"200": _result("It does.", readiness), "503": _result("It does not.", readiness)},
            free=True,
        ),
        "/metrics": _get(
            "metrics",
            "Give figures in the text format of Prometheus.",
            {
                "200": {"description": "The figures.", **text},
                **_references(401, 403, 421, 429, 500, 503),
            },
        ),
        "/openapi.json": _get("openapi", "Give this document.", {"200": document}, free=True),
        "/docs": _get(
            "docs",
            "Show this document as a page.",
            {"200": {"description": "The page.", **page}},
            free=True,
        ),
    }


def _get(name: str, summary: str, responses: Schema, *, free: bool = False) -> Schema:
    described: Schema = {
        "operationId": name,
        "summary": summary,
        "tags": ["The server"],
        "responses": {**responses, **_references(421, 429)},
    }
    if free:
        described["security"] = []
    return {"get": described}
