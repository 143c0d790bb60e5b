"""Serve what the conformance suite asks for, over Byheart's own transport and guards.

The suite expects tools, resources and prompts of fixed names. Run it with Node 22 or newer:

    python -m tests.interfaces.mcp.conformance.fixture_server 8766
    npx @modelcontextprotocol/conformance server --url http://127.0.0.1:8766/mcp

With the path of a store as a second argument, it serves that store as `byheart serve` does, with
every guard; only the API key, which the suite cannot send, is added to each request.
"""

from __future__ import annotations

import base64
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import byheart
from byheart.interfaces.mcp.http import PATH, HttpTransport, McpOverHttp
from byheart.interfaces.operations import Grant
from byheart.interfaces.rest.app import create_app
from byheart.interfaces.rest.guard import AddressGuard
from byheart.interfaces.rest.work import Work
from byheart.settings import Settings

IMAGE = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
).decode()
AUDIO = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
)
SOUND = AUDIO.decode()
EMPTY = {"type": "object", "properties": {}}
TOOLS = (
    *("test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource"),
    *("test_multiple_content_types", "test_tool_with_logging", "test_tool_with_progress"),
    *("test_error_handling",),
)
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


async def list_tools(_context: Any, _params: object) -> types.ListToolsResult:
    tools = [types.Tool(name=each, description=each, input_schema=EMPTY) for each in TOOLS]
    tools.append(
        types.Tool(
            name="json_schema_2020_12_tool", description="Schemas", input_schema=SCHEMA_2020_12
        )
    )
    return types.ListToolsResult(tools=tools)


def embedded() -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(
            uri="test://embedded-resource", mime_type="text/plain", text="An embedded resource."
        )
    )


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(text="This is a simple text response for testing.")
    image = types.ImageContent(data=IMAGE, mime_type="image/png")
    audio = types.AudioContent(data=SOUND, mime_type="audio/wav")
    content: dict[str, list[Any]] = {
        "test_simple_text": [text],
        "test_image_content": [image],
        "test_audio_content": [audio],
        "test_embedded_resource": [embedded()],
        "test_multiple_content_types": [text, image, embedded()],
    }
    if params.name == "test_error_handling":
        said = types.TextContent(text="This tool intentionally returns an error for testing")
        return types.CallToolResult(content=[said], is_error=True)
    if params.name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await context.session.report_progress(done, 100)
            await anyio.sleep(0.05)
    if params.name == "test_tool_with_logging":
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.session.send_log_message("info", words, None, context.request_id)
            await anyio.sleep(0.05)
    return types.CallToolResult(content=content.get(params.name, [text]))


RESOURCES = {"test://static-text": "text/plain", "test://static-binary": "image/png"}


async def list_resources(_context: Any, _params: object) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri, description=uri, mime_type=kind)
            for uri, kind in RESOURCES.items()
        ]
    )


async def list_templates(_context: Any, _params: object) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(name="data", uri_template="test://template/{id}/data")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    _context: Any, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=IMAGE)
        return types.ReadResourceResult(contents=[blob])
    if uri.startswith("test://template/"):
        number = uri.split("/")[3]
        words = f'{{"id": "{number}", "templateTest": true, "data": "Data for ID: {number}"}}'
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
        return types.ReadResourceResult(contents=[found])
    if uri != "test://static-text":
        raise MCPError(types.INVALID_PARAMS, f"there is nothing at {uri}")
    words = "This is the content of the static text resource."
    found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    return types.ReadResourceResult(contents=[found])


async def do_nothing(_context: Any, _params: object) -> types.EmptyResult:
    return types.EmptyResult()


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_prompts(_context: Any, _params: object) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=name,
                arguments=[
                    types.PromptArgument(name=each, description=each, required=True)
                    for each in arguments
                ],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(_context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    text: Any = types.TextContent(text="This is a simple prompt for testing.")
    if params.name == "test_prompt_with_arguments":
        words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        text = types.TextContent(text=words)
    parts: list[Any] = [text]
    if params.name == "test_prompt_with_embedded_resource":
        resource = types.TextResourceContents(
            uri=given["resourceUri"], mime_type="text/plain", text="An embedded resource."
        )
        parts = [types.EmbeddedResource(resource=resource), text]
    if params.name == "test_prompt_with_image":
        parts = [types.ImageContent(data=IMAGE, mime_type="image/png"), text]
    messages = [types.PromptMessage(role="user", content=each) for each in parts]
    return types.GetPromptResult(messages=messages)


async def complete(_context: Any, _params: object) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park"], total=2))


def make_server() -> Server[Any]:
    server: Server[Any] = Server(
        "fixture",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    for method, kind in (
        ("logging/setLevel", types.SetLevelRequestParams),
        ("resources/subscribe", types.SubscribeRequestParams),
        ("resources/unsubscribe", types.UnsubscribeRequestParams),
    ):
        server.add_request_handler(method, kind, do_nothing)
    return server


def make_app() -> ASGIApp:
    transport = HttpTransport(make_server(), 1_000_000)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["grant"] = Grant()
        await transport(scope, receive, send)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with transport.run():
            yield

    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await serve(scope, receive, send)

    app = Starlette(routes=[Route(PATH, Endpoint(), methods=["POST"])], lifespan=lifespan)
    return AddressGuard(app, Settings())


def make_real_app(path: str) -> ASGIApp:
    """Serve a store, and send its API key with every request."""
    settings = Settings(embedding_provider="hash")
    store = byheart.open(path)
    secret = store.api_keys.create(f"conformance-{uuid.uuid4().hex}").secret
    work = Work(settings)
    agents = McpOverHttp(store, settings, work)
    app = create_app(store, settings, mounts=[agents.route], lifespan=agents.lifespan, work=work)

    async def with_key(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            key = (b"authorization", f"Bearer {secret}".encode())
            scope = {**scope, "headers": [*scope["headers"], key]}
        await app(scope, receive, send)

    return with_key


if __name__ == "__main__":
    made = make_real_app(sys.argv[2]) if len(sys.argv) > 2 else make_app()
    uvicorn.run(made, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
