"""Define `serve`, which gives people and programs access over HTTP."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

import byheart
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import print_json
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb

if TYPE_CHECKING:  # keeps the server out of the import of the help
    from byheart.interfaces.rest import Listening
    from byheart.interfaces.rest.worker_pool import WorkerPool
    from byheart.settings import Settings
    from byheart.store import MemoryStore


@click.command(
    "serve",
    cls=Verb,
    examples=(
        "byheart serve",
        "byheart serve --port 9000 --quiet",
        "byheart serve --workers 1",
        "BYHEART_ALLOWED_HOSTS=memory.example.com byheart serve",
    ),
)
@flag(
    "--host",
    "serve_host",
    metavar="ADDRESS",
    help="The address to listen on; by default 127.0.0.1.",
)
@flag(
    "--port",
    "serve_port",
    type=int,
    metavar="PORT",
    help="The port; by default 8765. 0 is any free port.",
)
@flag(
    "--workers",
    "serve_workers",
    type=int,
    metavar="N",
    help="The number of processes; by default one for each core, at most four.",
)
@flag("--quiet", "-q", is_flag=True, help="Do not log requests.")
@click.pass_obj
def serve_command(
    invocation: Invocation,
    /,
    serve_host: str | None,
    serve_port: int | None,
    serve_workers: int | None,
    quiet: bool,
) -> None:
    """Serve the web page and REST over HTTP until Ctrl-C, and MCP at /mcp.

    byheart open logs your browser in to the page. The page /docs describes the REST API; its
    callers need an API key: byheart token create NAME. Hosts, origins and limits are settings.
    """
    settings = settings_of(
        invocation, serve_host=serve_host, serve_port=serve_port, serve_workers=serve_workers
    )

    def tell(listening: Listening) -> None:
        if invocation.json:
            print_json(listening)
        else:
            _show(listening)

    from byheart.interfaces.rest.worker_pool import count_workers, share_settings

    workers = count_workers(settings)
    with byheart.open(settings=share_settings(settings, workers)) as store:
        serve_store(store, settings, tell, quiet=quiet, workers=workers)


def serve_store(
    store: MemoryStore,
    settings: Settings,
    tell: Callable[[Listening], None],
    *,
    quiet: bool,
    workers: int = 1,
) -> None:
    """Serve a store with all interfaces, and announce where, until a signal says to stop."""
    from byheart.interfaces.hooks.service import HookService
    from byheart.interfaces.mcp.http import McpOverHttp
    from byheart.interfaces.rest import Work, serve
    from byheart.interfaces.rest.worker_pool import share_settings
    from byheart.interfaces.web import Announcement, page_routes

    share = share_settings(settings, workers)
    work = Work(share)
    agents = McpOverHttp(store, share, work)
    announcement = Announcement(store.location)

    def announce(listening: Listening) -> None:
        announcement.publish(listening.page_url)
        tell(listening)

    hooks = HookService(store, settings)
    hooks.start()
    try:
        with _pool_of(workers, share, announcement.key, quiet=quiet) as pool:
            serve(
                store,
                share,
                on_listening=announce,
                mounts=[agents.route, *page_routes(store, work, announcement.key)],
                lifespan=agents.lifespan,
                work=work,
                quiet=quiet,
                pool=pool,
            )
    finally:
        announcement.withdraw()
        hooks.close()


@contextmanager
def _pool_of(
    workers: int, share: Settings, key: str, *, quiet: bool
) -> Iterator[WorkerPool | None]:
    """Prepare the processes besides this one."""
    from byheart.interfaces.rest.worker_pool import Job, WorkerPool

    if workers == 1:
        yield None
        return
    level = logging.getLogger().getEffectiveLevel()
    with tempfile.TemporaryDirectory(prefix="byheart-", ignore_cleanup_errors=True) as counts:
        folder = Path(counts)
        jobs = [Job(each, share, key, folder, quiet, level) for each in range(1, workers)]
        yield WorkerPool("byheart.interfaces.cli.serve_worker", jobs, folder)


def _show(listening: Listening) -> None:
    url = click.style(listening.url, bold=True)
    click.echo(f"Byheart listens on {url} (stop it with Ctrl-C)", err=True)
    click.echo("Open the web page with: byheart open", err=True)
    click.echo(f"The REST API: {listening.url}/docs", err=True)
    if not listening.tokens:
        click.echo("There is no API key yet. Create one with: byheart token create NAME", err=True)
    if listening.warning:
        click.echo(f"{click.style('warning:', fg='yellow')} {listening.warning}", err=True)
