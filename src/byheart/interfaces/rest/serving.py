"""The socket, the signals, and an orderly end."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Literal, TextIO

import anyio
import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from byheart.errors import ByheartError, SettingsError
from byheart.interfaces.caretaking import (
    keep_workspaces,
    make_missing_vectors,
    prepare,
    unload_when_idle,
)
from byheart.interfaces.rest.app import Lifespan, create_app
from byheart.interfaces.rest.connection import connection_class
from byheart.interfaces.rest.guard import is_loopback
from byheart.interfaces.rest.work import Work
from byheart.settings import Settings
from byheart.store import MemoryStore
from byheart.system.private_files import open_private

# Once nothing is being worked on any more: for answers on their way, and streams without end.
_LAST_SECONDS = 3
# A save asks for the interpreter after every statement of SQL, and with Python's 5 ms waits that
# long for each search that runs: among 32 clients up to 1.9 s.
_TURN_SECONDS = 0.0005
_BACKLOG = 2048
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server answers; `warning` says what is dangerous about that."""

    url: str
    host: str
    port: int
    pid: int
    tokens: int
    warning: str | None


def serve(
    store: MemoryStore,
    settings: Settings,
    *,
    on_listening: Callable[[Listening], None] = lambda _: None,
    mounts: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    work: Work | None = None,
    quiet: bool = False,
) -> None:
    """Answer requests until a signal says to stop; then end what is under way, and return.

    `work` is given where `mounts` have their work done by it as well.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_taking_turns())
        listener = stack.enter_context(_bind(settings.serve_host, settings.serve_port))
        lines = None if quiet else stack.enter_context(_open_lines(settings))
        work = work or Work(settings)
        app = create_app(
            store, settings, mounts=mounts, lifespan=lifespan, journal=lines, work=work
        )
        server = _Server(make_config(app, settings, lifespan="on" if lifespan else "off"), work)

        def started() -> None:
            on_listening(_describe(store, settings, listener))
            # Now, not before: whoever starts a server waits for the port, not for the model.
            stack.enter_context(_looking_after(store, settings))

        server.on_started = started
        server.run(sockets=[listener])


def make_config(
    app: ASGIApp, settings: Settings, *, lifespan: Literal["on", "off"]
) -> uvicorn.Config:
    """Say how uvicorn serves the app."""
    return uvicorn.Config(
        app,
        http=connection_class(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan=lifespan,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )


class _Server(uvicorn.Server):
    """Stop on the first signal when the work is done, on the second at once."""

    def __init__(self, config: uvicorn.Config, work: Work) -> None:
        super().__init__(config)
        self._work = work
        self.on_started: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell so."""
        await super().startup(sockets)
        if self.started:
            self.on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take in nothing new, end what is under way however long it takes, then let go."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while any(self._work.under_way().values()):
            await anyio.sleep(0.02)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals over, and do not raise them again at the end: a stop is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop, at once if asked twice: what was acknowledged is on the disk already."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


@contextlib.contextmanager
def _taking_turns() -> Iterator[None]:
    """Let threads have the interpreter for a shorter time each."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def _bind(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    name = host.strip("[]")
    # TCP by name: only then does asyncio switch Nagle's delay off, which costs 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((name, port))
            listener.listen(_BACKLOG)
        except (OSError, UnicodeError) as error:
            raise _cannot_listen(host, port, error) from error
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()


def _cannot_listen(host: str, port: int, error: Exception) -> ByheartError:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return ByheartError(
            f"port {port} of {host} is in use",
            "another server may be running already; choose another with --port, 0 for any",
        )
    if number == errno.EACCES:
        return ByheartError(
            f"port {port} of {host} is not for everybody", "choose one above 1023 with --port"
        )
    reason = getattr(error, "strerror", None) or str(error)
    return SettingsError(
        f"cannot listen on {host}: {reason}", "name an address of this machine with --host"
    )


@contextlib.contextmanager
def _open_lines(settings: Settings) -> Iterator[TextIO]:
    """Open what access lines are written to: the log."""
    if settings.log_file is None:
        yield sys.stderr
        return
    try:
        # Its lines name paths and callers.
        lines = open(  # noqa: SIM115 - closed below
            settings.log_file, "a", encoding="utf-8", opener=open_private
        )
    except OSError as error:
        raise SettingsError(
            f"cannot write to log_file {settings.log_file}: {error.strerror}",
            "name another file, or none",
        ) from error
    with lines:
        yield lines


def _describe(store: MemoryStore, settings: Settings, listener: socket.socket) -> Listening:
    port = listener.getsockname()[1]
    host = settings.serve_host
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    warning = None
    if not is_loopback(host):
        warning = (
            f"{host} can be reached from other machines, and tokens and memories go over the "
            "network unencrypted: put a proxy with TLS in front, or listen on 127.0.0.1"
        )
    return Listening(
        f"http://{shown}:{port}", host, port, os.getpid(), len(store.tokens()), warning
    )


@contextlib.contextmanager
def _looking_after(store: MemoryStore, settings: Settings) -> Iterator[None]:
    """Load the model, index folders and make missing vectors; let go of the model when idle."""
    ended = threading.Event()

    def look_after() -> None:
        prepare(lambda: store)
        keep_workspaces(store, settings, ended)
        threading.Thread(
            target=make_missing_vectors, args=(store, ended), name="byheart-vectors", daemon=True
        ).start()
        unload_when_idle(store, settings.unload_after_seconds, ended)

    threading.Thread(target=look_after, name="byheart-prepare", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
