"""Define `config`, which shows the settings with their sources, and changes them."""

from __future__ import annotations

import click

from byheart.interfaces.cli.screen import Column, open_screen, print_json, warn
from byheart.interfaces.cli.store import overrides
from byheart.interfaces.cli.verb import Invocation, VerbGroup
from byheart.settings import (
    SettingRow,
    default_config_path,
    describe_settings,
    require_known,
    set_setting,
    setting_keys,
    unknown_variables,
    unset_setting,
)


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [key for key in setting_keys() if key.startswith(incomplete)]


key_argument = click.argument("key", shell_complete=_complete)


@click.group("config", cls=VerbGroup, examples=("byheart config list",))
def config_command() -> None:
    """Show and change settings.

    Flags override BYHEART_* variables, these override the config file, and that the defaults.
    """


@config_command.command("list", examples=("byheart config list", "byheart config list --json"))
@click.pass_obj
def list_settings(invocation: Invocation) -> None:
    """List every setting with its value and source.

    The source is flag, environment, file or default; `--json` also names the variable or the path.
    """
    rows = describe_settings(overrides(invocation))
    if invocation.json:
        print_json(rows)
        return
    open_screen().table(
        (Column("KEY", style="name"), Column("SOURCE", style="dim"), Column("VALUE", wide=True)),
        [(row.key, _kind_of(row.source), _shown(row.value)) for row in rows],
    )
    for name, nearest in unknown_variables().items():
        meant = f": did you mean {nearest}?" if nearest else ""
        warn(invocation, f"the variable {name} is no setting{meant}")


@config_command.command("get", examples=("byheart config get db_path",))
@key_argument
@click.pass_obj
def get_setting(invocation: Invocation, key: str) -> None:
    """Print the value of one setting."""
    require_known(key, "config get")
    row = _row(invocation, key)
    if invocation.json:
        print_json(row)
    else:
        click.echo(_shown(row.value))


@config_command.command(
    "set",
    examples=("byheart config set chunk_tokens 300", "byheart config set log_level info"),
)
@key_argument
@click.argument("value")
@click.pass_obj
def write_setting(invocation: Invocation, key: str, value: str) -> None:
    """Write one setting into the config file."""
    path = set_setting(key, value)
    row = _row(invocation, key)
    if row.source.startswith("environment"):
        warn(invocation, f"the file says so now, but the {row.source} wins over it")
    if invocation.json:
        print_json(row)
    else:
        open_screen().line(f"{key} is set in {path}")


@config_command.command("unset", examples=("byheart config unset chunk_tokens",))
@key_argument
@click.pass_obj
def remove_setting(invocation: Invocation, key: str) -> None:
    """Remove one setting from the config file."""
    removed = unset_setting(key)
    if invocation.json:
        print_json({"key": key, "removed": removed})
        return
    path = default_config_path()
    message = f"{key} is removed from" if removed else f"{key} was not set in"
    open_screen().line(f"{message} {path}")


@config_command.command("path", examples=("byheart config path",))
@click.pass_obj
def show_path(invocation: Invocation) -> None:
    """Print the path of the config file, even if it does not exist."""
    path = str(default_config_path())
    if invocation.json:
        print_json({"path": path})
    else:
        click.echo(path)


def _row(invocation: Invocation, key: str) -> SettingRow:
    return next(row for row in describe_settings(overrides(invocation)) if row.key == key)


def _kind_of(source: str) -> str:
    """Shorten a source to its kind: the path of the file would take the room of the value."""
    return source.partition(" ")[0]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
