"""Spell the operations of a hint as calls of tools."""

from __future__ import annotations

from byheart.errors import Option, Private, Step
from byheart.interfaces.mcp.tool_texts import TOOLS
from byheart.interfaces.operations.hints import (
    describe_step,
    find_operation,
    name_arguments,
    write_arguments,
    write_option,
)

# The tool that serves the same purpose as a verb without a tool.
_INSTEAD = {"list": 'memory_search with {"granularity": "coarse"}'}


def spell_tool(step: Step) -> str:
    """Spell an operation as a tool with its arguments."""
    if isinstance(step, Private):
        return step.text
    if isinstance(step, Option):
        return write_option(step)
    given = name_arguments(step)
    for tool in TOOLS:
        if (
            given is not None
            and tool.verb == find_operation(step)
            and given.keys() <= {*tool.parameters}
        ):
            return f"{tool.name} with {write_arguments(given)}" if given else tool.name
    if step.verb in _INSTEAD:
        return _INSTEAD[step.verb]
    return f"{describe_step(step)}, which no tool offers: ask the user to run it"


def spell_publicly(step: Step) -> str:
    """Spell an operation for a caller over the network, who does not learn where the store is."""
    return step.instead if isinstance(step, Private) else spell_tool(step)
