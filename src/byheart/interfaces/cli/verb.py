"""What all verbs share: where the store is, how to answer, and how help is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

OPTIONS, EVERYWHERE = "Options", "For every command"
_LONGEST_SENTENCE = 200


@dataclass(frozen=True, slots=True)
class Invocation:
    """What holds for the whole command, whether it stood before the verb or after it."""

    db: str | None = None
    space: str | None = None
    json: bool = False
    debug: bool = False


class Flag(click.Option):
    """An option that knows under which heading of the help it belongs."""

    def __init__(self, *names: Any, section: str = OPTIONS, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section


class _Helpful:
    """Lay out help: options by section, then examples that can be copied."""

    examples: tuple[str, ...]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of one section together."""
        for section, rows in option_rows(self, ctx).items():  # type: ignore[arg-type]
            with formatter.section(section):
                formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the examples, line by line as they are to be typed."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")


class Verb(_Helpful, click.Command):
    """A verb, with examples and with the options that every verb takes."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.params += everywhere()

    def get_short_help_str(self, limit: int = _LONGEST_SENTENCE) -> str:
        """Give the first sentence, whole: where it is listed, lines are wrapped."""
        return super().get_short_help_str(max(limit, _LONGEST_SENTENCE))


class VerbGroup(_Helpful, click.Group):
    """A noun with verbs of its own, such as `config`."""

    command_class = Verb

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.params += everywhere()


def option_rows(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Gather the names and meanings of a command's options by section."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        row = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
        if row:
            section = param.section if isinstance(param, Flag) else EVERYWHERE
            sections.setdefault(section, []).append(row)
    return sections


def everywhere() -> list[click.Parameter]:
    """Make the options that every verb takes, and `byheart` itself before the verb."""
    return [
        _shared("--db", metavar="PATH_OR_URL", help="The store; by default the one in settings."),
        _shared("--space", metavar="NAME", help="The space: nothing is seen of any other."),
        _shared("--json", is_flag=True, default=None, help="Answer in JSON, errors included."),
        _shared("--debug", is_flag=True, default=None, help="Show the traceback of an error."),
    ]


def _shared(name: str, **settings: Any) -> Flag:
    return Flag([name], section=EVERYWHERE, expose_value=False, callback=_note, **settings)


def _note(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if ctx.obj is None:
        ctx.obj = Invocation()
    if value is not None and param.name is not None:
        ctx.obj = replace(ctx.obj, **{param.name: value})
