"""Define each parameter as JSON Schema; a name means the same in every verb."""

from __future__ import annotations

from collections.abc import Mapping

from byheart.conversation.context import LARGEST_TOP_K
from byheart.model import FUSIONS, GRANULARITIES, MODES, REVIEW_REASONS
from byheart.model import checks as check
from byheart.model import schemas as schema
from byheart.model.compat_names import COMPAT_NAMES, COSINES, CompatName
from byheart.model.feedback import OUTCOMES
from byheart.model.fields import BY_NAME, FIELDS, FILTERS
from byheart.model.schemas import Schema as Schema

_FILTERING_VERBS = (
    "search",
    "recall",
    "list",
    "review",
    "quarantine",
    "trust",
    "distrust",
    "forget",
    "cleanup",
    "dedupe",
    "context",
    "transcript",
    "timeline",
    "map",
)


_ID: Schema = {"type": "string", "minLength": 1, "maxLength": check.LONGEST_LABEL}

_OF_VERBS: Mapping[str, Schema] = {
    "query": schema.text(
        "What to look for: a question or keywords.", maxLength=check.LONGEST_QUERY
    ),
    "limit": schema.whole("How many results at most.", 1, check.LARGEST_LIMIT),
    "offset": schema.whole("Results to skip.", 0, check.LARGEST_OFFSET),
    "mode": schema.text("By meaning and keyword, by meaning, or by keyword.", enum=list(MODES)),
    "granularity": schema.text("Passages, sections or whole memories.", enum=list(GRANULARITIES)),
    "include_task": schema.label(
        "A task code: memories of any session with it are retrieved as well."
    ),
    "raw": schema.flag("Read the query as SQLite FTS5 syntax."),
    "vector": schema.numbers(
        "The query's vector, made by the caller with the model of the store.", check.MOST_DIMENSIONS
    ),
    "explain": schema.flag("Explain the rank of each hit."),
    "fusion": schema.text("How the two rankings are combined.", enum=list(FUSIONS)),
    "times": schema.flag("Prefer memories from a time that the query names."),
    "max_tokens": schema.whole("The token budget of the answer.", 1, check.MOST_TOKENS),
    "memory_id": schema.label("The id of a memory, as answers give it."),
    "chunk_id": schema.label("The id of a passage: <memory_id>#<number>."),
    "around": schema.whole("The number of passages before and after it.", 0, check.LARGEST_LIMIT),
    "expected_version": schema.whole(
        "Refuse the change if the version differs.", 1, check.LARGEST_VERSION
    ),
    "reason": schema.text(
        "The reason, for the history.", minLength=1, maxLength=check.LONGEST_SUMMARY
    ),
    "item_id": schema.text(
        "The id of an item of the review queue.", minLength=1, maxLength=check.LONGEST_SUMMARY
    ),
    "hard": schema.flag("Erase every trace. Cannot be undone."),
    "dry_run": schema.flag("Only show what would happen."),
    "older_than": {
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
        "description": "Only older than this many days, or than this time.",
    },
    "outcome": schema.text("What came of it.", enum=list(OUTCOMES)),
    "by": schema.label("The id of the memory that replaces it."),
    "who": schema.label("The author, for the history."),
    "output_path": schema.text(
        "Where to write it.", minLength=1, maxLength=check.LONGEST_OUTPUT_PATH
    ),
    "include_metadata": schema.flag("Begin the file with front matter."),
    "overwrite": schema.flag("Overwrite an existing file."),
    "prefix": schema.label("Only names that begin with this."),
    "after": schema.label("The id of the last memory of the page before: list those behind it."),
    "forgotten": schema.flag("List forgotten memories instead."),
    "days_old": schema.number(
        "Only memories not changed or recalled for this many days.", 0, check.LONGEST_TTL_DAYS
    ),
    "reset": schema.flag("Reset the counters."),
    "keep": schema.label("The id of the memory to keep."),
    "others": schema.one_or_more("The id of a memory to merge into it, or several.", _ID),
    "threshold": schema.number(
        "The least similarity of two memories, as a cosine.", check.LEAST_THRESHOLD, 1
    ),
    "apply": schema.flag("Merge; otherwise only propose."),
    "name": schema.label("A name."),
    "new_name": schema.label("The new name."),
    "names": schema.one_or_more("A name, or several.", _ID),
    "into": schema.label("The name that stays."),
    "recent": schema.whole("The number of recent turns to include.", 0, check.LARGEST_LIMIT),
    "top_k": schema.whole("The largest number of passages to retrieve.", 0, LARGEST_TOP_K),
    "preview": schema.flag("Leave no trace: nothing counts as given, no receipt is stored."),
    "receipt_id": schema.label("The id of a receipt, as `context` and `receipts` give it."),
    "utc_offset_minutes": schema.whole(
        "The minutes that local time is ahead of UTC: days begin at local midnight.",
        -check.LARGEST_UTC_OFFSET_MINUTES,
        check.LARGEST_UTC_OFFSET_MINUTES,
    ),
    "latest": schema.flag("Return the last turns, in order."),
    "text": schema.text("The summary; generated from the turns if not given.", minLength=1),
}
PARAMETERS: Mapping[str, Schema] = {
    **_OF_VERBS,
    **{name: asked.schema for name, (asked, _) in FILTERS.items() if asked.schema},
    **{field.name: field.schema for field in FIELDS if field.schema},
}
# Filters whose values differ from those of the field of that name: several instead of one.
_OWN_FILTERS: Mapping[str, Schema] = {
    name: asked.schema for name, (asked, _) in FILTERS.items() if asked.schema and name in BY_NAME
}


def _describe_compat_name(compat: CompatName) -> Schema:
    if compat.means is None:
        return schema.number(compat.note, *COSINES)
    return {**_OF_VERBS[compat.means], "description": compat.note}


# Parameters that accept more or less in one verb than in the others.
SPECIAL: Mapping[tuple[str, str], Schema] = {
    **{(verb, name): own for verb in _FILTERING_VERBS for name, own in _OWN_FILTERS.items()},
    **{
        (verb, each.name): _describe_compat_name(each)
        for verb, names in COMPAT_NAMES.items()
        for each in names
    },
    ("transcript", "role"): schema.one_or_more(
        "Only of these roles.", {"type": "string", "pattern": schema.SLUG}
    ),
    ("log", "content"): schema.text("The text, kept exactly as it is; it may be empty."),
    **{
        (verb, "memory_id"): schema.one_or_more("The id of a memory, or several.", _ID)
        for verb in ("forget", "promote", "brief", "trust", "distrust")
    },
    ("receipts", "memory_id"): schema.label("Only receipts of contexts that this memory is in."),
    ("receipts", "session_id"): schema.label("Only receipts of this session."),
    ("receipt", "session_id"): schema.label("Only if it is a receipt of this session."),
    ("feedback", "query"): schema.text(
        "The question that it was found for.", minLength=1, maxLength=check.LONGEST_QUERY
    ),
    ("similar", "threshold"): schema.number("The least cosine of two memories.", 0, 1),
    ("similar", "session_id"): schema.label("Only memories that this session can see."),
    ("review", "reason"): schema.text("Only items with this reason.", enum=list(REVIEW_REASONS)),
    ("map", "limit"): schema.whole("How many points at most.", 1, check.MOST_POINTS),
    ("promote", "kind"): _OWN_FILTERS["kind"],
    ("get", "memory_id"): schema.place("An id from an answer, or the path of a file."),
    ("expand", "chunk_id"): schema.place(
        "The id of a passage: <memory_id>#<number>; or PATH:LINE."
    ),
}
