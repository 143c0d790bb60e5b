"""Turn errors into a status and a body of the type application/problem+json (RFC 9457)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from byheart import errors
from byheart.errors import ByheartError, spell_hint
from byheart.interfaces.operations import Forbidden, Grant
from byheart.interfaces.rest.hints import spelling_for
from byheart.interfaces.rest.work import Overloaded

_log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"

STATUSES: Mapping[type[ByheartError], int] = {
    ByheartError: 500,
    errors.InvalidInput: 422,
    errors.QuerySyntaxError: 422,
    errors.SettingsError: 500,
    errors.TooManyChunks: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.VersionConflict: 409,
    errors.Unreadable: 500,
    errors.NotText: 500,
    errors.EmbeddingError: 503,
    errors.EmbedderUnavailable: 503,
    errors.ModelFilesError: 503,
    errors.StoreError: 500,
    errors.StoreBusy: 503,
    errors.StoreDamaged: 500,
    errors.StoreFull: 507,
    errors.StoreReadOnly: 503,
    errors.StoreTooNew: 500,
    errors.StoreUnreachable: 503,
    Forbidden: 403,
    Overloaded: 503,
}
# Temporary errors, with the seconds to wait before the next request.
_RETRY_SECONDS: Mapping[type[ByheartError], int] = {
    errors.StoreBusy: 1,
    Overloaded: 1,
    errors.EmbedderUnavailable: 60,
}
_HINTS = {
    404: "GET /openapi.json lists every path",
    405: "the header Allow names the methods that this path takes",
}


class Problem(Exception):
    """Answer with an error instead of a result.

    `position` is the place in a raw query where it is not valid.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint
        self.headers = headers or {}
        self.position = position

    def answer(self, scope: Scope) -> Response:
        """Make the response to one request."""
        body = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "hint": self.hint,
            "instance": instance_of(scope),
            "request_id": scope.get("state", {}).get("request_id", ""),
            **({} if self.position is None else {"position": self.position}),
        }
        return Response(
            json.dumps(body), self.status, headers=dict(self.headers), media_type=MEDIA_TYPE
        )

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the problem as the response."""
        await self.answer(scope)(scope, receive, send)


def instance_of(scope: Scope) -> str:
    """Return the path as it was sent, still encoded: it cannot contain a line break."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("ascii", "backslashreplace")


def problem_of(error: ByheartError, grant: Grant | None = None) -> Problem:
    """Translate an error into a problem, in words for the caller."""
    spelling = spelling_for(grant)
    kinds = type(error).__mro__
    wait = next((_RETRY_SECONDS[kind] for kind in kinds if kind in _RETRY_SECONDS), None)
    return Problem(
        next(STATUSES[kind] for kind in kinds if kind in STATUSES),
        spell_hint(error.message, spelling),
        spell_hint(error.hint, spelling),
        {} if wait is None else {"Retry-After": str(wait)},
        error.position if isinstance(error, errors.QuerySyntaxError) else None,
    )


def log_failure(error: ByheartError, scope: Scope) -> None:
    """Log a failure of the store with its details, which the caller does not get."""
    if isinstance(error, errors.StoreError):
        request_id = scope.get("state", {}).get("request_id", "")
        _log.error("%s: %s: %s", request_id, type(error).__name__, error)


def unexpected(error: Exception) -> Problem:
    """Report a defect of Byheart, without the details that belong only in its log."""
    return Problem(
        500,
        f"something unexpected went wrong: {type(error).__name__}",
        "this is a defect in Byheart: the server's log has more under this request_id",
    )


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer an error that the routing or a verb raised."""
    if isinstance(error, HTTPException):
        hint = _HINTS.get(error.status_code, "")
        path = instance_of(request.scope)
        detail = {
            404: f"there is nothing at {path}",
            405: f"{request.method} is not for {path}",
        }.get(error.status_code, error.detail)
        problem = Problem(error.status_code, detail, hint, dict(error.headers or {}))
    elif isinstance(error, ByheartError):
        problem = problem_of(error, request.scope.get("state", {}).get("grant"))
        log_failure(error, request.scope)
    elif isinstance(error, Problem):
        problem = error
    else:
        problem = unexpected(error)
    return problem.answer(request.scope)
