"""Report errors as a message on stderr and an exit code."""

from __future__ import annotations

import errno
import json
import logging
import traceback
from dataclasses import asdict

import click

from byheart import errors
from byheart.errors import ByheartError
from byheart.interfaces.cli.hints import for_terminal
from byheart.startup.dataclass_types import dataclass

OK, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130

EXIT_CODES: dict[type[ByheartError], int] = {
    ByheartError: FAILURE,
    errors.InvalidInput: USAGE,
    errors.QuerySyntaxError: USAGE,
    errors.SettingsError: USAGE,
    errors.TooManyChunks: USAGE,
    errors.NotFound: FAILURE,
    errors.Conflict: FAILURE,
    errors.VersionConflict: FAILURE,
    errors.Unreadable: FAILURE,
    errors.NotText: FAILURE,
    errors.EmbeddingError: FAILURE,
    errors.EmbedderUnavailable: FAILURE,
    errors.ModelFilesError: FAILURE,
    errors.StoreError: FAILURE,
    errors.StoreBusy: FAILURE,
    errors.StoreDamaged: FAILURE,
    errors.StoreFull: FAILURE,
    errors.StoreReadOnly: FAILURE,
    errors.StoreTooNew: FAILURE,
    errors.StoreUnreachable: FAILURE,
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """Hold the message about an error for the user."""

    error: str
    message: str
    hint: str


def report(error: Exception, *, as_json: bool, debug: bool, color: bool | None) -> int:
    """Tell the user what happened and what to do next, and return the exit code."""
    complaint, code = _describe(error)
    # After the settings are read, log_level=debug has the same effect as --debug.
    debug = debug or logging.getLogger().isEnabledFor(logging.DEBUG)
    if debug and not isinstance(error, click.ClickException):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if as_json:
        click.echo(json.dumps(asdict(complaint), ensure_ascii=False), err=True)
        return code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a group alone shows its help
        click.echo(complaint.message, err=True)
        return code
    # Imported here: most commands succeed, and `--help` must not wait for it.
    from byheart.interfaces.cli.screen import printable

    label = click.style("error:", fg="red", bold=True)
    click.echo(f"{label} {printable(complaint.message)}", err=True, color=color)
    if complaint.hint:
        hint = f"{click.style('hint:', fg='cyan')} {printable(complaint.hint)}"
        click.echo(hint, err=True, color=color)
    return code


def _describe(error: Exception) -> tuple[Complaint, int]:
    name = type(error).__name__
    if isinstance(error, ByheartError):
        message, hint = for_terminal(error.message), for_terminal(error.hint)
        return Complaint(name, message, hint), _exit_code(error)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "byheart"
        message = error.format_message()
        if isinstance(error, click.BadParameter):  # click lists choices in lines of their own
            message = " ".join(message.split())
        return Complaint(name, message, f"see: {command} --help"), USAGE
    if isinstance(error, click.ClickException):
        return Complaint(name, error.format_message(), ""), error.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Complaint(name, "no space is left where the answer is written", ""), FAILURE
    return (
        Complaint(
            name,
            f"something unexpected went wrong: {name}: {error}",
            "this is a defect in Byheart: to see where, run it again with --debug",
        ),
        FAILURE,
    )


def _exit_code(error: ByheartError) -> int:
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
