"""Define `open`, which logs a browser in to the web page."""

from __future__ import annotations

import errno
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

import byheart
from byheart.errors import ByheartError
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import print_json
from byheart.interfaces.cli.serve import serve_store
from byheart.interfaces.cli.store import settings_of
from byheart.interfaces.cli.verb import Invocation, Verb

if TYPE_CHECKING:  # keeps the server out of the import of the help
    from byheart.interfaces.rest import Listening
    from byheart.settings import Settings
    from byheart.store import MemoryStore


@click.command(
    "open",
    cls=Verb,
    examples=(
        "byheart open",
        "byheart open --space work --read-only",
        "byheart open --no-browser",
    ),
)
@flag("--read-only", is_flag=True, help="Log in for reading only.")
@flag("--no-browser", is_flag=True, help="Only print the address, for a browser of your choice.")
@click.pass_obj
def open_command(invocation: Invocation, /, read_only: bool, no_browser: bool) -> None:
    """Open the web page in your browser, logged in to --space.

    If no server runs on this store, start one, which runs until Ctrl-C. The address has a code that
    is valid for one minute and for one browser; the login lasts 12 hours. byheart token list shows
    all logins, and byheart token revoke ends one.
    """
    from byheart.interfaces.web import find_server

    settings = settings_of(invocation)
    with byheart.open(settings=settings) as store:

        def show(url: str, *, started: bool) -> None:
            code = store.logins.create_code("read" if read_only else "write", settings.space)
            address = f"{url}/#code={code.secret}"
            opened = not no_browser and webbrowser.open(address)
            if invocation.json:
                print_json({"url": address, "opened": opened, "started": started})
            else:
                _tell(address, opened=opened, started=started)

        running = find_server(store.location)
        if running is not None:
            show(running, started=False)
            return
        _serve(store, settings, lambda listening: show(listening.page_url, started=True))


def _serve(store: MemoryStore, settings: Settings, tell: Callable[[Listening], None]) -> None:
    """Start a server on the usual port, or on any if another program has it."""
    try:
        serve_store(store, settings, tell, quiet=True)
    except ByheartError as error:
        if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
            raise
        serve_store(store, replace(settings, serve_port=0), tell, quiet=True)


def _tell(address: str, *, opened: bool, started: bool) -> None:
    if opened:
        click.echo("The page opens in your browser. If it does not, open this address:", err=True)
    else:
        click.echo("Open this address in a browser within a minute:", err=True)
    click.echo(address)
    if started:
        click.echo("The server runs until Ctrl-C.", err=True)
