"""Define the flags that several verbs share. Each is named after its parameter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from byheart.interfaces.cli.verb import OPTIONS, Flag
from byheart.model import ORIGINS
from byheart.transfer.decoding import decode

FILTERS = "Filters"
Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]

KINDS = (
    *("note", "fact", "entity", "relationship", "self", "session_context", "input_prompt"),
    *("system_memory", "report", "report_observation", "working_memory", "knowledge_base"),
    *("message", "tool_output", "file", "session_summary"),
)


def complete_kind(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the usual kinds; any other slug is allowed too."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def complete_origin(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Offer the existing origins."""
    return [origin for origin in ORIGINS if origin.startswith(incomplete)]


def flag(*names: str, section: str = OPTIONS, **settings: Any) -> Decorator[Any]:
    """Add an option to a verb."""
    return click.option(*names, cls=Flag, section=section, **settings)


def read_query(query: Sequence[str]) -> str:
    """Join the words of a question; a single "-" means stdin."""
    return decode(sys.stdin.buffer.read(), "stdin") if tuple(query) == ("-",) else " ".join(query)


def name_list(*names: str, section: str = OPTIONS, **settings: Any) -> Decorator[Any]:
    """Add an option for several names to a verb: repeated, or separated by commas."""
    return flag(
        *names, section=section, multiple=True, callback=_split, metavar="NAME[,NAME]", **settings
    )


def together(*options: Decorator[Any]) -> Decorator[Any]:
    """Combine several decorators into one, in the order in which help shows them."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _split(
    _ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
) -> list[str] | None:
    names = [name.strip() for each in value for name in each.split(",")]
    return [name for name in names if name] or None


def origin(section: str) -> Decorator[Any]:
    """Add `--origin` to a verb."""
    return flag(
        "--origin",
        section=section,
        metavar="ORIGIN",
        shell_complete=complete_origin,
        help="Whose words: user, agent, tool, file or import; told by role and kind if not given.",
    )


def importance(section: str) -> Decorator[Any]:
    """Add `--importance` to a verb."""
    return flag(
        *("--importance", "-i"),
        section=section,
        type=float,
        metavar="0-10",
        help="How much it matters; reckoned if not given.",
    )


def metadata(section: str) -> Decorator[Any]:
    """Add `--metadata` to a verb."""
    return flag(
        "--metadata", section=section, metavar="JSON", help="Anything else, as a JSON object."
    )


def page(limit: int) -> Decorator[Any]:
    """Add `--limit` and `--offset` to a verb."""
    return together(
        flag(
            *("--limit", "-n", "--top-k", "limit"),
            type=int,
            default=limit,
            show_default=True,
            metavar="N",
            help="How many at most.",
        ),
        flag("--offset", type=int, default=0, metavar="N", help="How many to skip first."),
    )


_origins = name_list(
    "--origin",
    section=FILTERS,
    shell_complete=complete_origin,
    help="Only of these origins: user, agent, tool, file, import.",
)
_kinds = name_list(
    "--kind", "-k", section=FILTERS, shell_complete=complete_kind, help="Only these kinds."
)
_details = (
    _origins,
    flag("--agent-id", "-a", section=FILTERS, metavar="ID", help="Only of this agent."),
    flag("--session-iter", section=FILTERS, metavar="N", help="Only of this iteration: 2 or v2."),
    flag("--task-code", section=FILTERS, metavar="CODE", help="Only of this task."),
    name_list("--tags", "-t", section=FILTERS, help="Only with these tags."),
    name_list("--entities", "-e", section=FILTERS, help="Only about these entities."),
    flag(
        "--match",
        section=FILTERS,
        type=click.Choice(["any", "all"]),
        default="any",
        show_default=True,
        help="Whether one of the tags and entities is enough.",
    ),
    flag("--path", section=FILTERS, metavar="GLOB", help="Only saved under such a path."),
    flag("--min-importance", section=FILTERS, type=float, metavar="0-10", help="At least this."),
    flag("--created-after", section=FILTERS, metavar="DATE", help="Saved at or after this time."),
    flag("--created-before", section=FILTERS, metavar="DATE", help="Saved before this time."),
    flag("--include-expired", section=FILTERS, is_flag=True, help="Also what has expired."),
)

_as_of = flag("--as-of", section=FILTERS, metavar="DATE", help="With the texts of this time.")

# Filters for reading: a session also sees global memories.
filters = together(
    _kinds,
    flag("--session-id", "-s", section=FILTERS, metavar="ID", help="This session, and global."),
    flag(
        "--include-global/--no-include-global",
        section=FILTERS,
        default=True,
        help="With --session-id: also what belongs to no session (the default).",
    ),
    *_details,
    _as_of,
)
# Filters for reading in a session that is already named.
session_filters = together(
    _kinds,
    flag(
        "--include-global/--no-include-global",
        section=FILTERS,
        default=True,
        help="Also what belongs to no session (the default).",
    ),
    *_details,
    _as_of,
)
# Filters for changes: a session's own memories, in their current version.
own_filters = together(
    _kinds,
    flag("--session-id", "-s", section=FILTERS, metavar="ID", help="Only this session's own."),
    *_details,
)
