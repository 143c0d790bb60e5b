"""Hide the passwords in the addresses of databases and services, before an address is shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

from byheart.startup.late_patterns import late_pattern

HIDDEN = "***"

# The names of parameters whose values are secrets: password, sslpassword, sslkey, client_secret.
_SECRET_NAME = late_pattern(r"(?i)passw|pwd|secret|key|token")
_PARAMETER = late_pattern(r"([?&])([^=&?]*)=([^&]*)")
# The same in the other form of libpq, which is no URL: host=db password='***'.
_ASSIGNED = late_pattern(r"(?i)(\b\w*passw\w*\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)")
# A URL in other text ends at a quote or at the end of the line: a password may have a space.
_URL = late_pattern(r"[a-zA-Z][\w+.-]*://[^\"'\r\n]*")


def hide_secrets(address: str) -> str:
    """Replace the password and other secrets of an address; other text stays as it is.

    If an `@` has a place where no address can have one, the password may end anywhere, and only the
    scheme is left.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        return _ASSIGNED.sub(rf"\1{HIDDEN}", address)
    user_info, at, target = rest.rpartition("@")
    if any(sign in user_info for sign in "@/?#"):
        return f"{scheme}://{HIDDEN}"
    user, colon, _ = user_info.partition(":")
    shown = user + (colon and f":{HIDDEN}") + at
    return f"{scheme}://{shown}{hide_parameters(target)}"


def hide_parameters(target: str, hidden: str = HIDDEN) -> str:
    """Replace the values of secret parameters in the part of an address behind the user."""

    def replace(match: re.Match[str]) -> str:
        separator, name, value = match.groups()
        is_secret = _SECRET_NAME.search(unquote(name))
        return f"{separator}{name}={hidden if is_secret else value}"

    return _PARAMETER.sub(replace, target)


def hide_secrets_in(text: str) -> str:
    """Replace the secrets of every address in a text."""
    return _URL.sub(lambda match: hide_secrets(match[0]), text)


def has_secret(address: str) -> bool:
    """Tell whether an address holds a password or another secret."""
    return hide_secrets(address) != address
