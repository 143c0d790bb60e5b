"""Spell the operations of a hint as requests."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from byheart.errors import Option, Private, Step
from byheart.interfaces.operations.hints import (
    describe_step,
    find_operation,
    name_arguments,
    write_arguments,
    write_option,
)
from byheart.interfaces.rest.routes import ROUTES


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
