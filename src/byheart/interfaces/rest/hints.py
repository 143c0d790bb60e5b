"""Spell the operations of a hint as requests, and for people on the page as screens or commands."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from byheart.errors import Option, Private, Spelling, Step
from byheart.interfaces.commands import spell_command
from byheart.interfaces.operations import LOGIN, Grant
from byheart.interfaces.operations.hints import (
    describe_step,
    find_operation,
    name_arguments,
    write_arguments,
    write_option,
)
from byheart.interfaces.rest.routes import ROUTES

# Where the page offers an operation; all others are commands in a terminal.
_ON_PAGE = {
    "search": "the search of this page",
    "list": "the lists of this page",
    "get": "its page",
    "restore": "the button Restore on its page",
    "update": "the button Edit on its page",
    "supersede": "the button Supersede on its page",
    "review.queue": "the screen Review",
    "receipts.list": "the screen Context",
    "entities.list": "the filter Entities",
    "admin.stats": "the screen Figures",
}


def spell_request(step: Step) -> str:
    """Spell an operation as a method and a path, with its parameters.

    Private texts are left out: a caller over the network does not learn where the store is.
    """
    if isinstance(step, Private):
        return step.instead
    if isinstance(step, Option):
        return write_option(step)
    given = name_arguments(step)
    for route in ROUTES if given is not None else ():
        rest = {name: value for name, value in (given or {}).items() if name not in route.in_path}
        in_path = {name: given[name] for name in route.in_path if given and name in given}
        if (
            route.operation.name != find_operation(step)
            or len(in_path) < len(route.in_path)
            or not rest.keys() <= route.parameters.keys()
        ):
            continue
        path = route.path.format(
            **{name: quote(str(value), safe="") for name, value in in_path.items()}
        )
        if rest and route.has_body:
            return f"{route.method} {path} with {write_arguments(rest)}"
        return f"{route.method} {path}" + (f"?{urlencode(rest)}" if rest else "")
    return f"{describe_step(step)}, which the operator of the store can run"


def spell_on_page(step: Step) -> str:
    """Spell an operation for a person who sees the page: a screen, or else a command."""
    if isinstance(step, Private):
        return step.instead
    if isinstance(step, Option):
        return f"{step.name} {step.value}"
    return _ON_PAGE.get(step.verb) or spell_command(step)


def spelling_for(grant: Grant | None) -> Spelling:
    """Choose the spelling for a caller: people have a login, programs an API key."""
    return spell_on_page if grant is not None and grant.shown == LOGIN else spell_request
