"""Define the shared parts of all verbs: the store, the output format, and the help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from byheart.startup.dataclass_types import dataclass

OPTIONS, EVERYWHERE = "Options", "For every command"
_LONGEST_SENTENCE = 200


@dataclass(frozen=True, slots=True)
class Invocation:
    """Hold the options that apply to the whole command, given before or after the verb."""

    db: str | None = None
    space: str | None = None
    json: bool = False
    debug: bool = False


class Flag(click.Option):
    """Define an option with the help section it belongs to."""

    def __init__(self, *names: Any, section: str = OPTIONS, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section


class _Helpful(click.Command):
    """Add the options of every verb, and format the help: options by section, then examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.params += everywhere()

    def get_help_option_names(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
    ) -> list[str]:
        """Name both spellings in every context, because click keeps the option of its first use."""
        return ["-h", "--help"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped by section."""
        for section, rows in option_rows(self, ctx).items():
            with formatter.section(section):
                formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the examples, one per line, as they are typed."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")


class Verb(_Helpful):
    """Define a verb with examples and the options that every verb has."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take leading arguments by name as well: `context --session-id s1` is `context s1`."""
        return super().parse_args(ctx, self._place_named(args))

    def _place_named(self, args: list[str]) -> list[str]:
        options = {name for param in self.params for name in param.opts}
        rest, placed = list(args), []
        for param in self.params:
            flag = f"--{param.name}".replace("_", "-")
            if not isinstance(param, click.Argument) or param.nargs != 1 or flag in options:
                break
            value = _take_value(rest, flag)
            if value is None:
                break
            placed.append(value)
        return placed + rest

    def get_short_help_str(self, limit: int = _LONGEST_SENTENCE) -> str:
        """Return the complete first sentence; lists wrap long lines."""
        return super().get_short_help_str(max(limit, _LONGEST_SENTENCE))


class VerbGroup(_Helpful, click.Group):
    """Define a group with its own verbs, such as `config`."""

    command_class = Verb


def _take_value(args: list[str], flag: str) -> str | None:
    """Remove a flag and its value from the arguments before `--`; return the value."""
    end = args.index("--") if "--" in args else len(args)
    for at, arg in enumerate(args[:end]):
        if arg == flag and at + 1 < end:
            del args[at]
            return args.pop(at)
        if arg.startswith(f"{flag}="):
            return args.pop(at).removeprefix(f"{flag}=")
    return None


def option_rows(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Collect the names and help texts of a command's options by section."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        row = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
        if row:
            section = param.section if isinstance(param, Flag) else EVERYWHERE
            sections.setdefault(section, []).append(row)
    return sections


def everywhere() -> list[click.Parameter]:
    """Build the options of every verb, which `byheart` itself also takes before the verb."""
    return [
        _shared(
            "--db",
            metavar="PATH_OR_URL",
            help="The file or address of the store; by default that of the settings.",
        ),
        _shared(
            "--space", metavar="NAME", help="The space; memories of other spaces are invisible."
        ),
        _shared("--json", is_flag=True, default=None, help="Answer in JSON, also for errors."),
        _shared("--debug", is_flag=True, default=None, help="Show the traceback of an error."),
    ]


def _shared(name: str, **settings: Any) -> Flag:
    return Flag([name], section=EVERYWHERE, expose_value=False, callback=_note, **settings)


def _note(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if ctx.obj is None:
        ctx.obj = Invocation()
    if value is not None and param.name is not None:
        ctx.obj = replace(ctx.obj, **{param.name: value})
