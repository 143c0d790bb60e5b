"""Define `token`, which manages API keys for network access."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

import byheart
from byheart.interfaces.cli.options import flag
from byheart.interfaces.cli.screen import Column, Part, Screen, open_screen, print_json
from byheart.interfaces.cli.store import open_store, settings_of
from byheart.interfaces.cli.verb import Invocation, VerbGroup
from byheart.model import ACCESSES, VOICES, ApiKey, CreatedApiKey, KeyPurpose
from byheart.system import clock

_PURPOSES: Mapping[KeyPurpose, str] = {"key": "program", "login": "browser", "code": "login code"}


@click.group("token", cls=VerbGroup, examples=("byheart token create laptop", "byheart token list"))
def token_command() -> None:
    """Create, list and revoke API keys, and end logins of browsers.

    A key or login gives access to one space only. byheart open creates logins.
    """


@token_command.command(
    "create",
    examples=(
        "byheart token create laptop",
        "byheart token create dashboard --access read --ttl-days 30",
        "byheart token create helper --session-id s1 --space work",
        "byheart token create chat-app --voice user",
    ),
)
@click.argument("name")
@flag(
    "--access",
    type=click.Choice(ACCESSES),
    default="write",
    show_default=True,
    help="Whether the key may read only, or also write.",
)
@flag(
    "--voice",
    type=click.Choice(VOICES),
    default="agent",
    show_default=True,
    help="Whose words it may save: also the user's, an agent's, or a stranger's, which wait for "
    "review; a stranger changes nothing else.",
)
@flag("--session-id", "-s", metavar="ID", help="Restrict the key to this session.")
@flag(
    "--ttl-days", type=float, metavar="DAYS", help="Days until the key expires; by default never."
)
@click.pass_obj
def create_token(invocation: Invocation, /, **given: Any) -> None:
    """Create an API key for --space, and show its secret once.

    Only a hash of the secret is stored.
    """
    with byheart.open(settings=settings_of(invocation)) as store:
        created = store.api_keys.create(**given)
    if invocation.json:
        print_json(created)
    elif sys.stdout.isatty():
        _show_created(open_screen(), created)
    else:
        click.echo(created.secret)


@token_command.command(
    "list", examples=("byheart token list", "byheart token list --space work --json")
)
@click.pass_obj
def list_tokens(invocation: Invocation) -> None:
    """List the API keys and logins of all spaces, or of --space, oldest first."""
    with open_store(invocation) as store:
        keys = store.api_keys.list(invocation.space)
    if invocation.json:
        print_json(keys)
        return
    if not keys:
        click.echo("There are no API keys. Create one with: byheart token create NAME")
        return
    screen = open_screen()
    screen.table(
        (
            Column("NAME", style="name"),
            Column("FOR"),
            Column("ACCESS"),
            Column("VOICE"),
            Column("SPACE"),
            Column("SESSION"),
            Column("MADE"),
            Column("USED"),
            Column("EXPIRES"),
            Column("ID", wide=True, style="dim"),
        ),
        [
            (
                key.name,
                _PURPOSES[key.purpose],
                key.access,
                key.voice,
                key.space,
                key.session_id or "-",
                screen.moment(key.created_at),
                screen.moment(key.last_used_at) or "never",
                _expiry(screen, key),
                key.token_id,
            )
            for key in keys
        ],
    )


@token_command.command("revoke", examples=("byheart token revoke laptop",))
@click.argument("token", metavar="NAME_OR_ID")
@click.pass_obj
def revoke_token(invocation: Invocation, /, token: str) -> None:
    """Revoke an API key, or end a login, by its name or id.

    Every server refuses it at once. A leaked secret can be given instead of the name.
    """
    with open_store(invocation) as store:
        revoked = store.api_keys.revoke(token)
    if invocation.json:
        print_json(revoked)
    else:
        open_screen().line(
            Part("✓", "good"), "revoked", Part(revoked.name, "name"), Part(revoked.token_id, "dim")
        )


def _show_created(screen: Screen, created: CreatedApiKey) -> None:
    key = created.token
    screen.line(Part("✓", "good"), Part(key.name, "name"), _bounds(key))
    # Printed directly, because a wrapped secret could not be copied.
    click.echo(created.secret)
    screen.line(Part("This is shown only once. Send it as: Authorization: Bearer SECRET", "dim"))


def _bounds(key: ApiKey) -> str:
    session = f", session {key.session_id}" if key.session_id else ""
    until = f", until {key.expires_at.astimezone():%Y-%m-%d %H:%M}" if key.expires_at else ""
    voice = f" as {key.voice}" if key.access == "write" else ""
    return f"may {key.access}{voice} in space {key.space}{session}{until}"


def _expiry(screen: Screen, key: ApiKey) -> str:
    if key.expires_at is None:
        return "never"
    gone = "expired " if key.expires_at <= clock.now() else ""
    return gone + screen.moment(key.expires_at)
