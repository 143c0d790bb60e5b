"""Make ids for memories: unique across machines, and sorted by the time they were made."""

from __future__ import annotations

import os
import secrets
import threading
import time

from byheart.errors import InvalidInput
from byheart.startup.late_patterns import late_pattern

TOKEN_PREFIX = "tok_"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: no letter looks like another
_RANDOM_BITS = 80
# Ids take the milliseconds ahead, one each, up to so many ahead of the clock.
_MOST_AHEAD_MS = 600_000
_TEXT_ID = late_pattern(r"(?P<memory_id>[^@]+)@(?P<version>\d{1,9})")
_WHOLE_ID = late_pattern(r"mem_(?P<milliseconds>[0-9a-z]{10})[0-9a-z]{16}(?P<rest>(?:[@#].*)?)")
_CHUNK_ID = late_pattern(r"(?P<memory_id>[^#]+)#(?P<index>\d{1,9})")

_lock = threading.Lock()
_last = 0


def _start_anew() -> None:
    """Start from a random number again; a forked process would make the ids of its parent."""
    global _lock, _last
    _lock, _last = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def new_memory_id() -> str:
    """Make an id of 48 bits of milliseconds and 80 random bits; a process makes ascending ids.

    Two ids of a process seldom have the same milliseconds, so their beginnings name them.
    """
    return _new_id("mem_")


def new_token_id() -> str:
    """Make an id for an API key, in the same way."""
    return _new_id(TOKEN_PREFIX)


def new_receipt_id() -> str:
    """Make an id for a receipt, in the same way."""
    return _new_id("rcp_")


def _new_id(prefix: str) -> str:
    global _last
    with _lock:
        now, last = time.time_ns() // 1_000_000, _last >> _RANDOM_BITS
        if last < now + _MOST_AHEAD_MS:
            _last = max(now, last + 1) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        else:  # the clock went back, or very many ids were made at once: count up
            _last += 1
        number = _last
    return prefix + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def short_form(name: str) -> str:
    """Shorten the id of a memory, text or first chunk for a prompt: its milliseconds name it.

    `memory.references.complete_id` completes it again.
    """
    match = _WHOLE_ID.fullmatch(name)
    if match is None:
        return name
    return match["milliseconds"] + match["rest"].removesuffix("#0")


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
