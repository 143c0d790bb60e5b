"""Generate docs/cli.md from the verbs: python -m byheart.interfaces.cli.reference."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from byheart.interfaces.cli.commands import GROUPS, VERBS, byheart
from byheart.interfaces.cli.errors import EXIT_CODES, FAILURE, INTERRUPTED, USAGE
from byheart.interfaces.cli.verb import EVERYWHERE, Verb, VerbGroup, option_rows

INTRODUCTION = """\
# The command line

<!-- Written by `python -m byheart.interfaces.cli.reference > docs/cli.md`; a test compares. -->

Every verb is a method of `MemoryStore`, every flag one of its parameters. The flags for every
command may be before the verb or after it. The first arguments may be given by name as well:
`context --session-id s1` is `context s1`.

- On a terminal answers have colour and fit its width, and long work shows a progress bar. In a
  pipe they are plain lines that do not change from run to run. `NO_COLOR` is honoured.
- `--json` prints one JSON document: the same object that the library returns. Times are in UTC.
- Answers go to stdout; warnings, remarks and errors to stderr. An error has a hint that
  says what to do; with `--json` it is `{"error": …, "message": …, "hint": …}`.
- Dates are ISO 8601, such as `2026-03-14` or `2026-03-14T09:30:00Z`; without an offset, UTC.
  Filters also take words: `7d`, `2 weeks ago`, `yesterday`, `last March`, `2026-11`, or
  `"this week Europe/Berlin"`. A period means its beginning.
"""


def render_reference() -> str:
    """Return the text of the whole page."""
    root = click.Context(byheart, info_name="byheart", **byheart.context_settings)
    parts = [INTRODUCTION, "\n".join(_exit_codes()), "\n".join(_overview())]
    parts.append("\n".join(_options("For every command", option_rows(byheart, root)[EVERYWHERE])))
    for name in VERBS:
        command = byheart.get_command(root, name)
        assert command is not None, "the table names verbs that exist"
        parts.append("\n".join(_command(command, root, name)))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _exit_codes() -> Iterator[str]:
    yield "| exit code | when |"
    yield "|---|---|"
    yield "| 0 | it is done; a search that finds nothing included |"
    for code in (FAILURE, USAGE):
        errors = ", ".join(f"`{kind.__name__}`" for kind, own in EXIT_CODES.items() if own == code)
        found = (
            "; `doctor` or `bench` found something; `transcript` or `resume` of an unknown session"
        )
        also = found if code == FAILURE else "; an unknown verb or flag"
        yield f"| {code} | {errors}{also} |"
    yield f"| {INTERRUPTED} | interrupted with Ctrl-C; what was saved before is kept |"


def _overview() -> Iterator[str]:
    yield "| verb | purpose |"
    yield "|---|---|"
    for heading, verbs in GROUPS.items():
        yield f"| **{heading}** | |"
        for name, entry in verbs.items():
            yield f"| [`{name}`](#byheart-{name}) | {entry.purpose} |"


def _command(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    ctx = click.Context(command, info_name=name, parent=parent)
    yield f"## {ctx.command_path}"
    yield ""
    yield cleandoc(command.help or "")
    yield ""
    yield f"    {' '.join([ctx.command_path, *command.collect_usage_pieces(ctx)])}"
    for section, rows in option_rows(command, ctx).items():
        if section != EVERYWHERE:
            yield ""
            yield from _options(section, rows)
    if isinstance(command, Verb) and command.examples:
        yield ""
        yield "```console"
        yield from (f"$ {example}" for example in command.examples)
        yield "```"
    if isinstance(command, VerbGroup):
        for each in command.list_commands(ctx):
            nested = command.get_command(ctx, each)
            assert nested is not None, "click lists commands that exist"
            yield ""
            yield from _command(nested, ctx, each)


def _options(section: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    yield f"| {section.lower()} | |"
    yield "|---|---|"
    for names, meaning in rows:
        yield f"| `{names.replace('|', chr(92) + '|')}` | {meaning} |"


if __name__ == "__main__":
    click.echo(render_reference(), nl=False)
