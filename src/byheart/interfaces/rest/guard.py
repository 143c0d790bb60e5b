"""Control access: check Host and Origin against DNS rebinding, turn a key or login into a grant."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from byheart.errors import StoreError
from byheart.interfaces.operations import LOGIN, Grant
from byheart.interfaces.rest.limits import Rate, too_often
from byheart.interfaces.rest.login_cookies import read_cookie, refuse_foreign
from byheart.interfaces.rest.problems import Problem, log_failure, problem_of
from byheart.model import ApiKey
from byheart.settings import Settings
from byheart.store import MemoryStore

# The only paths that never need an API key. Their answers reveal nothing about stored content.
OPEN_PATHS = ("/health", "/health/ready")
# Descriptions, the same for every caller. A browser should be able to show them, but it cannot send
# an API key with an address. They need no key if only this machine can reach the server.
DESCRIPTIONS = ("/docs", "/openapi.json")
# The web page answers these paths itself: without a login, it shows how to log in.
PAGE_PATHS, PAGE_FOLDERS = ("/", "/login/server"), ("/ui/", "/web/")
LOGIN_PATH = "/login"
# Programs use this path; a browser has no business there.
_WITHOUT_LOGINS = ("/mcp",)
# The name in the history of memories for changes that were made on the page.
_WHO_ON_PAGE = "web"
ANY_HOST = "*"


def is_loopback(host: str) -> bool:
    """Tell whether a host name can only mean this machine."""
    name = host.strip("[]").lower().rstrip(".")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def host_of(authority: str) -> str:
    """Return the host of a Host header, without its port."""
    if authority.startswith("["):
        return authority.partition("]")[0].lower() + "]"
    return authority.partition(":")[0].lower()


class AddressGuard:
    """Refuse requests that a foreign web page makes a browser send.

    A page can make its own host name resolve to 127.0.0.1, but the browser still sends that name in
    Host, and it sends the page's origin in Origin.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        own = settings.serve_host.lower()
        self._hosts: Collection[str] = (*settings.allowed_hosts, own, f"[{own}]")
        self._origins: Collection[str] = settings.allowed_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is refused."""
        if scope["type"] == "http":
            problem = self._look(Headers(scope=scope))
            if problem is not None:
                await problem.send(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _look(self, headers: Headers) -> Problem | None:
        authority = headers.get("host", "")
        host = host_of(authority)
        if not (is_loopback(host) or host in self._hosts or ANY_HOST in self._hosts):
            return Problem(
                421,
                f"this server is not asked under the name {host!r}",
                "ask 127.0.0.1 or localhost, or add the name to the setting allowed_hosts",
            )
        origin = headers.get("origin")
        if origin is None or origin.lower() in self._origins:
            return None
        if origin.lower() in (f"http://{authority.lower()}", f"https://{authority.lower()}"):
            return None  # a page of this server
        return Problem(
            403,
            f"pages of {origin!r} may not ask this server",
            "add that origin to the setting allowed_origins",
        )


class ApiKeyGuard:
    """Admit requests with an API key or a login; put its grant into `scope["state"]["grant"]`.

    Requests with neither are counted by the address they come from.
    """

    def __init__(
        self, app: ASGIApp, store: MemoryStore, settings: Settings, strangers: Rate
    ) -> None:
        self._app = app
        self._store = store
        self._strangers = strangers
        self._on_loopback = is_loopback(settings.serve_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the grant of a request, or answer 401."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            grant = self._grant_if_needed(headers, scope)
            if grant is None:
                self._count_stranger(scope)
                if not self._open(scope, headers):
                    raise _unknown(headers)
        except StoreError as error:
            log_failure(error, scope)
            await problem_of(error).send(scope, receive, send)
        except Problem as problem:
            await problem.send(scope, receive, send)
        else:
            scope["state"]["grant"] = grant
            await self._app(scope, receive, send)

    def _grant_if_needed(self, headers: Headers, scope: Scope) -> Grant | None:
        try:
            return self._grant(headers, scope)
        except StoreError:
            if scope["path"] not in OPEN_PATHS:
                raise
            return None  # health is asked for when the store does not answer

    def _grant(self, headers: Headers, scope: Scope) -> Grant | None:
        # This runs in the event loop: the check takes less time than waking up a thread.
        if "authorization" not in headers:
            return self._grant_of_login(headers, scope)
        scheme, _, secret = headers["authorization"].partition(" ")
        token = self._store.api_keys.check(secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            return None
        _identify(scope, token)
        return Grant(token.access, token.space, token.session_id, token.name, voice=token.voice)

    def _grant_of_login(self, headers: Headers, scope: Scope) -> Grant | None:
        secret = read_cookie(headers)
        if secret is None or scope["path"] in _WITHOUT_LOGINS:
            return None
        login = self._store.logins.check(secret)
        if login is None:
            return None
        if not _is_page(scope):  # the files of the page contain no memories
            refuse_foreign(scope["method"], headers)
        _identify(scope, login)
        scope["state"]["login"] = login
        return Grant(login.access, login.space, login.session_id, _WHO_ON_PAGE, LOGIN, login.voice)

    def _count_stranger(self, scope: Scope) -> None:
        address = scope["client"][0] if scope.get("client") else ""
        wait = self._strangers.wait_seconds(address)
        if wait:
            raise too_often("this address, without an API key,", wait)

    def _open(self, scope: Scope, headers: Headers) -> bool:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return scope["method"] == "POST" and path == LOGIN_PATH
        if _is_page(scope):
            return True
        here = self._on_loopback and is_loopback(host_of(headers.get("host", "")))
        return path in OPEN_PATHS or (here and path in DESCRIPTIONS)


def _is_page(scope: Scope) -> bool:
    path: str = scope["path"]
    is_page = path in PAGE_PATHS or path.startswith(PAGE_FOLDERS)
    return is_page and scope["method"] in ("GET", "HEAD")


def _identify(scope: Scope, key: ApiKey) -> None:
    scope["state"]["token"] = key.token_id
    scope["state"]["who"] = key.name


def _unknown(headers: Headers) -> Problem:
    given = "authorization" in headers
    if not given and read_cookie(headers) is not None:
        return Problem(
            401,
            "this login has expired, or it was ended",
            "log in again: the page of this server says how",
            {"WWW-Authenticate": 'Bearer realm="byheart"'},
        )
    reason = "this API key is unknown, revoked or expired" if given else "there is no API key"
    error = ' error="invalid_token"' if given else ""
    return Problem(
        401,
        reason,
        "send the header Authorization: Bearer KEY; the operator of this server creates API keys",
        {"WWW-Authenticate": f'Bearer realm="byheart"{"," if given else ""}{error}'},
    )
