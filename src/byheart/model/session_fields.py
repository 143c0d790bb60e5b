"""List the fields of a memory that say which session, agent and task it belongs to."""

from __future__ import annotations

from typing import Any, get_args

from byheart.model import checks as check
from byheart.model import schemas as schema
from byheart.model.field_types import Asked, Field, Flag, Verb, unnamed
from byheart.model.memories import Scope

SCOPES: tuple[Scope, ...] = ("session", "global")
_ALL: tuple[Verb, ...] = get_args(Verb)


def _scope(name: str, value: Any) -> Scope | None:
    return None if value is None else check.check_choice(name, value, SCOPES)


SESSION_FIELDS: tuple[Field, ...] = (
    Field(
        name="session_id",
        codec="text",
        nullable=True,
        written=True,
        array="session",
        verbs=_ALL,
        check=check.check_optional_label,
        filters=(
            Asked(
                name="session_id",
                operator="session",
                check=check.check_optional_label,
                flag=Flag("This session, and global memories.", "ID", "-s"),
            ),
            Asked(
                name="include_global",
                operator="modifier",
                check=check.check_bool,
                seldom=True,
                default=True,
                schema=schema.flag("With session_id: also global memories."),
                flag=Flag(
                    "With --session-id: also global memories (the default).",
                    takes="either",
                ),
            ),
            Asked(
                name="scope",
                operator="scope",
                check=_scope,
                seldom=True,
                schema=schema.text(
                    "Only memories of a session, or only those of none.", enum=list(SCOPES)
                ),
                flag=Flag(
                    "Only what belongs to a session, or only what belongs to none.",
                    takes="choice",
                    usual=SCOPES,
                ),
            ),
        ),
        schema=schema.label("The session; a search also covers global memories."),
        flag=Flag("The session it belongs to.", "ID", "-s"),
        shown=True,
        exported="always",
        front_matter="session_id",
    ),
    Field(
        name="agent_id",
        codec="text",
        nullable=True,
        written=True,
        array="agent",
        verbs=_ALL,
        check=check.check_optional_label,
        filters=(
            Asked(
                name="agent_id",
                operator="equals",
                check=check.check_optional_label,
                flag=Flag("Only of this agent.", "ID", "-a"),
            ),
        ),
        schema=schema.label("The agent that saved it."),
        flag=Flag("The agent who saves it.", "ID", "-a", log_help="The agent who logs it."),
        shown=True,
        exported="always",
        front_matter="agent_id",
    ),
    Field(
        name="session_iter",
        codec="whole",
        nullable=True,
        written=True,
        array="iteration",
        verbs=_ALL,
        check=unnamed(check.check_session_iter),
        filters=(
            Asked(
                name="session_iter",
                operator="equals",
                check=unnamed(check.check_session_iter),
                seldom=True,
                flag=Flag("Only of this iteration: 2 or v2.", "N"),
            ),
        ),
        schema={
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 10**9 - 1},
                {"type": "string", "pattern": r"^[vV]?[0-9]{1,9}$"},
            ],
            "description": "Its iteration: 2 or v2.",
        },
        flag=Flag("The iteration: 2 or v2.", "N"),
        shown=True,
        exported="always",
        checked_in_imports=True,
        front_matter="session_iter",
    ),
    Field(
        name="task_code",
        codec="text",
        nullable=True,
        written=True,
        array="task",
        verbs=_ALL,
        check=check.check_optional_label,
        filters=(
            Asked(
                name="task_code",
                operator="equals",
                check=check.check_optional_label,
                seldom=True,
                flag=Flag("Only of this task.", "CODE"),
            ),
        ),
        schema=schema.label("The task it belongs to."),
        flag=Flag("The task it belongs to.", "CODE"),
        shown=True,
        exported="always",
        front_matter="task_code",
    ),
)
