"""Define `mcp`, the server that an AI client starts as its own process."""

from __future__ import annotations

import os
import sys

import click

from byheart.interfaces.cli.verb import Invocation, Verb


@click.command(
    "mcp",
    cls=Verb,
    examples=(
        "byheart mcp",
        "byheart --space work mcp",
    ),
)
@click.pass_obj
def mcp_command(invocation: Invocation) -> None:
    """Serve one AI client over stdin and stdout (Model Context Protocol).

    AI clients start and stop this command by themselves; byheart setup CLIENT configures them.
    Several clients can use one store at once.
    """
    if sys.stdin.isatty():
        click.echo(
            "waiting for an AI client on stdin; to register this server with one: "
            "byheart setup CLIENT (end with Ctrl-D)",
            err=True,
        )
    from byheart.interfaces.mcp.parent import leave_with_parent

    # This runs before the protocol loads, which takes a second: the parent may be gone by then.
    leave_with_parent(lambda: os._exit(0))
    from byheart.interfaces.mcp.lazy_store import Opened
    from byheart.interfaces.mcp.stdio import serve_stdio
    from byheart.interfaces.mcp.tool_texts import ToolProfile, tool_profile

    def open_store() -> Opened:
        import byheart
        from byheart.interfaces.cli.store import settings_of

        settings = settings_of(invocation)
        return Opened(byheart.open(settings=settings), settings)

    def profile_of() -> ToolProfile:
        from byheart.interfaces.cli.store import overrides
        from byheart.settings import load_settings

        return tool_profile(load_settings(overrides(invocation)))

    serve_stdio(open_store, profile_of)
