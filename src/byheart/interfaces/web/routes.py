"""Answer the page's addresses, and log browsers in and out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import byheart
from byheart.interfaces.rest.endpoints import write_json
from byheart.interfaces.rest.guard import LOGIN_PATH
from byheart.interfaces.rest.limits import limit_body
from byheart.interfaces.rest.login_cookies import (
    is_own,
    remove_cookies,
    require_json,
    set_cookie,
)
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.work import Caller, Work
from byheart.interfaces.web.live_changes import EVENTS_PATH, LiveChanges
from byheart.interfaces.web.page_files import (
    LOGIN_PAGE,
    OPEN_FOLDER,
    SHELL,
    PageFile,
    read_page_files,
)
from byheart.interfaces.web.running_server import PROOF_PATH, prove
from byheart.interfaces.web.store_checks import DOCTOR_PATH, StoreChecks
from byheart.model import ApiKey, to_wire
from byheart.store import MemoryStore
from byheart.upkeep.logins import LOGIN_LIFE

# Every script and style is a file of this server; the only HTML from texts comes sanitised, through
# the one policy that the page declares for it.
PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types byheart",
    )
)
_PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_FOR_EVER = "private, max-age=31536000, immutable"
_ASK_AGAIN = "private, no-cache"
_MOST_LOGIN_BYTES = 1_000
# The first list that the first screen asks for: the browser asks for it together with the scripts.
# A test compares the address with that of the screen.
_FIRST_LIST = "</memories?limit=50&offset=0>; rel=preload; as=fetch; crossorigin"
_LOG_IN_AGAIN = "run byheart open on the machine of this server"


def page_routes(store: MemoryStore, work: Work, key: str) -> list[Route]:
    """Make the routes of the page; `key` proves to `byheart open` that this is its server."""
    logins, changes = _Logins(store, work), LiveChanges(store, work)

    async def proof(request: Request) -> Response:
        challenge = request.query_params.get("challenge", "")
        return Response(prove(key, challenge), media_type="text/plain")

    return [
        Route("/", _show_shell),
        Route("/ui/{screen:path}", _show_shell),
        Route("/web/{digest}/{path:path}", _send_file),
        Route(LOGIN_PATH, logins.answer, methods=["GET", "POST", "DELETE"]),
        Route(PROOF_PATH, proof),
        Route(EVENTS_PATH, changes.answer),
        Route(DOCTOR_PATH, StoreChecks(store).answer),
    ]


async def _show_shell(request: Request) -> Response:
    """Show the page to a browser with a login, to others only how to log in."""
    files = read_page_files().by_path
    if not _has_login(request):
        headers = {**_PAGE_HEADERS, "Vary": "Cookie"}
        return Response(
            files[LOGIN_PAGE].body, 401, headers, media_type=files[LOGIN_PAGE].media_type
        )
    answer = _send(request, files[SHELL], _ASK_AGAIN)
    if request.url.path == "/" and not request.url.query:
        answer.headers["Link"] = _FIRST_LIST
    return answer


async def _send_file(request: Request) -> Response:
    held = read_page_files()
    digest, path = request.path_params["digest"], request.path_params["path"]
    if not path.startswith(OPEN_FOLDER) and not _has_login(request):
        raise _no_login()
    file = held.by_path.get(path) if digest == held.digest else None
    if file is None:
        raise Problem(404, f"there is no file {path!r} of this version", "load the page again")
    return _send(request, file, _FOR_EVER)


def _send(request: Request, file: PageFile, caching: str) -> Response:
    headers = {
        **_PAGE_HEADERS,
        "Cache-Control": caching,
        "ETag": file.etag,
        "Vary": "Cookie, Accept-Encoding",
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    body = file.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], body = "gzip", file.packed
    return Response(body, 200, headers, media_type=file.media_type)


def _has_login(request: Request) -> bool:
    return getattr(request.state, "login", None) is not None


class _Logins:
    """Log a browser in with a code, describe its login, and log it out."""

    def __init__(self, store: MemoryStore, work: Work) -> None:
        self._store = store
        self._work = work

    async def answer(self, request: Request) -> Response:
        """Carry out a request."""
        if request.method == "POST":
            return await self._log_in(request)
        login: ApiKey | None = getattr(request.state, "login", None)
        if login is None:
            raise _no_login()
        if request.method == "DELETE":
            return await self._log_out(request, login)
        return _json(self._describe(login))

    async def _log_in(self, request: Request) -> Response:
        headers = request.headers
        if not is_own(headers.get("origin", ""), headers):
            raise Problem(403, "only a page of this server may log in", _LOG_IN_AGAIN)
        require_json(headers)
        code = await _read_code(request)
        created = await self._work.run(
            "write", lambda: self._store.logins.exchange(code), Caller.of(request)
        )
        if created is None:
            raise Problem(
                401, "this code was used already, or it is older than a minute", _LOG_IN_AGAIN
            )
        life = int(LOGIN_LIFE.total_seconds())
        cookie = set_cookie(headers, created.secret, life)
        return _json(self._describe(created.token), {"Set-Cookie": cookie})

    async def _log_out(self, request: Request, login: ApiKey) -> Response:
        await self._work.run(
            "write", lambda: self._store.logins.end(login.token_id), Caller.of(request)
        )
        answer = Response(None, 204)
        for cookie in remove_cookies(request.headers):
            answer.headers.append("Set-Cookie", cookie)
        return answer

    def _describe(self, login: ApiKey) -> Mapping[str, Any]:
        named = ("name", "space", "access", "session_id", "created_at", "expires_at")
        described = to_wire(login)
        return {
            **{name: described[name] for name in named},
            "writable": self._store.logins.writable,
            "version": byheart.__version__,
        }


async def _read_code(request: Request) -> str:
    bounded = Request(request.scope, limit_body(request.receive, _MOST_LOGIN_BYTES))
    try:
        given = json.loads(await bounded.body())
    except ValueError:
        given = None
    code = given.get("code") if isinstance(given, dict) else None
    if not isinstance(code, str):
        raise Problem(422, "there is no code in the body", 'send {"code": "…"}')
    return code


def _json(value: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(write_json(value), headers=dict(headers or {}), media_type="application/json")


def _no_login() -> Problem:
    return Problem(401, "this browser is not logged in", _LOG_IN_AGAIN)
