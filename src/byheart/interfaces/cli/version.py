"""Define `version`, which prints the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib import metadata

import click

import byheart
from byheart.interfaces.cli.screen import Part, open_screen, print_json
from byheart.interfaces.cli.verb import Invocation, Verb

# Packages whose version explains most differences between machines.
_PARTS = ("apsw", "numpy", "onnxruntime", "mcp", "psycopg")


@click.command("version", cls=Verb, examples=("byheart version", "byheart version --json"))
@click.pass_obj
def version_command(invocation: Invocation) -> None:
    """Print the version of Byheart and of the parts that it uses."""
    own = byheart.__version__
    parts = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    parts |= {name: found for name in _PARTS if (found := _installed(name))}
    if invocation.json:
        print_json({"version": own, "parts": parts})
        return
    screen = open_screen()
    screen.line(Part(f"byheart {own}", "name"))
    screen.line(Part(", ".join(f"{name} {value}" for name, value in parts.items()), "dim"))


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None  # an extra that is not installed
