"""Let a running server answer hooks of the same store over a local socket."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import struct
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from byheart.interfaces.hooks.attempts import Answer, Deadline, attempt
from byheart.interfaces.hooks.handing_over import ACCEPTED
from byheart.interfaces.hooks.sockets import HAS_SOCKETS, name_sockets, socket_folder
from byheart.system.private_files import make_private_folder

if TYPE_CHECKING:
    from byheart.settings import Settings
    from byheart.store import MemoryStore

# The events that are worked on at once; the others wait in their processes, or are done there.
_MOST_EVENTS = 4
_MOST_BYTES = 50_000_000
_READING_SECONDS = 5.0
_OWNER_ONLY = 0o177
_log = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """Hold an event as a hook hands it over, and how many seconds the hook waits."""

    name: str
    said: dict[str, Any]
    environ: dict[str, str]
    seconds: float


class HookService:
    """Answer hooks in threads of this process, with the store that is open already."""

    def __init__(self, store: MemoryStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._path = socket_folder() / f"{name_sockets(settings)}{os.getpid()}"
        self._free = threading.BoundedSemaphore(_MOST_EVENTS)
        self._listener: socket.socket | None = None

    def start(self) -> None:
        """Listen; hooks do their work themselves if this fails, as where paths are too long."""
        if not HAS_SOCKETS or not self._settings.enabled:
            return
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            make_private_folder(self._path.parent)
            self._path.unlink(missing_ok=True)
            before = os.umask(_OWNER_ONLY)
            try:
                listener.bind(str(self._path))
            finally:
                os.umask(before)
            listener.listen(_MOST_EVENTS)
        except OSError as error:
            listener.close()
            _log.info("hooks are not answered by this process: %s", error)
            return
        self._listener = listener
        threading.Thread(target=self._listen, args=(listener,), name="hooks", daemon=True).start()

    def close(self) -> None:
        """Stop listening, and remove the socket."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._listener.shutdown(socket.SHUT_RDWR)  # otherwise its thread would go on
            self._listener.close()
            self._listener = None

    def _listen(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                self._free.acquire()
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                connection.settimeout(_READING_SECONDS)
                if _is_own(connection):
                    self._answer(connection, _read(connection))
        finally:
            self._free.release()

    def _answer(self, connection: socket.socket, asked: _Asked) -> None:
        from byheart.interfaces.hooks import events, reactions
        from byheart.interfaces.hooks.situation import Situation

        event = events.read_event(asked.said, asked.name, asked.environ)
        connection.sendall(ACCEPTED)
        answer = Answer(partial(_send, connection))
        deadline = Deadline(asked.seconds)

        def work(quicker: bool) -> None:
            react = reactions.reaction_to(asked.name, quicker=quicker)
            react(Situation(event, self._settings, deadline, answer, self._store))

        quicker = partial(work, True) if asked.name == "UserPromptSubmit" else None
        attempt(asked.name, deadline, answer, partial(work, False), quicker)


def _is_own(connection: socket.socket) -> bool:
    """Tell whether a process of this user asks; the permissions of the socket say so as well."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    asked = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", asked)[1] == os.getuid())


def _read(connection: socket.socket) -> _Asked:
    data = b""
    while block := connection.recv(65_536):
        data += block
        if len(data) > _MOST_BYTES:
            raise ValueError("too long")
    asked = json.loads(data)
    return _Asked(str(asked["name"]), dict(asked["said"]), dict(asked["environ"]), asked["seconds"])


def _send(connection: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):  # the hook did not wait
        connection.sendall(text.encode(errors="replace"))
        connection.shutdown(socket.SHUT_WR)
