"""Render the OpenAPI document as a page for people, at /docs.

The page has no scripts: it loads nothing from elsewhere, and nothing in it can leak an API key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

from byheart.interfaces.rest.openapi import describe_api

PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
Schema = dict[str, Any]
_MEMORY_ID = "mem_01m7gvv9y8mrpfn4em86c8tmz6"
_IN_PATH = {"memory_id": _MEMORY_ID, "keep": _MEMORY_ID, "chunk_id": f"{_MEMORY_ID}%230"} | {
    "session_id": "chat-7"
}


def render_page() -> str:
    """Render the page."""
    document = describe_api()
    operations = [
        (method.upper(), path, each)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]
    tags = dict.fromkeys(tag for _, _, each in operations for tag in each["tags"])
    by_tag = {tag: [one for one in operations if tag in one[2]["tags"]] for tag in tags}
    style = files("byheart.interfaces.rest").joinpath("docs.css").read_text(encoding="utf-8")
    paragraphs = "".join(
        f"<p>{_inline(each)}</p>" for each in document["info"]["description"].split("\n\n")
    )
    sections = "".join(
        f"<h2>{escape(tag)}</h2>{''.join(_operation(*one) for one in each)}"
        for tag, each in by_tag.items()
    )
    nouns = "".join(
        _noun(name, each) for name, each in sorted(document["components"]["schemas"].items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Byheart {escape(document['info']['version'])}</title><style>{style}</style></head>"
        f"<body><nav>{''.join(_links(by_tag))}<h3>Nouns</h3><a href='#nouns'>all nouns</a>"
        "<h3>For programs</h3><a href='/openapi.json'>openapi.json</a></nav>"
        f"<main><h1>Byheart <small>{escape(document['info']['version'])}</small></h1>{paragraphs}"
        f"{sections}<h2 id='nouns'>Nouns</h2>{nouns}</main></body></html>"
    )


def _links(by_tag: dict[str, list[tuple[str, str, Schema]]]) -> Iterator[str]:
    for tag, operations in by_tag.items():
        yield f"<h3>{escape(tag)}</h3>"
        for method, path, each in operations:
            yield (f"<a href='#{escape(each['operationId'])}'>{_method(method)} {_path(path)}</a>")


def _method(method: str) -> str:
    return f"<b class='{method.lower()}'>{method}</b>"


def _path(path: str) -> str:
    return escape(path).replace("/", "/<wbr>")


def _inline(text: str) -> str:
    """Render text between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _operation(method: str, path: str, operation: Schema) -> str:
    name = escape(operation["operationId"])
    rows = "".join(
        _row(each["name"], each["schema"], each["description"], each["required"], each["in"])
        for each in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    rows += "".join(_body_rows(body.get("schema", {})))
    table = f"<table><tr><th>name<th>type<th>meaning</tr>{rows}</table>" if rows else ""
    answers = "".join(
        f"<li><code>{status}</code> {_answer(each)}"
        for status, each in operation["responses"].items()
        if "$ref" not in each
    )
    problems = ", ".join(
        f"<code>{status}</code>"
        for status, each in operation["responses"].items()
        if "$ref" in each
    )
    return (
        f"<section id='{name}'><h3>{_method(method)} <code>{_path(path)}</code></h3>"
        f"<p>{_inline(operation['summary'])}</p>"
        f"<pre>{escape(_curl(method, path, body.get('example'), operation))}</pre>"
        f"{table}<ul>{answers}</ul>{_example(operation)}"
        f"<p class='dim'>Problems: {problems}</p></section>"
    )


def _body_rows(schema: Schema) -> Iterator[str]:
    # A body may have several forms, the usual one first; the nouns' section lists a noun's fields.
    for form in schema.get("anyOf", [schema]):
        if "$ref" in form:
            yield f"<tr><td colspan='3'>the fields of {_type(form)}, or</tr>"
        for name, each in form.get("properties", {}).items():
            described = each.get("description", "")
            yield _row(name, each, described, name in form.get("required", ()), "body")


def _row(name: str, schema: Schema, meaning: str, required: bool, place: str) -> str:
    default = ""
    if "default" in schema:
        default = f" Default <code>{escape(json.dumps(schema['default']))}</code>."
    must = " <em>needed</em>" if required else ""
    where = " <em>in the path</em>" if place == "path" else ""
    return (
        f"<tr><td><code>{escape(name)}</code>{must}{where}<td>{_type(schema)}"
        f"<td>{_inline(meaning)}{default}</tr>"
    )


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#noun-{name}'>{name}</a>"
    for joined, sign in (("anyOf", " | "), ("allOf", " with ")):
        if joined in schema:
            return sign.join(dict.fromkeys(map(_type, schema[joined])))
    if "properties" in schema:
        return ", ".join(f"<code>{escape(name)}</code>" for name in schema["properties"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(json.dumps(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_type(schema['items'])}, …]"
    if schema.get("type") == "object" and "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return f"{{name: {_type(inner)}}}" if inner else "object"
    bounds = "–".join(
        str(schema[key]) for key in ("minimum", "maximum") if schema.get(key) is not None
    )
    return escape(f"{schema.get('type', 'anything')} {bounds}".strip())


def _answer(response: Schema) -> str:
    content: Schema = next(iter(response.get("content", {}).values()), {})
    return f"{escape(response['description'])} {_type(content.get('schema', {}))}"


def _example(operation: Schema) -> str:
    for response in operation["responses"].values():
        example = response.get("content", {}).get("application/json", {}).get("example")
        if example is not None:
            text = escape(json.dumps(example, indent=2, ensure_ascii=False))
            return f"<details><summary>An answer</summary><pre>{text}</pre></details>"
    return ""


def _curl(method: str, path: str, body: Any, operation: Schema) -> str:
    for name, value in _IN_PATH.items():
        path = path.replace(f"{{{name}}}", value)
    line = "curl" + (f" -X {method}" if method not in ("GET", "POST") else "")
    line += f" http://127.0.0.1:8765{path}"
    if operation.get("security") != []:
        line += ' \\\n  -H "Authorization: Bearer $TOKEN"'
    if body is not None:
        line += f" \\\n  --json '{json.dumps(body)}'"
    return line


def _noun(name: str, schema: Schema) -> str:
    rows = "".join(
        _row(field, each, each.get("description", ""), False, "")
        for field, each in schema.get("properties", {}).items()
    )
    return (
        f"<section id='noun-{escape(name)}'><h3>{escape(name)}</h3>"
        f"<p>{_inline(schema.get('description', ''))}</p>"
        f"<table><tr><th>field<th>type<th>meaning</tr>{rows}</table></section>"
    )
