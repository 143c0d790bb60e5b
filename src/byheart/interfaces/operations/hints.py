"""Spell the operations that a hint names, as far as REST and MCP do it alike."""

from __future__ import annotations

import json
from typing import Any

from byheart.errors import Do, Option, Placeholder
from byheart.interfaces.operations.table import OPERATIONS

_BY_VERB = {operation.verb or name: name for name, operation in OPERATIONS.items()}


def find_operation(step: Do) -> str:
    """Return the operation that a verb of the store is; "" if no network interface has it."""
    return _BY_VERB.get(step.verb, "")


def name_arguments(step: Do) -> dict[str, Any] | None:
    """Return the arguments by their names; `None` if no interface over the network has the verb."""
    operation = find_operation(step)
    if not operation:
        return None
    names = OPERATIONS[operation].parameters
    return {**dict(zip(names, step.values, strict=False)), **step.options}


def write_arguments(arguments: dict[str, Any]) -> str:
    """Write arguments as a JSON object; the caller has to replace a placeholder."""
    return json.dumps(
        {
            name: "…" if isinstance(value, Placeholder) else value
            for name, value in arguments.items()
        },
        ensure_ascii=False,
    )


def write_option(option: Option) -> str:
    """Write a parameter of the call as JSON, without the braces of the object around it."""
    return write_arguments({option.name: option.value})[1:-1]


def describe_step(step: Do) -> str:
    """Describe an operation in words, for a caller who cannot do it."""
    options = [name if value is True else f"{name} {value}" for name, value in step.options.items()]
    verb = (find_operation(step) or step.verb.removeprefix("admin.")).strip("_")
    verb = verb.replace("_", " ").replace(".", ": ")
    said = " ".join((verb, *map(str, step.values), *(("with", *options) if options else ())))
    return f"the operation {said}"
