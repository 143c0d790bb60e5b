"""Call a tool, and give its answer in bounded size, as an object and as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from byheart.errors import InvalidInput
from byheart.interfaces.mcp.answer_text import write_text
from byheart.interfaces.mcp.bounding import Bound
from byheart.interfaces.mcp.folded_arguments import answer_otherwise, unfold
from byheart.interfaces.mcp.hints import spell_tool
from byheart.interfaces.mcp.reading_arguments import leave_out_empty, read_arguments
from byheart.interfaces.mcp.resources import memory_at, memory_uri
from byheart.interfaces.mcp.tool_texts import BY_NAME, NULL_MEANS_CLEAR, ToolText, load_definitions
from byheart.interfaces.operations import OPERATIONS, Grant, OnProgress, perform
from byheart.model import usual_origin
from byheart.model.checks import check_int, check_names
from byheart.model.compat_names import COMPAT_FIELDS, COMPAT_NAMES
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

Wire = dict[str, Any]
Text = str | None
_LONGEST_TITLE = 100
_INPUTS: Mapping[str, Wire] = {
    each["name"]: each["inputSchema"] for each in load_definitions("full")
}
_SHOWN: Mapping[str, frozenset[str]] = {
    each["name"]: frozenset(each["inputSchema"]["properties"]) for each in load_definitions("core")
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold the answer of a tool: an object for programs, and text for readers."""

    structured: Wire
    text: str


