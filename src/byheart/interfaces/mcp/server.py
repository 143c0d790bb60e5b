"""Answer the protocol's requests from the store, in worker threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

import byheart
from byheart.errors import ByheartError, StoreError, spell_hint
from byheart.interfaces.mcp import prompts
from byheart.interfaces.mcp.call_progress import CallProgress
from byheart.interfaces.mcp.client_log import ClientLog
from byheart.interfaces.mcp.lazy_store import LazyStore
from byheart.interfaces.mcp.subscriptions import ConnectionSubscriptions, Subscriptions
from byheart.interfaces.mcp.tool_texts import BY_NAME, INSTRUCTIONS, ToolProfile, load_definitions

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from byheart.interfaces.operations import Grant
    from byheart.model import Access
    from byheart.store import MemoryStore

    Context = ServerRequestContext[Any, Any]
    GrantOf = Callable[[Context], Grant]

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class Run(Protocol):
    """Run work in threads: reads and writes separately, with a limit for each."""

    async def __call__(
        self, lane: Access, task: Callable[[], Result], context: Context, /
    ) -> Result:
        """Run a task in a thread; raise a `ByheartError` if no thread can take it."""


def make_server(
    store: LazyStore,
    grant_of: GrantOf,
    run: Run,
    profile_of: Callable[[], ToolProfile],
    subscriptions: Subscriptions,
    client_log: ClientLog | None = None,
) -> Server[Any]:
    """Make a server for a store; `grant_of` returns what the caller of a request may do.

    `profile_of` is asked when a client lists the tools: reading the settings takes time. A server
    of one connection has a `client_log`, and `ConnectionSubscriptions`.
    """
    handlers = _Handlers(store, grant_of, run, profile_of, client_log)
    server: Server[Any] = Server(
        "byheart",
        version=byheart.__version__,
        title="Byheart memory",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
        on_subscriptions_listen=subscriptions.listen,
    )
    if isinstance(subscriptions, ConnectionSubscriptions):
        server.add_request_handler(
            "resources/subscribe", types.SubscribeRequestParams, subscriptions.subscribe
        )
        server.add_request_handler(
            "resources/unsubscribe", types.UnsubscribeRequestParams, subscriptions.unsubscribe
        )
    if client_log is not None:
        server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, client_log.set_level
        )
    return server


class _Handlers:
    """Answer each kind of request; the first request that needs the engine imports it."""

    def __init__(
        self,
        store: LazyStore,
        grant_of: GrantOf,
        run: Run,
        profile_of: Callable[[], ToolProfile],
        client_log: ClientLog | None,
    ) -> None:
        self._client_log = client_log
        self._store = store
        self._grant_of = grant_of
        self._run = run
        self._profile_of = profile_of

    @cached_property
    def _tools(self) -> list[types.Tool]:
        try:
            profile = self._profile_of()
        except ByheartError:  # invalid settings: the first call of a tool reports them
            profile = "core"
        return [types.Tool.model_validate(each) for each in load_definitions(profile)]

    async def list_tools(self, _context: Context, _params: object) -> types.ListToolsResult:
        """List the tools, and open the store: a client that lists tools will call one."""
        self._store.prepare_in_background()
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; an error becomes an answer that describes it."""
        if params.name not in BY_NAME:
            raise MCPError(
                types.INVALID_PARAMS,
                f"there is no tool {params.name!r}; there are: {', '.join(BY_NAME)}",
            )
        lane: Access = "read" if BY_NAME[params.name].reads_only else "write"
        progress = CallProgress(context, asyncio.get_running_loop())
        task = partial(self._call, context, params, progress)
        if self._client_log is not None:
            task = partial(self._client_log.during, context, asyncio.get_running_loop(), task)
        try:
            return await self._run(lane, task, context)
        except ByheartError as error:
            return _failure(self._told(error, context))
        except asyncio.CancelledError:
            progress.cancel()
            raise

    def _call(
        self, context: Context, params: types.CallToolRequestParams, progress: CallProgress
    ) -> types.CallToolResult:
        name, arguments = params.name, params.arguments or {}
        begun = time.monotonic()
        try:
            from byheart.interfaces.mcp.calling import call_tool

            store, settings = self._store.get()
            grant = self._grant_of(context)
            answer = call_tool(store, name, arguments, grant, settings.mcp_max_tokens, progress)
        except ByheartError as error:
            return _failure(self._told(error, context))
        except Exception as error:  # noqa: BLE001 (the outermost layer)
            _log.exception("%s failed", name)
            return _failure(f"something unexpected went wrong: {type(error).__name__}: {error}")
        _log.debug("%s took %.0f ms", name, (time.monotonic() - begun) * 1000)
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)], structured_content=answer.structured
        )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the latest sessions, and all memories a page at a time."""

        def read(store: MemoryStore, grant: Grant) -> types.ListResourcesResult:
            from byheart.interfaces.mcp.resources import list_resources

            return list_resources(store, grant, params.cursor if params else None)

        return await self._reading(read, context)

    async def list_resource_templates(
        self, _context: Context, _params: object
    ) -> types.ListResourceTemplatesResult:
        """List the address templates of memories and sessions."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name="memory",
                    title="A memory",
                    uri_template="memory://{memory_id}",
                    description="The text of one memory, exactly as it was saved.",
                    mime_type="text/markdown",
                ),
                types.ResourceTemplate(
                    name="session",
                    title="A session",
                    uri_template="memory://sessions/{session_id}",
                    description="What one session saved, the latest first.",
                    mime_type="text/markdown",
                ),
                types.ResourceTemplate(
                    name="kind",
                    title="Memories of a kind",
                    uri_template="memory://kinds/{kind}",
                    description="The latest memories of one kind.",
                    mime_type="text/markdown",
                ),
                types.ResourceTemplate(
                    name="tag",
                    title="Memories with a tag",
                    uri_template="memory://tags/{tag}",
                    description="The latest memories with one tag.",
                    mime_type="text/markdown",
                ),
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read a memory or a session."""

        def read(store: MemoryStore, grant: Grant) -> types.ReadResourceResult:
            from byheart.interfaces.mcp.resources import read_resource

            return read_resource(store, grant, str(params.uri))

        return await self._reading(read, context)

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Complete an argument of a prompt or of an address."""

        def read(store: MemoryStore, grant: Grant) -> types.CompleteResult:
            from byheart.interfaces.mcp.completion import complete

            return complete(store, grant, params.argument)

        return await self._reading(read, context)

    async def list_prompts(self, _context: Context, _params: object) -> types.ListPromptsResult:
        """List the prompts."""
        return types.ListPromptsResult(prompts=list(prompts.PROMPTS.values()))

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Fill in a prompt."""
        if params.name not in prompts.PROMPTS:
            raise MCPError(
                types.INVALID_PARAMS,
                f"there is no prompt {params.name!r}; there are: {', '.join(prompts.PROMPTS)}",
            )

        def read(store: MemoryStore, grant: Grant) -> types.GetPromptResult:
            return prompts.fill(store, grant, params.name, params.arguments or {})

        return await self._reading(read, context)

    async def _reading(
        self, read: Callable[[MemoryStore, Grant], Result], context: Context
    ) -> Result:
        """Read in a worker thread; for these requests, an error is an error of the protocol."""

        def run() -> Result:
            return read(self._store.get().store, self._grant_of(context))

        try:
            return await self._run("read", run, context)
        except ByheartError as error:
            raise MCPError(types.INVALID_PARAMS, self._told(error, context)) from None

    def _told(self, error: ByheartError, context: Context) -> str:
        """Describe an error with its hint; name tools for what it proposes."""
        # Imported here, because it imports the engine, and most sessions have no error.
        from byheart.interfaces.mcp.hints import spell_publicly, spell_tool

        is_owner = self._grant_of(context).space is None
        if isinstance(error, StoreError) and not is_owner:
            _log.error("%s: %s", type(error).__name__, error)
        spelling = spell_tool if is_owner else spell_publicly
        message, hint = (spell_hint(text, spelling) for text in (error.message, error.hint))
        return f"{message}\nHint: {hint}" if hint else message


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
