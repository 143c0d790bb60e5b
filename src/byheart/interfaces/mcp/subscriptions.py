"""Tell clients when a resource that they subscribed to changes, whoever changed it.

A client of 2026-07-28 sends `subscriptions/listen`, whose answer is a stream of events, over stdio
and HTTP. An earlier client sends `resources/subscribe`, over stdio only: over HTTP every request
stands by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from byheart.errors import ByheartError
from byheart.interfaces.mcp.lazy_store import LazyStore

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from byheart.interfaces.operations import Grant
    from byheart.model import Changes

    Context = ServerRequestContext[Any, Any]

_LOOK_SECONDS = 0.4
_AFTER_TROUBLE_SECONDS = 5.0
_MOST_STREAMS, _MOST_URIS = 128, 1_000
_log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Update(NamedTuple):
    """Say what changed: resources that were subscribed to, and whether the list of all did."""

    uris: list[str]
    of_list: bool


class Subscriptions:
    """Follow the store for the clients that want to know."""

    def __init__(self, store: LazyStore, grant_of: Callable[[Context], Grant]) -> None:
        self._store = store
        self._grant_of = grant_of
        # A thread of its own: looking for changes waits for no search, and no search for it.
        self._thread = anyio.CapacityLimiter(1)
        self._streams: set[anyio.CancelScope] = set()
        self._closed = False

    def close(self) -> None:
        """End all streams, because the server stops; clients listen again at the next one."""
        self._closed = True
        for each in list(self._streams):
            each.cancel()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen`: acknowledge, then tell changes until the client leaves."""
        asked = params.notifications
        uris = list(dict.fromkeys(asked.resource_subscriptions or ()))
        if len(self._streams) >= _MOST_STREAMS or self._closed:
            raise MCPError(types.INTERNAL_ERROR, "too many clients listen; try again later")
        grant = self._grant_of(context)
        await self._check(uris, grant)
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        honored = types.SubscriptionFilter(
            resources_list_changed=asked.resources_list_changed or None,
            resource_subscriptions=uris or None,
        )

        async def send(notification: types.ServerNotification) -> None:
            await context.session.send_notification(notification, context.request_id)

        acknowledged = types.SubscriptionsAcknowledgedNotificationParams(
            notifications=honored, _meta=meta
        )

        async def tell(update: Update) -> None:
            for uri in update.uris:
                told = types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
                await send(types.ResourceUpdatedNotification(params=told))
            if update.of_list and asked.resources_list_changed:
                about = types.NotificationParams(_meta=meta)
                await send(types.ResourceListChangedNotification(params=about))

        begin = await self._mark(grant)
        await send(types.SubscriptionsAcknowledgedNotification(params=acknowledged))
        with anyio.CancelScope() as scope:
            self._streams.add(scope)
            try:
                await self._follow(grant, begin, lambda: uris, tell)
            finally:
                self._streams.discard(scope)
        return types.SubscriptionsListenResult(_meta=meta)

    async def _check(self, uris: list[str], grant: Grant) -> None:
        """Refuse addresses that the caller cannot read."""
        from byheart.interfaces.mcp.resources import read_resource

        if len(uris) > _MOST_URIS:
            raise MCPError(types.INVALID_PARAMS, f"subscribe to {_MOST_URIS:,} resources at most")

        def read() -> None:
            store = self._store.get().store
            for each in uris:
                read_resource(store, grant, each)

        try:
            await self._in_thread(read)
        except ByheartError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from None

    async def _mark(self, grant: Grant) -> str:
        return (await self._in_thread(lambda: self._changes(grant, None))).mark

    async def _follow(
        self,
        grant: Grant,
        mark: str,
        wanted: Callable[[], list[str]],
        tell: Callable[[Update], Awaitable[None]],
    ) -> None:
        gone: set[str] = set()
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            try:
                found = await self._in_thread(lambda since=mark: self._changes(grant, since))  # type: ignore[misc]
                if found.mark == mark:
                    continue
                missing = await self._in_thread(lambda: self._missing(grant, wanted()))
            except ByheartError as error:
                _log.info("changes could not be read: %s", error)
                await anyio.sleep(_AFTER_TROUBLE_SECONDS)
                continue
            mark = found.mark
            update = _select(found, wanted(), missing - gone, grant)
            gone = missing
            if update.uris or update.of_list:
                await tell(update)

    def _changes(self, grant: Grant, since: str | None) -> Changes:
        return self._store.get().store.views.changes(since, space=grant.space)

    def _missing(self, grant: Grant, uris: list[str]) -> set[str]:
        """Return the addresses of memories that were erased: they have no row that changes."""
        from byheart.interfaces.mcp.resources import memory_at, names_one_memory

        by_id = {memory_at(each): each for each in uris if names_one_memory(each)}
        if not by_id:
            return set()
        briefs = self._store.get().store.views.brief(list(by_id), space=grant.space)
        return {by_id[each] for each in briefs.missing}

    async def _in_thread(self, task: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(task, limiter=self._thread, abandon_on_cancel=True)


class ConnectionSubscriptions(Subscriptions):
    """Serve `resources/subscribe` too, for the one client of a connection."""

    def __init__(
        self, store: LazyStore, grant_of: Callable[[Context], Grant], tasks: anyio.abc.TaskGroup
    ) -> None:
        super().__init__(store, grant_of)
        self._tasks = tasks
        self._uris: dict[str, None] = {}
        self._following = False

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Begin to tell when a resource changes."""
        uri = str(params.uri)
        grant = self._grant_of(context)
        await self._check([*self._uris, uri][-_MOST_URIS - 1 :], grant)
        if not self._following:
            self._following = True
            session = context.session

            async def tell(update: Update) -> None:
                for each in update.uris:
                    await session.send_resource_updated(each)

            begin = await self._mark(grant)
            self._tasks.start_soon(self._follow, grant, begin, lambda: list(self._uris), tell)
        self._uris[uri] = None
        return types.EmptyResult()

    async def unsubscribe(
        self, _context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell no more about a resource."""
        self._uris.pop(str(params.uri), None)
        return types.EmptyResult()


def _select(found: Changes, wanted: list[str], erased: set[str], grant: Grant) -> Update:
    """Choose what a client is told, of all that changed."""
    from byheart.interfaces.mcp.resources import uris_of_change

    visible = [
        each
        for each in found.memories
        if grant.session_id is None or each.session_id in (None, grant.session_id)
    ]
    touched = {uri for each in visible for uri in uris_of_change(each)} | erased
    # If there were too many changes to list, each resource may be among them.
    # A change does not say which tags it touched.
    uris = [
        each
        for each in wanted
        if found.more or each in touched or (visible and each.startswith("memory://tags/"))
    ]
    of_list = any(each.operation in ("create", "forget", "restore") for each in visible)
    return Update(uris, of_list or found.more or bool(erased))
