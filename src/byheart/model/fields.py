"""Describe each field of a memory once, in one table.

Everything else is derived from it: which fields `save`, `update` and `log` accept and how they are
checked, the filters of every verb, the columns of the database and the arrays of the index, JSON
Schemas, command-line flags and export formats. `Memory`, `Filter` and the signatures of the verbs
stay spelled out for readers and type checkers; `tests/model/test_fields.py` compares them with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.language.detection import check_language
from byheart.model import checks as check
from byheart.model import schemas as schema
from byheart.model.field_types import Asked, Field, Flag, Verb, arrange, unnamed
from byheart.model.memories import ORIGINS, Match
from byheart.model.metadata_filter import check_pairs
from byheart.model.schemas import Schema
from byheart.model.session_fields import SESSION_FIELDS
from byheart.model.trust_fields import TRUST_FIELDS
from byheart.model.usage_fields import USAGE_FIELDS
from byheart.model.validity_fields import VALIDITY_FIELDS

MATCHES: tuple[Match, ...] = ("any", "all")
KINDS = (
    *("note", "fact", "entity", "relationship", "self", "session_context", "input_prompt"),
    *("system_memory", "report", "report_observation", "working_memory", "knowledge_base"),
    *("message", "tool_output", "file", "session_summary"),
)


def _one_or_more_labels(name: str, value: Any) -> tuple[str, ...]:
    return check.check_labels(name, [value] if isinstance(value, str) else value)


def _match(name: str, value: Any) -> Match:
    return check.check_choice(name, value, MATCHES)


_ALL: tuple[Verb, ...] = ("save", "update", "log")
_SLUG: Schema = {"type": "string", "pattern": schema.SLUG, "maxLength": check.LONGEST_LABEL}
_LABEL: Schema = {"type": "string", "minLength": 1, "maxLength": check.LONGEST_LABEL}
KINDS_SCHEMA = schema.one_or_more("Only this kind, or these.", _SLUG)

FIELDS: tuple[Field, ...] = (
    Field(name="memory_id", codec="text", written=True, shown=True, front_matter="id"),
    Field(
        name="content",
        codec="text",
        column=False,
        verbs=_ALL,
        schema=schema.text("The text, kept exactly as it is.", minLength=1),
    ),
    Field(name="content_hash", codec="hash", written=True, front_matter="content_hash"),
    Field(name="chunks", codec="whole", column=False),
    Field(name="damaged", codec="whole", column=False, shown=True),
    Field(
        name="kind",
        codec="text",
        written=True,
        array="kind",
        verbs=_ALL,
        check=unnamed(check.check_kind),
        default="note",
        filters=(
            Asked(
                name="kind",
                operator="any_of",
                check=unnamed(check.check_kinds),
                schema=KINDS_SCHEMA,
                flag=Flag("Only these kinds.", short="-k", takes="names", usual=KINDS),
            ),
        ),
        schema={"description": "What it is: note, fact, report, message, file, …", **_SLUG},
        flag=Flag(
            "The kind: note (the default), fact, report, … or a slug of your own.",
            "KIND",
            "-k",
            usual=KINDS,
            log_help="The kind: message, tool_output, file, … or a slug of your own.",
        ),
        shown=True,
        exported="always",
        checked_in_imports=True,
        front_matter="kind",
    ),
    Field(
        name="title",
        codec="text",
        nullable=True,
        free=True,
        written=True,
        verbs=_ALL,
        check=check.at_most(check.LONGEST_TITLE),
        schema=schema.text("A title.", minLength=1, maxLength=check.LONGEST_TITLE),
        flag=Flag(
            "Its title; a file's is its name.",
            "TEXT",
            log_help="Its title, such as the tool's name.",
        ),
        shown=True,
        exported="always",
        front_matter="title",
    ),
    Field(
        name="summary",
        codec="text",
        free=True,
        written=True,
        verbs=("save", "update"),
        check=check.at_most(check.LONGEST_SUMMARY),
        noticed=True,
        schema=schema.text(
            "One sentence; derived if not given.",
            minLength=1,
            maxLength=check.LONGEST_SUMMARY,
        ),
        flag=Flag("Its summary; derived if not given.", "TEXT"),
        shown=True,
        exported="always",
        front_matter="summary",
    ),
    Field(
        name="source",
        codec="text",
        written=True,
        verbs=("save", "update"),
        check=check.check_label,
        array="source",
        default="manual",
        filters=(
            # In a search, `source` is another name of `mode`.
            Asked(
                name="source_label",
                operator="any_of",
                check=_one_or_more_labels,
                seldom=True,
                schema=schema.one_or_more("Only saved with this source, or these.", _LABEL),
                flag=Flag("Only saved with these sources.", takes="names"),
            ),
        ),
        schema=schema.label("Where it comes from."),
        flag=Flag("Where it comes from  [default: manual]", "NAME"),
        exported="always",
        front_matter="source",
    ),
    *SESSION_FIELDS,
    Field(
        name="tags",
        codec="labels",
        column=False,
        verbs=_ALL,
        check=check.check_labels,
        filters=(
            Asked(
                name="tags",
                operator="labels",
                check=check.check_labels,
                flag=Flag("Only with these tags.", short="-t", takes="names"),
            ),
        ),
        schema=schema.labels("Tags."),
        flag=Flag("Its tags.", short="-t", takes="names"),
        shown=True,
        exported="always",
        front_matter="tags",
    ),
    Field(
        name="entities",
        codec="labels",
        column=False,
        verbs=("save", "update"),
        check=check.check_optional_labels,
        noticed=True,
        filters=(
            Asked(
                name="entities",
                operator="labels",
                check=check.check_labels,
                flag=Flag("Only memories with these entities.", short="-e", takes="names"),
            ),
            Asked(
                name="match",
                operator="modifier",
                check=_match,
                default="any",
                schema=schema.text("Whether one tag or entity is enough.", enum=list(MATCHES)),
                flag=Flag(
                    "Whether one of the tags and entities is enough.",
                    takes="choice",
                    usual=MATCHES,
                ),
            ),
        ),
        schema=schema.labels("Names of people, projects, things."),
        flag=Flag("Its entities; extracted if not given.", short="-e", takes="names"),
        exported="always",
        front_matter="entities",
    ),
    Field(
        name="path",
        codec="text",
        nullable=True,
        free=True,
        written=True,
        verbs=_ALL,
        check=check.at_most(check.LONGEST_PATH),
        filters=(
            Asked(
                name="path",
                operator="path",
                check=check.at_most(check.LONGEST_PATH),
                flag=Flag("Only saved under such a path.", "GLOB"),
            ),
        ),
        schema=schema.place("Its path; in a search, a glob such as src/*.py."),
        flag=Flag("Its path; a file's is its own.", "PATH", log_help="The path of a file."),
        shown=True,
        exported="always",
        front_matter="path",
    ),
    Field(
        name="language",
        codec="text",
        written=True,
        array="language",
        verbs=_ALL,
        check=check_language,
        noticed=True,
        filters=(
            Asked(
                name="language",
                operator="subtags",
                check=check_language,
                seldom=True,
                flag=Flag("Only in this language: de finds de-AT too.", "TAG"),
            ),
        ),
        schema=schema.text("BCP 47, such as de."),
        flag=Flag("Its language: de, pt-BR; detected if not given.", "TAG"),
        exported="always",
        checked_in_imports=True,
        new_in_imports=True,
        front_matter="language",
    ),
    Field(
        name="importance",
        codec="number",
        written=True,
        array="importance",
        verbs=_ALL,
        check=check.check_importance,
        noticed=True,
        filters=(
            Asked(
                name="min_importance",
                operator="at_least",
                check=check.check_importance,
                seldom=True,
                schema=schema.number("At least this important.", 0, 10),
                flag=Flag("At least this.", "0-10", takes="number"),
            ),
        ),
        schema=schema.number("Estimated if not given.", 0, 10),
        flag=Flag("Its importance; estimated if not given.", "0-10", "-i", "number"),
        shown=True,
        exported="always",
        checked_in_imports=True,
        front_matter="importance",
    ),
    Field(
        name="metadata",
        codec="json",
        free=True,
        written=True,
        verbs=_ALL,
        check=unnamed(check.check_metadata),
        filters=(
            Asked(
                name="metadata",
                operator="pairs",
                check=unnamed(check_pairs),
                seldom=True,
                schema={
                    "type": "object",
                    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                    "description": "Only with these keys and values in the metadata.",
                },
                flag=Flag("Only with this in the metadata.", "KEY=VALUE", takes="pairs"),
            ),
        ),
        schema={"type": "object", "description": "Any other data, as a JSON object."},
        flag=Flag("Any other data, as a JSON object.", "JSON"),
        exported="always",
        front_matter="metadata",
    ),
    Field(name="format", codec="text", written=True, exported="always"),
    Field(name="derived", codec="words", written=True, exported="always"),
    Field(
        name="version",
        codec="whole",
        array="version",
        shown=True,
        exported="always",
        least=1,
        front_matter="version",
    ),
    Field(
        name="created_at",
        codec="moment",
        written=True,
        array="created",
        verbs=("save", "log"),
        check=check.check_moment,
        filters=(
            Asked(
                name="created_after",
                operator="at_least",
                check=check.check_time,
                seldom=True,
                schema=schema.time("Saved at or after this time."),
                flag=Flag("Saved at or after this time.", "DATE"),
            ),
            Asked(
                name="created_before",
                operator="below",
                check=check.check_time,
                schema=schema.time("Saved before this time."),
                flag=Flag("Saved before this time.", "DATE"),
            ),
        ),
        schema=schema.moment("When it was written or said; by default now."),
        flag=Flag(
            "When it was written, if not now.", "DATE", log_help="When it was said, if not now."
        ),
        shown=True,
        exported="always",
        front_matter="created",
    ),
    Field(
        name="updated_at",
        codec="moment",
        written=True,
        array="updated",
        shown=True,
        exported="always",
        front_matter="updated",
    ),
    Field(name="since_at", codec="moment", owner="text", array="since", exported="always"),
    Field(
        name="replaced_at",
        codec="moment",
        nullable=True,
        array="replaced",
        filters=(
            Asked(
                name="as_of",
                operator="modifier",
                check=check.check_time,
                seldom=True,
                schema=schema.time("Use the texts of this time."),
                flag=Flag("Search the texts of this time.", "DATE"),
            ),
        ),
        shown=True,
        exported="always",
    ),
    Field(
        name="ttl_days",
        codec="number",
        owner="request",
        nullable=True,
        column=False,
        verbs=("save", "update"),
        schema=schema.number("Days until it expires; by default never.", 0, check.LONGEST_TTL_DAYS),
        flag=Flag("Days until it expires.", "DAYS", takes="number"),
    ),
    Field(
        name="expires_at",
        codec="moment",
        nullable=True,
        written=True,
        array="expires",
        verbs=("save", "update"),
        check=check.check_moment,
        filters=(
            Asked(
                name="include_expired",
                operator="modifier",
                check=check.check_bool,
                seldom=True,
                default=False,
                schema=schema.flag("Also expired memories."),
                flag=Flag("Also expired memories.", takes="switch"),
            ),
        ),
        schema=schema.moment("When it expires; by default never."),
        flag=Flag("When it expires.", "DATE"),
        shown=True,
        exported="always",
        front_matter="expires",
    ),
    *VALIDITY_FIELDS,
    Field(name="forgotten_at", codec="moment", nullable=True, exported="always"),
    Field(name="superseded_by", codec="text", nullable=True, shown=True, exported="always"),
    Field(
        name="superseded_at",
        codec="moment",
        owner="text",
        nullable=True,
        array="superseded",
        exported="always",
    ),
    *USAGE_FIELDS,
    Field(
        name="role",
        codec="text",
        nullable=True,
        array="role",
        written=True,
        verbs=("log",),
        check=unnamed(check.check_role),
        schema=schema.text(
            "Who said it: user, assistant, system, tool, …", pattern=schema.SLUG, maxLength=200
        ),
        shown=True,
        exported="if given",
        front_matter="role",
    ),
    Field(
        name="client_id",
        codec="text",
        nullable=True,
        written=True,
        verbs=("log",),
        check=check.check_optional_label,
        schema=schema.label("Your id of the turn: logging it twice changes nothing."),
        flag=Flag("Your own id of the turn: logging it twice changes nothing.", "ID"),
        exported="if given",
        front_matter="client_id",
    ),
    Field(name="pinned_at", codec="moment", nullable=True, exported="if given"),
    Field(
        name="turn_no",
        codec="whole",
        owner="text",
        nullable=True,
        exported="if given",
        least=None,
    ),
    Field(
        name="origin",
        codec="text",
        written=True,
        array="origin",
        verbs=_ALL,
        check=unnamed(check.check_origin),
        filters=(
            Asked(
                name="origin",
                operator="any_of",
                check=unnamed(check.check_origins),
                seldom=True,
                # The description names the origins already: an enum would name them twice.
                schema=schema.one_or_more(
                    f"Only of these origins: {', '.join(ORIGINS)}.", {"type": "string"}
                ),
                flag=Flag(
                    f"Only of these origins: {', '.join(ORIGINS)}.", takes="names", usual=ORIGINS
                ),
            ),
        ),
        schema=schema.text("Whose words; derived if not given.", enum=list(ORIGINS)),
        flag=Flag(
            "Whose words: user, agent, tool, file or import; else derived from role and kind.",
            "ORIGIN",
            usual=ORIGINS,
        ),
        shown=True,
        exported="always",
        checked_in_imports=True,
        new_in_imports=True,
        front_matter="origin",
    ),
    *TRUST_FIELDS,
    Field(
        name="space",
        codec="text",
        written=True,
        array="space",
        verbs=("save", "log"),
        check=check.check_label,
        filters=(Asked(name="space", operator="equals", check=check.check_label, always=True),),
        schema=schema.label("The space; memories of other spaces are invisible."),
        front_matter="space",
    ),
)

BY_NAME: Mapping[str, Field] = {field.name: field for field in FIELDS}
# Every filter with the field that it is about.
FILTERS: Mapping[str, tuple[Asked, Field]] = {
    asked.name: (asked, field) for field in FIELDS for asked in field.filters
}
FILTER_FIELDS: tuple[str, ...] = tuple(FILTERS)
NOTICED: tuple[str, ...] = tuple(field.name for field in FIELDS if field.noticed)


def accepted_by(verb: Verb) -> tuple[str, ...]:
    """Name the fields that a verb accepts."""
    return tuple(field.name for field in FIELDS if verb in field.verbs)


# In the order in which help and tools show them.
SAVE_FIELDS = arrange(accepted_by("save"), {"metadata": "expires_at", "path": "metadata"})
UPDATE_FIELDS = arrange(accepted_by("update"), {"metadata": "expires_at", "path": "metadata"})
LOG_FIELDS = arrange(
    accepted_by("log"), {"client_id": "kind", "title": "task_code", "path": "title"}
)
