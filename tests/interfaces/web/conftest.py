"""A real server with the web page, and browsers that are logged in to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from byheart.interfaces.rest import Work
from byheart.interfaces.web import page_routes
from byheart.settings import load_settings
from byheart.store import MemoryStore
from tests.conftest import OpenStore
from tests.interfaces.rest.conftest import Server, make_client
from tests.interfaces.rest.conftest import serve as serve

KEY = "the key of this server"


@dataclass(frozen=True, slots=True)
class Browser:
    """A client that keeps cookies and sends the headers of a browser on a page of the server."""

    client: httpx2.Client
    url: str

    def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """Make a request as a script of the page does."""
        own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        if method != "GET":
            own["Origin"] = self.url
        return self.client.request(method, path, headers={**own, **more.pop("headers", {})}, **more)

    def get(self, path: str, **more: Any) -> httpx2.Response:
        """Ask with GET."""
        return self.ask("GET", path, **more)

    def post(self, path: str, body: object = None, **more: Any) -> httpx2.Response:
        """Send JSON with POST."""
        return self.ask("POST", path, json={} if body is None else body, **more)

    def log_in(self, code: str) -> httpx2.Response:
        """Exchange a code for a login."""
        return self.post("/login", {"code": code})


LogIn = Callable[..., Browser]


@pytest.fixture
def server(serve: Any, open_store: OpenStore) -> Server:
    """Serve a store with its page."""
    return serve_page(serve, open_store())


def serve_page(serve: Any, store: MemoryStore, **settings: Any) -> Server:
    """Serve a store with its page and some settings."""
    work = Work(load_settings(settings))
    served: Server = serve(store, tuple(page_routes(store, work, KEY)), **settings)
    return served


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    """Give a browser without a login."""
    with make_client(server.url) as client:
        yield Browser(client, server.url)


@pytest.fixture
def log_in(server: Server) -> Iterator[LogIn]:
    """Log browsers in."""
    with ExitStack() as stack:

        def enter(access: str = "write", space: str = "default") -> Browser:
            browser = Browser(stack.enter_context(make_client(server.url)), server.url)
            code = server.store.logins.create_code(access, space)
            assert browser.log_in(code.secret).status_code == 200
            return browser

        yield enter
