"""Define `serve`, which gives people and programs access over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

import byheart
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import print_json
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb

if TYPE_CHECKING:  # keeps the server out of the import of the help
    from byheart.interfaces.rest import Listening
    from byheart.settings import Settings
    from byheart.store import MemoryStore


@click.command(
    "serve",
    cls=Verb,
    examples=(
        "byheart serve",
        "byheart serve --port 9000 --quiet",
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
@flag("--quiet", "-q", is_flag=True, help="Do not log requests.")
@click.pass_obj
def serve_command(
    invocation: Invocation, /, serve_host: str | None, serve_port: int | None, quiet: bool
) -> None:
    """Serve the web page and REST over HTTP until Ctrl-C, and MCP at /mcp.

    byheart open logs your browser in to the page. The page /docs describes the REST API; its
    callers need an API key: byheart token create NAME. Hosts, origins and limits are settings.
    """
    settings = settings_of(invocation, serve_host=serve_host, serve_port=serve_port)

    def tell(listening: Listening) -> None:
        if invocation.json:
            print_json(listening)
        else:
            _show(listening)

    with byheart.open(settings=settings) as store:
        serve_store(store, settings, tell, quiet=quiet)


def serve_store(
    store: MemoryStore, settings: Settings, tell: Callable[[Listening], None], *, quiet: bool
) -> None:
    """Serve a store with all interfaces, and announce where, until a signal says to stop."""
    from byheart.interfaces.hooks.service import HookService
    from byheart.interfaces.mcp.http import McpOverHttp
    from byheart.interfaces.rest import Work, serve
    from byheart.interfaces.web import Announcement, page_routes

    work = Work(settings)
    agents = McpOverHttp(store, settings, work)
    announcement = Announcement(store.location)

    def announce(listening: Listening) -> None:
        announcement.publish(listening.page_url)
        tell(listening)

    hooks = HookService(store, settings)
    hooks.start()
    try:
        serve(
            store,
            settings,
            on_listening=announce,
            mounts=[agents.route, *page_routes(store, work, announcement.key)],
            lifespan=agents.lifespan,
            work=work,
            quiet=quiet,
        )
    finally:
        announcement.withdraw()
        hooks.close()


def _show(listening: Listening) -> None:
    url = click.style(listening.url, bold=True)
    click.echo(f"Byheart listens on {url} (stop it with Ctrl-C)", err=True)
    click.echo("Open the web page with: byheart open", err=True)
    click.echo(f"The REST API: {listening.url}/docs", err=True)
    if not listening.tokens:
        click.echo("There is no API key yet. Create one with: byheart token create NAME", err=True)
    if listening.warning:
        click.echo(f"{click.style('warning:', fg='yellow')} {listening.warning}", err=True)
