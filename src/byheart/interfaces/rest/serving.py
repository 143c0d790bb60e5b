"""Run a server: open its socket, its log and its threads, and describe where it listens."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TextIO

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from byheart.errors import ByheartError, SettingsError
from byheart.interfaces.background_work import (
    keep_workspaces,
    make_missing_vectors,
    prepare,
    unload_when_idle,
)
from byheart.interfaces.rest.app import Lifespan, create_app
from byheart.interfaces.rest.connection import connection_class
from byheart.interfaces.rest.guard import is_loopback
from byheart.interfaces.rest.servers import FirstServer, OtherServer, Server
from byheart.interfaces.rest.shared_counts import SharedCounts
from byheart.interfaces.rest.work import Work
from byheart.interfaces.rest.worker_pool import WorkerPool
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore
from byheart.system.private_files import open_private

# How long a server waits after all work is done: for answers being sent, and endless streams.
_LAST_SECONDS = 3
# How long a thread keeps the interpreter. A save needs the interpreter after every SQL statement;
# with Python's default of 5 ms it waits that long for each running search: up to 1.9 s with 32
# clients.
_TURN_SECONDS = 0.0005
_BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Listening:
    """Describe where a server listens; `warning` says what is dangerous about it."""

    url: str
    host: str
    port: int
    pid: int
    tokens: int
    warning: str | None

    @property
    def page_url(self) -> str:
        """Give an address that a browser on this machine can open."""
        anywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "[::]": "[::1]"}.get(self.host)
        return self.url if anywhere is None else f"http://{anywhere}:{self.port}"


def serve(
    store: MemoryStore,
    settings: Settings,
    *,
    on_listening: Callable[[Listening], None] = lambda _: None,
    mounts: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    work: Work | None = None,
    quiet: bool = False,
    pool: WorkerPool | None = None,
) -> None:
    """Answer requests until a signal says to stop; then finish the running requests and return.

    Pass `work` if the `mounts` run their tasks in it as well. The processes of `pool` answer a part
    of the requests.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_taking_turns())
        listener = stack.enter_context(_bind(settings.serve_host, settings.serve_port))
        lines = None if quiet else stack.enter_context(_open_lines(settings))
        work = work or Work(settings)
        counts = None if pool is None else SharedCounts(pool.folder, 0, work)
        app = create_app(
            store,
            settings,
            mounts=mounts,
            lifespan=lifespan,
            journal=lines,
            work=work,
            counts=counts,
        )
        config = make_config(app, settings, lifespan="on" if lifespan else "off")

        def started() -> None:
            on_listening(_describe(store, settings, listener))
            # This starts only now, so that the port opens without waiting for the model.
            stack.enter_context(_looking_after(store, settings))

        if pool is None or counts is None:
            Server(config, work, started).run(sockets=[listener])
        else:
            FirstServer(config, work, started, listener, pool, counts).run(sockets=[])


def serve_connections(
    store: MemoryStore,
    settings: Settings,
    channel: socket.socket,
    counts: SharedCounts,
    work: Work,
    *,
    mounts: Sequence[BaseRoute],
    lifespan: Lifespan,
    quiet: bool,
) -> None:
    """Answer the requests of the connections that come through a channel, until it is closed."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_taking_turns())
        lines = None if quiet else stack.enter_context(_open_lines(settings))
        app = create_app(
            store,
            settings,
            mounts=mounts,
            lifespan=lifespan,
            journal=lines,
            work=work,
            counts=counts,
        )

        def started() -> None:
            stack.enter_context(_keeping_model(store, settings))

        config = make_config(app, settings, lifespan="on")
        OtherServer(config, work, started, channel, counts).run(sockets=[])


def make_config(
    app: ASGIApp, settings: Settings, *, lifespan: Literal["on", "off"]
) -> uvicorn.Config:
    """Configure uvicorn to serve the app."""
    return uvicorn.Config(
        app,
        http=connection_class(settings),
        loop="asyncio",  # also where uvloop is installed: decision 0037
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan=lifespan,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )


@contextlib.contextmanager
def _taking_turns() -> Iterator[None]:
    """Make threads take turns more often."""
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
    # TCP is named explicitly: only then does asyncio switch off Nagle's delay of 40 ms per answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # on other systems it would let two servers share one port
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
    """Open the access log: the setting `log_file`, otherwise stderr."""
    if settings.log_file is None:
        yield sys.stderr
        return
    try:
        # The file is private because its lines name paths and callers.
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
    keys = [each for each in store.api_keys.list() if each.purpose == "key"]
    return Listening(f"http://{shown}:{port}", host, port, os.getpid(), len(keys), warning)


@contextlib.contextmanager
def _keeping_model(store: MemoryStore, settings: Settings) -> Iterator[None]:
    """Load the model, and unload it when idle."""
    ended = threading.Event()

    def keep() -> None:
        prepare(lambda: store)
        unload_when_idle(store, settings.unload_after_seconds, ended)

    threading.Thread(target=keep, name="byheart-prepare", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextlib.contextmanager
def _looking_after(store: MemoryStore, settings: Settings) -> Iterator[None]:
    """Load the model, index folders and make missing vectors; unload the model when idle."""
    ended = threading.Event()

    def look_after() -> None:
        prepare(lambda: store)
        keep_workspaces(store, settings, ended)
        if settings.embed_on_save:
            threading.Thread(
                target=make_missing_vectors,
                args=(store, ended),
                name="byheart-vectors",
                daemon=True,
            ).start()
        unload_when_idle(store, settings.unload_after_seconds, ended)

    threading.Thread(target=look_after, name="byheart-prepare", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
