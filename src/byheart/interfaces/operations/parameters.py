"""Define each parameter as JSON Schema; a name means the same in every verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.conversation.context import LARGEST_TOP_K
from byheart.model import FUSIONS, GRANULARITIES, MODES, ORIGINS
from byheart.model import checks as check

Schema = dict[str, Any]
_FILTERING_VERBS = (
    "search",
    "recall",
    "list",
    "forget",
    "cleanup",
    "dedupe",
    "context",
    "transcript",
)


def _text(description: str, **bounds: Any) -> Schema:
    return {"type": "string", "description": description, **bounds}


def _label(description: str) -> Schema:
    return _text(description, minLength=1, maxLength=check.LONGEST_LABEL)


def _place(description: str) -> Schema:
    return _text(description, minLength=1, maxLength=check.LONGEST_PATH)


def _labels(description: str) -> Schema:
    names = {"type": "string", "minLength": 1, "maxLength": check.LONGEST_LABEL}
    return {
        "type": "array",
        "items": names,
        "maxItems": check.MOST_LABELS,
        "description": description,
    }


def _whole(description: str, low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def _number(description: str, low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _moment(description: str) -> Schema:
    return _text(f"{description} ISO 8601; UTC if it names no zone.")


def _one_or_more(description: str, one: Schema) -> Schema:
    return {
        "anyOf": [one, {"type": "array", "items": one, "maxItems": check.MOST_LABELS}],
        "description": description,
    }


_SLUG = "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$"
_KIND = {
    "type": "string",
    "pattern": _SLUG,
    "maxLength": check.LONGEST_LABEL,
}
_ID = {"type": "string", "minLength": 1, "maxLength": check.LONGEST_LABEL}

PARAMETERS: Mapping[str, Schema] = {
    "query": _text("What to look for: a question or keywords.", maxLength=check.LONGEST_QUERY),
    "content": _text("The text, kept exactly as it is.", minLength=1),
    "limit": _whole("How many at most.", 1, check.LARGEST_LIMIT),
    "topK": _whole("Another name of limit.", 1, check.LARGEST_LIMIT),
    "offset": _whole("How many to skip first.", 0, check.LARGEST_OFFSET),
    "mode": _text("By meaning and keyword, by meaning, or by keyword.", enum=list(MODES)),
    "granularity": _text("Passages, sections or whole memories.", enum=list(GRANULARITIES)),
    "session_id": _label("A session: a search sees it and what is global, a save belongs to it."),
    "include_global": _flag("With session_id: also what belongs to no session."),
    "include_task": _label("A task code: what any session kept under it is retrieved as well."),
    "agent_id": _label("The agent it is of."),
    "session_iter": {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 10**9 - 1},
            {"type": "string", "pattern": r"^[vV]?[0-9]{1,9}$"},
        ],
        "description": "The iteration of the session: 2 or v2.",
    },
    "task_code": _label("The task it is of."),
    "tags": _labels("Tags."),
    "entities": _labels("What it is about: names of people, projects, things."),
    "match": _text("Whether one of the tags and entities is enough.", enum=["any", "all"]),
    "path": _text(
        "The path it has; when looking for it, a glob such as src/*.py.",
        minLength=1,
        maxLength=check.LONGEST_PATH,
    ),
    "min_importance": _number("At least this important.", 0, 10),
    "created_after": _moment("Saved at or after this time."),
    "created_before": _moment("Saved before this time."),
    "as_of": _moment("With the texts that were current at this time."),
    "include_expired": _flag("Also what has expired."),
    "raw": _flag("Take the query as SQLite FTS5 syntax."),
    "explain": _flag("Tell why each hit stands where it does."),
    "similarity_threshold": _number("Accepted; drops nothing.", -1, 1),
    "fusion": _text("How rankings are merged.", enum=list(FUSIONS)),
    "max_tokens": _whole("The budget of the answer in tokens.", 1, check.MOST_TOKENS),
    "memory_id": _label("The id of a memory, as answers give it."),
    "chunk_id": _label("The id of a passage: <memory_id>#<number>."),
    "around": _whole("How many passages on either side.", 0, check.LARGEST_LIMIT),
    "kind": {"description": "What it is: note, fact, report, message, file, …", **_KIND},
    "title": _text("A title.", minLength=1, maxLength=check.LONGEST_TITLE),
    "summary": _text(
        "One sentence; made from the text if not given.",
        minLength=1,
        maxLength=check.LONGEST_SUMMARY,
    ),
    "source": _label("Where it comes from."),
    "importance": _number("From 0 to 10; worked out from the text if not given.", 0, 10),
    "ttl_days": _number("Days until it expires; not given, never.", 0, check.LONGEST_TTL_DAYS),
    "expires_at": _moment("When it expires; not given, never."),
    "metadata": {"type": "object", "description": "Anything else that JSON can carry."},
    "expected_version": _whole(
        "Refuse the change if it is of another version by now.", 1, check.LARGEST_VERSION
    ),
    "reason": _text("Why, for the history.", minLength=1, maxLength=check.LONGEST_SUMMARY),
    "hard": _flag("Remove it for good, with every trace. Cannot be undone."),
    "dry_run": _flag("Only tell what would happen."),
    "older_than": {
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
        "description": "Only what was saved before so many days, or before a time.",
    },
    "by": _label("The id of the memory that holds instead."),
    "who": _label("Who does it, for the history."),
    "output_path": _text("Where to write it.", minLength=1, maxLength=check.LONGEST_OUTPUT_PATH),
    "include_metadata": _flag("Begin the file with what is known about the memory."),
    "overwrite": _flag("Replace a file that is there already."),
    "prefix": _label("Only names that begin so."),
    "forgotten": _flag("List what was forgotten instead."),
    "days_old": _number("What nobody needed for so many days.", 0, check.LONGEST_TTL_DAYS),
    "reset": _flag("Begin to count anew."),
    "keep": _label("The id of the memory to keep."),
    "others": _one_or_more("The id of a memory to merge into it, or several.", _ID),
    "threshold": _number("How alike two memories must be, as a cosine.", check.LEAST_THRESHOLD, 1),
    "apply": _flag("Do it; otherwise only propose."),
    "name": _label("A name."),
    "new_name": _label("The name it gets."),
    "names": _one_or_more("A name, or several.", _ID),
    "into": _label("The name that stays."),
    "role": _text("Who said it: user, assistant, system, tool, …", pattern=_SLUG, maxLength=200),
    "client_id": _label("Your own id of the turn: logging it again changes nothing."),
    "created_at": _moment("When it was said; not given, now."),
    "recent": _whole("How many of the latest turns to include.", 0, check.LARGEST_LIMIT),
    "top_k": _whole("How many passages to retrieve at most.", 0, LARGEST_TOP_K),
    "latest": _flag("Count from the end: the last turns, still in order."),
    "text": _text("The summary; not given, made from the turns.", minLength=1),
    "origin": _text("Whose words they are; not given, told by role and kind.", enum=list(ORIGINS)),
    "space": _label("The space; nothing is seen of any other."),
}

_KINDS = _one_or_more("Only this kind, or these.", _KIND)
# The description lists the origins. An enum would list them twice: for one value and for a list.
_ORIGINS = _one_or_more(f"Only of these origins: {', '.join(ORIGINS)}.", {"type": "string"})
# Parameters that accept more or less in one verb than in the others.
SPECIAL: Mapping[tuple[str, str], Schema] = {
    **{(verb, "kind"): _KINDS for verb in _FILTERING_VERBS},
    **{(verb, "origin"): _ORIGINS for verb in _FILTERING_VERBS},
    ("search", "source"): _text("Another name of mode.", enum=list(MODES)),
    ("transcript", "role"): _one_or_more(
        "Only of these roles.", {"type": "string", "pattern": _SLUG}
    ),
    ("log", "content"): _text("The text, kept exactly as it is; it may be empty."),
    **{
        (verb, "memory_id"): _one_or_more("The id of a memory, or several.", _ID)
        for verb in ("forget", "promote")
    },
    ("promote", "kind"): _KINDS,
    ("get", "memory_id"): _place("An id from an answer, or the path of a file."),
    ("expand", "chunk_id"): _place("The id of a passage: <memory_id>#<number>; or PATH:LINE."),
}
