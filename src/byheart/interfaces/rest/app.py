"""Build the app from the layers that every request passes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from typing import Any, TextIO

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from byheart.errors import ByheartError
from byheart.interfaces.operations import OPERATIONS, Grant, carry_out
from byheart.interfaces.rest import health, metrics
from byheart.interfaces.rest.docs_page import PAGE_POLICY, render_page
from byheart.interfaces.rest.endpoints import Desk, write_json
from byheart.interfaces.rest.exports import EXPORT_PATH, Exports
from byheart.interfaces.rest.files import FilesFolder
from byheart.interfaces.rest.guard import AddressGuard, ApiKeyGuard
from byheart.interfaces.rest.hints import spell_request
from byheart.interfaces.rest.journal import REQUEST_ID, Journal
from byheart.interfaces.rest.limits import BodyLimit, Patience, Rate, RateLimit
from byheart.interfaces.rest.openapi import describe_api
from byheart.interfaces.rest.problems import Problem, answer_error
from byheart.interfaces.rest.shared_counts import SharedCounts
from byheart.interfaces.rest.work import Caller, Work
from byheart.model import to_wire
from byheart.settings import Settings
from byheart.store import MemoryStore

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def create_app(
    store: MemoryStore,
    settings: Settings,
    *,
    mounts: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    journal: TextIO | None = None,
    work: Work | None = None,
    counts: SharedCounts | None = None,
) -> ASGIApp:
    """Make the app of a store.

    `mounts` are routes beside the app's own; its guards and limits apply to them as well. `counts`
    are those of a server that has several processes.
    """
    counted = metrics.Metrics() if counts is None else counts.metrics
    work = work or Work(settings)
    files = FilesFolder(settings.files_dir, settings.db_path)
    desk, exports = Desk(store, work, files), Exports(store, work, files)
    inner = Starlette(
        routes=[
            *desk.routes(),
            Route(EXPORT_PATH, exports.answer, methods=["GET", "POST"]),
            *_about_itself(store, work, counts or counted),
            *mounts,
        ],
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (HTTPException, ByheartError, Problem, Exception), answer_error
        ),
    )
    # A redirect would send the API key to whichever host the Host header names.
    inner.router.redirect_slashes = False
    app: ASGIApp = BodyLimit(inner, settings.max_body_bytes, settings.client_timeout_seconds)
    app = RateLimit(app, Rate(settings.max_requests_per_minute))
    app = ApiKeyGuard(app, store, settings, Rate(settings.max_requests_per_minute))
    if settings.allowed_origins:
        app = CORSMiddleware(
            app,
            allow_origins=settings.allowed_origins,
            allow_methods=("GET", "POST", "PATCH", "DELETE"),
            allow_headers=("Authorization", "Content-Type", REQUEST_ID),
            expose_headers=(REQUEST_ID, "Retry-After", "Location"),
        )
    app = AddressGuard(app, settings)
    app = Patience(app)
    return Journal(app, counted, journal)


def _about_itself(
    store: MemoryStore, work: Work, counted: metrics.Metrics | SharedCounts
) -> list[Route]:
    """Make the routes about the server itself: health, metrics and documentation."""
    watch = health.Watch(store)

    async def live(_: Request) -> Response:
        return _json(to_wire(health.Health("ok")))

    async def ready(request: Request) -> Response:
        grant: Grant | None = request.state.grant
        # The reason may contain counts of the space: only keys that see the whole space get it.
        tell = grant is not None and grant.space == store.space and grant.session_id is None
        answer, status = await watch.look(tell=tell)
        return _json(to_wire(answer, spell_request), status)

    async def figures(request: Request) -> Response:
        grant: Grant = request.state.grant
        # Unlike `perform`, `carry_out` withholds no sizes: monitoring needs them.
        ask = partial(carry_out, store, OPERATIONS["stats"], {}, grant)
        found = await work.run("read", ask, Caller.of(request))
        if isinstance(counted, SharedCounts):
            whole, under_way = counted.of_all()
        else:
            whole, under_way = counted, work.under_way()
        text = whole.render(found.space, found, under_way)
        return Response(text, media_type=metrics.MEDIA_TYPE)

    # These two are not coroutines, so Starlette runs them in a thread. The first request renders
    # the text: the server starts without it.
    def openapi(_: Request) -> Response:
        return Response(_document(), media_type="application/json")

    def docs(_: Request) -> Response:
        return HTMLResponse(_page(), headers={"Content-Security-Policy": PAGE_POLICY})

    return [
        Route("/health", live),
        Route("/health/ready", ready),
        Route("/metrics", figures),
        Route("/openapi.json", openapi),
        Route("/docs", docs),
    ]


@cache
def _document() -> bytes:
    return write_json(describe_api())


@cache
def _page() -> str:
    return render_page()


def _json(value: object, status: int = 200) -> Response:
    return Response(write_json(value), status, media_type="application/json")
