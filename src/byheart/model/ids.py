"""Make ids for memories: unique across machines, and sorted by the time they were made."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time

from byheart.errors import InvalidInput

TOKEN_PREFIX = "tok_"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: no letter looks like another
_RANDOM_BITS = 80
_TEXT_ID = re.compile(r"(?P<memory_id>[^@]+)@(?P<version>\d{1,9})")
_CHUNK_ID = re.compile(r"(?P<memory_id>[^#]+)#(?P<index>\d{1,9})")

_lock = threading.Lock()
_last = 0


def _start_anew() -> None:
    """Start from a random number again; a forked process would make the ids of its parent."""
    global _lock, _last
    _lock, _last = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def new_memory_id() -> str:
    """Make an id of 48 bits of milliseconds and 80 random bits; a process makes ascending ids."""
    return _new_id("mem_")


def new_token_id() -> str:
    """Make an id for an API key, in the same way."""
    return _new_id(TOKEN_PREFIX)


def _new_id(prefix: str) -> str:
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        # Within one millisecond, or when the clock goes back, count up from the last id.
        _last = fresh if fresh >> _RANDOM_BITS > _last >> _RANDOM_BITS else _last + 1
        number = _last
    return prefix + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def parse_text_id(name: str) -> tuple[str, int | None]:
    """Split `<memory_id>@<version>`; an id without a version means the current text."""
    match = _TEXT_ID.fullmatch(name)
    return (name, None) if match is None else (match["memory_id"], int(match["version"]))


def parse_chunk_id(chunk_id: str) -> tuple[str, int]:
    """Split `<memory_id>#<chunk_index>`."""
    match = _CHUNK_ID.fullmatch(chunk_id)
    if match is None:
        raise InvalidInput(
            f"{chunk_id!r} is not a chunk id", "give <memory_id>#<chunk_index>, as search shows it"
        )
    return match["memory_id"], int(match["index"])