def call_tool(
    store: MemoryStore,
    name: str,
    arguments: Mapping[str, Any],
    grant: Grant,
    max_tokens: int,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Call a tool, and keep its answer within `max_tokens`."""
    tool = BY_NAME[name]
    others = _other_names(tool)
    schema, all_sent = _INPUTS[name], arguments.keys() >= _SHOWN[name]
    arguments = leave_out_empty(unfold(tool, arguments), schema["required"], all_sent=all_sent)
    check_names(arguments, (*tool.parameters, *others), f"argument of {name}")
    given = {
        key: value
        for key, value in read_arguments(arguments, schema["properties"] | others).items()
        if value is not None or tool.verb in NULL_MEANS_CLEAR
    }
    if name == "memory_search" and not given.get("query"):
        given.setdefault("granularity", "coarse")  # a listing
    for required in schema["required"]:
        # An API key that is bound to a session supplies the session_id.
        if required not in given and not (required == "session_id" and grant.session_id):
            meaning = schema["properties"][required]["description"]
            raise InvalidInput(f"{name} needs {required}", f"give {required}: {meaning}")
    for named in ("memory_id", "id"):
        if isinstance(given.get(named), str):
            given[named] = memory_at(given[named])
    given |= _signed(tool.verb, given)
    bound = Bound(max_tokens)
    if (otherwise := answer_otherwise(store, tool, given, grant)) is not None:
        answer, text = otherwise
        kept = bound.keep(tool, given, answer)
        return Answer(kept, text if kept == answer else json.dumps(kept, ensure_ascii=False))
    if tool.verb == "context":
        # A context block must be assembled to fit, because it must not be cut. Half the bound
        # leaves room for the difference between its token counter and the bound's.
        wanted = given.get("max_tokens", store.settings.context_max_tokens)
        if isinstance(wanted, int):
            given["max_tokens"] = min(wanted, max_tokens // 2)
    if name == "search":
        return _search(store, given, grant)
    if name == "fetch":
        return _fetch(store, given, grant, bound)
    answer = _perform(store, tool, given, grant, on_progress)
    shown_only = {name: answer.pop(name) for name in tool.only_in_text}
    structured = bound.keep(tool, given, answer)
    if others.keys() & given.keys():
        _name_as_asked(tool, given, structured)
    whole = structured if structured.get("truncated") else structured | shown_only
    return Answer(structured, write_text(tool, given, whole))


def _other_names(tool: ToolText) -> Mapping[str, Wire]:
    """Return the compatibility names that a tool takes beside those of its schema."""
    parameters = OPERATIONS[tool.verb].parameters
    return {
        each.name: parameters[each.name].schema
        for each in COMPAT_NAMES.get(tool.verb, ())
        if each.name not in tool.parameters
    }


def _name_as_asked(tool: ToolText, given: Mapping[str, Any], answer: Wire) -> None:
    """Add the fields that callers of other systems expect: `count`, and the mode as `source`."""
    for name, means in COMPAT_FIELDS.get(tool.verb, {}).items():
        answer[name] = answer[means]
    if "source" in given:
        for hit in answer["results"]:
            hit["source"] = answer["mode"]


def _signed(verb: str, given: Mapping[str, Any]) -> Wire:
    """Return the origin `agent` where the usual rule would attribute the words to the user."""
    said = given.get
    if given.get("origin") is not None or verb not in ("save", "update"):
        return {}
    if verb == "update":
        return {"origin": "agent"} if "content" in given else {}
    usual = usual_origin(said("kind", ""), None, said("path"), said("agent_id"))
    return {"origin": "agent"} if usual == "user" else {}


def _perform(
    store: MemoryStore,
    tool: ToolText,
    given: Mapping[str, Any],
    grant: Grant,
    on_progress: OnProgress | None = None,
) -> Wire:
    for_verb = {key: value for key, value in given.items() if key not in tool.own}
    answer = perform(store, OPERATIONS[tool.verb], for_verb, grant, spell_tool, on_progress)
    if not isinstance(answer, dict):
        answer = {tool.verb: answer}  # the protocol wants an object
    if tool.verb == "context" and not answer["receipt"]["items"]:
        answer |= _without_items(answer["receipt"])
    answer = {name: each for name, each in answer.items() if name not in tool.leaves_out}
    if tool.verb == "get":
        answer = _from_start(store, answer, given, grant)
    lean: Wire = _without_nulls(answer)
    return lean


def _from_start(store: MemoryStore, memory: Wire, given: Mapping[str, Any], grant: Grant) -> Wire:
    """Start the text where the caller wants to read on: at a character or at a passage."""
    start = check_int("start_char", given.get("start_char", 0), 0, len(memory["content"]))
    name = given["memory_id"]
    if "#" in name or name.partition("@")[0] != memory["memory_id"]:  # a passage, or PATH:LINE
        asked = {"chunk_id": name, "around": 0}
        [chunk] = perform(store, OPERATIONS["expand"], asked, grant)["chunks"]
        start += chunk["start_char"]
    return memory | {"content": memory["content"][start:], "start_char": start}


def _without_items(receipt: Wire) -> Wire:
    """Explain why a block is empty: its frame alone would look like an answer."""
    reasons = [each["reason"] for each in receipt["left_out"]]
    if not reasons:
        remark = "nothing is known about this session"
    elif too_long := reasons.count("budget"):
        fits = f"none of {too_long} parts fits in {receipt['max_tokens']} tokens"
        remark = f"{fits}: ask for more"
    else:
        remark = f"nothing here seems to answer this; left out: {_count_each(reasons)}"
    return {"text": "", "remark": remark}


def _count_each(reasons: Sequence[str]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in Counter(reasons).items())


def _without_nulls(value: Any) -> Any:
    """Remove null fields: a model pays for every word, and null says nothing."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _search(store: MemoryStore, given: Mapping[str, Any], grant: Grant) -> Answer:
    """Answer in the form that ChatGPT's connectors and deep research expect."""
    found = perform(store, OPERATIONS["search"], {"query": given["query"]}, grant)
    by_memory = {
        hit["memory_id"]: {
            "id": hit["memory_id"],
            "title": (hit["title"] or hit["summary"])[:_LONGEST_TITLE],
            "url": memory_uri(hit["memory_id"]),
        }
        for hit in found["results"]
    }
    structured = {"results": list(by_memory.values())}
    return Answer(structured, json.dumps(structured, ensure_ascii=False))


def _fetch(store: MemoryStore, given: Mapping[str, Any], grant: Grant, bound: Bound) -> Answer:
    memory_id, tool = given["id"], BY_NAME["memory_get"]
    asked = {"memory_id": memory_id}
    memory = bound.keep(tool, asked, _perform(store, tool, asked, grant))
    metadata = {
        key: memory[key]
        for key in (
            "kind",
            "path",
            "session_id",
            "created_at",
            "updated_at",
            "truncated",
            "read_on",
        )
        if key in memory
    }
    structured = {
        "id": memory_id,
        "title": (memory.get("title") or memory["summary"])[:_LONGEST_TITLE],
        "text": memory["content"],
        "url": memory_uri(memory["memory_id"]),
        "metadata": metadata,
    }
    return Answer(structured, json.dumps(structured, ensure_ascii=False))
