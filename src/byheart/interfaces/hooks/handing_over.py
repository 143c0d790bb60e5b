"""Hand an event to a running server, which has the engine and the model loaded already."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byheart.interfaces.hooks.attempts import Deadline
from byheart.interfaces.hooks.sockets import HAS_SOCKETS, name_sockets, socket_folder
from byheart.settings import Settings

# A server that takes an event says so at once; one that is too busy for that is not waited for.
_ACCEPTING_SECONDS = 0.3
ACCEPTED = b"\x06"
_BLOCK_BYTES = 65_536


def hand_over(settings: Settings, event: Mapping[str, Any], deadline: Deadline) -> str | None:
    """Return the answer of a running server, "" if it has none, or `None` if no server took it.

    A server that took the event reacts to it even if this process does not wait for the end.
    """
    if not HAS_SOCKETS:
        return None
    with contextlib.suppress(OSError):
        for path in sorted(socket_folder().glob(f"{name_sockets(settings)}*")):
            answer = _ask(path, json.dumps(event).encode(), deadline)
            if answer is not None:
                return answer
    return None


def _ask(path: Path, event: bytes, deadline: Deadline) -> str | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            if path.stat().st_uid != os.getuid():
                return None
            connection.settimeout(min(_ACCEPTING_SECONDS, deadline.left) or None)
            connection.connect(str(path))
            connection.sendall(event)
            connection.shutdown(socket.SHUT_WR)
            if connection.recv(1) != ACCEPTED:
                return None
        except ConnectionRefusedError:  # its server ended without a chance to tidy up
            path.unlink(missing_ok=True)
            return None
        except OSError:
            return None
        return _read(connection, deadline)


def _read(connection: socket.socket, deadline: Deadline) -> str:
    """Read until the server has reacted; an answer that is not complete in time is dropped."""
    heard = b""
    with contextlib.suppress(OSError):
        while deadline.left:
            connection.settimeout(deadline.left)
            block = connection.recv(_BLOCK_BYTES)
            if not block:
                return heard.decode(errors="replace")
            heard += block
    return ""
