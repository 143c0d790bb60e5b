"""Keep the login of a browser in a cookie, and refuse requests that another page makes with it.

A browser sends a cookie with every request to this host, whichever page asks, and it sends it to
every port. So a request counts only if the browser says that a page of this very server makes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from byheart.interfaces.rest.problems import Problem

# A browser accepts a cookie of this name only over TLS, and only from this host itself.
_OVER_TLS = "__Host-"
_READING = ("GET", "HEAD")
# A browser says this if a page of this server asks, or a person who types the address.
_OWN_SITES = ("same-origin", "none")


def set_cookie(headers: Headers, secret: str, max_age_seconds: int) -> str:
    """Write the header Set-Cookie; over TLS, which only the browser's Origin tells, with Secure."""
    secure = headers.get("origin", "").startswith("https:")
    name = _OVER_TLS * secure + _name(headers)
    flags = "; HttpOnly; SameSite=Strict" + "; Secure" * secure
    return f"{name}={secret}; Path=/; Max-Age={max_age_seconds}{flags}"


def remove_cookies(headers: Headers) -> Iterator[str]:
    """Write the headers Set-Cookie that remove the login of this server."""
    for name, secure in ((_name(headers), False), (_OVER_TLS + _name(headers), True)):
        yield f"{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict" + "; Secure" * secure


def read_cookie(headers: Headers) -> str | None:
    """Find the secret of the login in a request."""
    cookies = cookie_parser(headers.get("cookie", ""))
    return cookies.get(_OVER_TLS + _name(headers)) or cookies.get(_name(headers))


def _name(headers: Headers) -> str:
    """Name the cookie after the port: servers on one host share their cookies."""
    port = headers.get("host", "").rpartition("]")[2].rpartition(":")[2]
    return f"byheart_{port if port.isdecimal() else 'login'}"


def refuse_foreign(method: str, headers: Headers) -> None:
    """Refuse a request that a page of this server did not make, or that a form could make."""
    site = headers.get("sec-fetch-site")
    if method in _READING:
        if site not in (None, *_OWN_SITES):
            raise _foreign(f"a page of another origin ({site})")
        return
    origin = headers.get("origin")
    if origin is None and site != "same-origin":
        raise _foreign("the browser does not say which page")
    if origin is not None and not is_own(origin, headers):
        raise _foreign(f"a page of {origin!r}")
    if method != "DELETE":  # a form cannot send DELETE
        require_json(headers)


def is_own(origin: str, headers: Headers) -> bool:
    """Tell whether an origin is the one of this server."""
    authority = headers.get("host", "").lower()
    return bool(authority) and origin.lower() in (f"http://{authority}", f"https://{authority}")


def require_json(headers: Headers) -> None:
    """Refuse a body that a form of any page could send."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem(
            415,
            f"the body is {media_type or 'of no named type'}, not JSON",
            "send the header Content-Type: application/json",
        )


def _foreign(who: str) -> Problem:
    return Problem(
        403,
        f"{who} made this request with your login",
        "open the page of this server itself, or send an API key",
    )
