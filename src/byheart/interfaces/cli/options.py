"""Define the flags that several verbs share. Each is named after its parameter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from byheart.interfaces.cli.verb import OPTIONS, Flag
from byheart.model import MODES
from byheart.model.compat_names import other_flags
from byheart.model.field_types import Flag as Described
from byheart.model.field_types import arrange
from byheart.model.fields import BY_NAME, FILTERS, KINDS
from byheart.transfer.decoding import decode

FILTERS_SECTION = "Filters"
Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_with(words: Sequence[str]) -> Complete:
    """Have a shell offer words; a value may still be another one."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


complete_kind = complete_with(KINDS)


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


def _read_pairs(
    _ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
) -> dict[str, Any] | None:
    """Read KEY=VALUE, where a value that is JSON has its type and any other is a text."""
    found: dict[str, Any] = {}
    for each in value:
        key, sign, text = each.partition("=")
        if not sign:
            raise click.BadParameter(f"{each!r} has no value: give KEY=VALUE")
        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError):
            found[key] = text
    return found or None


def described_flag(
    name: str, described: Described, section: str, **settings: Any
) -> Decorator[Any]:
    """Give a verb the flag that the table of fields describes."""
    long = f"--{name.replace('_', '-')}"
    names = [long] if described.short is None else [long, described.short]
    settings = {"section": section, "help": described.help, **settings}
    if described.usual and described.takes != "choice":
        settings["shell_complete"] = complete_with(described.usual)
    if described.takes == "names":
        return name_list(*names, **settings)
    if described.takes == "pairs":
        settings |= {"multiple": True, "callback": _read_pairs}
    elif described.takes == "number":
        settings["type"] = float
    elif described.takes == "choice":
        settings |= {"type": click.Choice(list(described.usual)), "show_default": True}
    elif described.takes == "switch":
        settings["is_flag"] = True
    elif described.takes == "either":
        names = [f"{long}/--no-{long.removeprefix('--')}"]
        settings.setdefault("default", None)
    return flag(*names, metavar=described.metavar, **settings)


def field_flag(name: str, section: str, **settings: Any) -> Decorator[Any]:
    """Give a verb the flag of a field of a memory."""
    described = BY_NAME[name].flag
    assert described is not None, f"{name} has no flag"
    return described_flag(name, described, section, **settings)


def turn_flag(name: str, section: str, **settings: Any) -> Decorator[Any]:
    """Give a verb the flag of a field, worded for a turn that is logged."""
    described = BY_NAME[name].flag
    help_ = {} if described is None or described.log_help is None else {"help": described.log_help}
    return field_flag(name, section, **help_, **settings)


def _filter_flags(left_out: Collection[str], **helps: str) -> Decorator[Any]:
    """Make the flags of all filters but some; `helps` says what differs in this verb."""
    flags = []
    for name in _FILTER_ORDER:
        asked, _ = FILTERS[name]
        if asked.flag is not None and name not in left_out:
            settings: dict[str, Any] = {"help": helps[name]} if name in helps else {}
            if asked.flag.takes in ("choice", "either"):
                settings["default"] = asked.default
            flags.append(described_flag(name, asked.flag, FILTERS_SECTION, **settings))
    return together(*flags)


def page(limit: int) -> Decorator[Any]:
    """Add `--limit` and `--offset` to a verb."""
    return together(
        flag(
            *("--limit", "-n", *other_flags("limit"), "limit"),
            type=int,
            default=limit,
            show_default=True,
            metavar="N",
            help="The largest number of results.",
        ),
        flag("--offset", type=int, default=0, metavar="N", help="The number of results to skip."),
    )


def search_mode(*other_names: str) -> Decorator[Any]:
    """Add `--mode` to a verb that searches."""
    return flag(
        *("--mode", "-m", *other_names, "mode"),
        type=click.Choice(MODES),
        default="hybrid",
        show_default=True,
        help="Search by meaning and keyword, by meaning, or by keyword.",
    )


def named_times() -> Decorator[Any]:
    """Add `--no-times` to a verb that prefers memories from a time in its question."""
    return flag(
        "--times/--no-times",
        default=True,
        help="Prefer memories from a time that QUERY names, such as last week (the default).",
    )


_FILTER_ORDER = arrange(
    tuple(FILTERS), {"origin": "scope", "source_label": "origin", "as_of": "include_expired"}
)

# Filters for reading: a session also sees global memories.
filters = _filter_flags(())
# Filters for reading in a session that is already named.
session_filters = _filter_flags(
    ("session_id",), include_global="Also what belongs to no session (the default)."
)
# Filters for reading untrusted memories.
untrusted_filters = _filter_flags(("trusted",))
# Filters for reading memories as they are now.
filters_of_now = _filter_flags(("as_of",))
# Filters for changes: a session's own memories, in their current version.
_OF_NOW = ("include_global", "as_of")
own_filters = _filter_flags(_OF_NOW, session_id="Only this session's own.")
# Filters for changes of trust.
own_review_filters = _filter_flags((*_OF_NOW, "trusted"), session_id="Only this session's own.")
