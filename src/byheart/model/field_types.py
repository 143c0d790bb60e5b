"""Define the columns of the table of a memory's fields, and help to fill and to order it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from byheart.model.schemas import Schema
from byheart.startup.dataclass_types import dataclass

Check = Callable[[str, Any], Any]
# How a value is stored: a moment as microseconds, a hash as bytes, words with commas between them.
# The labels of a memory are rows of tables of their own.
Codec = Literal["text", "whole", "number", "moment", "json", "hash", "words", "labels"]
# The object that has the field: a memory; one of its stored texts; or only a caller's request.
Owner = Literal["memory", "text", "request"]
# How a filter compares its value with the field. With `subtags`, `de` finds `de-AT` as well;
# `unset` asks whether the field has no value, `scope` whether there is a session, `pairs` for keys
# and values of an object. A modifier only changes what other filters mean.
Operator = Literal[
    "equals",
    "any_of",
    "subtags",
    "at_least",
    "below",
    "session",
    "scope",
    "pairs",
    "labels",
    "path",
    "unset",
    "modifier",
]
Verb = Literal["save", "update", "log"]


@dataclass(frozen=True, slots=True)
class Flag:
    """How the command line names a value; `usual` are the words that shells complete.

    A flag for names or for pairs can be repeated. `switch` takes no value, `either` has a `--no-`
    form as well.
    """

    help: str
    metavar: str | None = None
    short: str | None = None
    takes: Literal["text", "number", "names", "pairs", "choice", "switch", "either"] = "text"
    usual: Sequence[str] = ()
    # The help for a turn that is logged, where it differs.
    log_help: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One filter over a field: the name that callers give it, and how it compares."""

    name: str
    operator: Operator
    check: Check
    flag: Flag | None = None
    # The schema of the field, unless it differs.
    schema: Schema | None = None
    default: Any = None
    # Whether a value is always compared with, even if the caller gives none.
    always: bool = False
    # Whether few calls that change memories need it: tools for models leave it out of those.
    seldom: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a memory."""

    name: str
    codec: Codec
    owner: Owner = "memory"
    nullable: bool = False
    # Whether it holds any words of the caller, not a name or a value of a known form.
    free: bool = False
    # The column of `memories`; a field without one is put together by the database.
    column: bool = True
    # Whether a save writes the column; the others change in the life of a memory.
    written: bool = False
    # The array of the index that has one value for each memory.
    array: str | None = None
    # The verbs that accept the field, and how its value is checked there.
    verbs: tuple[Verb, ...] = ()
    check: Check | None = None
    default: Any = None
    # Whether it is derived from the text when it is not given.
    noticed: bool = False
    filters: tuple[Asked, ...] = ()
    schema: Schema | None = None
    flag: Flag | None = None
    # Whether every hit shows it.
    shown: bool = False
    # Whether an export says it of each text, or only where there is something to say.
    exported: Literal["always", "if given"] | None = None
    # Whether an import runs `check` as well, and whether exports of earlier versions lack it.
    checked_in_imports: bool = False
    new_in_imports: bool = False
    # The least whole number that an import takes; `None` allows negative numbers.
    least: int | None = 0
    # The name in the front matter of an exported file.
    front_matter: str | None = None


def unnamed(checked: Callable[[Any], Any]) -> Check:
    """Make a check of a function that does not need the name of the field."""
    return lambda _name, value: checked(value)


def arrange(names: Sequence[str], behind: Mapping[str, str]) -> tuple[str, ...]:
    """Move some names behind others; the rest keeps the order of the table."""
    arranged = list(names)
    for name, before in behind.items():
        if name in arranged:
            arranged.remove(name)
            arranged.insert(arranged.index(before) + 1, name)
    return tuple(arranged)
