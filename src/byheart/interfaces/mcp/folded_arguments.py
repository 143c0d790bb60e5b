"""Unfold what a tool's short schema folds together: filters, fields to empty, and other verbs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from byheart.errors import InvalidInput
from byheart.interfaces.mcp.hints import spell_tool
from byheart.interfaces.mcp.tool_texts import OTHER_ANSWERS, ToolText
from byheart.interfaces.operations import OPERATIONS, Grant, perform
from byheart.model.checks import check_labels, check_names
from byheart.store import MemoryStore

Wire = dict[str, Any]

# Arguments of other memory servers, by tool, and the argument that each one means.
_OTHER_ARGUMENTS: Mapping[str, Mapping[str, str]] = {"memory_recall": {"type": "kind"}}


def unfold(tool: ToolText, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Put the filters of `filters` and the fields of `clear` among the other arguments."""
    renamed = _OTHER_ARGUMENTS.get(tool.name, {})
    given = {renamed.get(name, name): value for name, value in arguments.items()}
    if tool.core_filters:
        for name, value in _filters(given.pop("filters", None)).items():
            if given.get(name) not in (None, value):
                raise InvalidInput(f"{name} is given twice", "give it inside of filters or outside")
            given[name] = value
    if "clear" in tool.own:
        names = check_labels("clear", given.pop("clear", None) or ())
        check_names(names, tool.parameters, f"field of {tool.name}")
        given |= dict.fromkeys(names)
    return given


def _filters(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value or "{}")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(
            f"filters must be an object, not {value!r}", 'give it as {"kind": ["fact"]}'
        )
    return value


def answer_otherwise(
    store: MemoryStore, tool: ToolText, given: dict[str, Any], grant: Grant
) -> tuple[Wire, str] | None:
    """Call the verb that an argument asks for instead of the tool's own; give answer and text."""
    argument, verb = OTHER_ANSWERS.get(tool.name, ("", ""))
    asked = given.pop(argument, None)
    if not asked:
        return None
    memory_id = given.get("memory_id")
    if not isinstance(memory_id, str):
        raise InvalidInput(f"{argument} needs one memory_id", "name one memory, not several")
    others = sorted(given.keys() - {"memory_id", "origin", "reason"})
    if others:
        raise InvalidInput(
            f"{argument} cannot be combined with {', '.join(others)}", "make two calls of it"
        )
    if verb == "history":
        entries = perform(store, OPERATIONS[verb], {"memory_id": memory_id}, grant, spell_tool)
        return {"history": entries}, "\n".join(map(_told, entries))
    if verb == "supersede":
        of_verb = {"memory_id": memory_id, "by": asked, "reason": given.get("reason")}
        perform(store, OPERATIONS[verb], of_verb, grant, spell_tool)
        text = f"{memory_id} is marked as replaced by {asked}."
        return {"memory_id": memory_id, "superseded_by": asked}, text
    perform(store, OPERATIONS[verb], {"memory_id": memory_id}, grant, spell_tool)
    return {"memory_ids": [memory_id], "count": 1, "restored": True}, f"restored: {memory_id}"


def _told(entry: Wire) -> str:
    reason = f": {entry['reason']}" if entry.get("reason") else ""
    return f"{entry['at']}  {entry['operation']}  by {entry['who']}{reason}"
