"""List the fields of a memory that say whether it may enter a prompt unasked."""

from __future__ import annotations

from typing import Any

from byheart.model import checks as check
from byheart.model import schemas as schema
from byheart.model.field_types import Asked, Field, Flag


def _optional_bool(name: str, value: Any) -> bool | None:
    return None if value is None else check.check_bool(name, value)


TRUST_FIELDS: tuple[Field, ...] = (
    Field(
        name="untrusted_at",
        codec="moment",
        nullable=True,
        array="untrusted",
        filters=(
            Asked(
                name="trusted",
                operator="unset",
                check=_optional_bool,
                seldom=True,
                schema=schema.flag("Only trusted memories, or only those that wait for review."),
                flag=Flag("Only trusted memories, or only untrusted ones.", takes="either"),
            ),
        ),
        shown=True,
        exported="if given",
    ),
    Field(
        name="trusted",
        codec="whole",
        owner="request",
        nullable=True,
        column=False,
        verbs=("save", "log"),
        check=_optional_bool,
        schema=schema.flag("False: it waits for review, and enters no prompt unasked."),
        flag=Flag("Whether it may enter a prompt unasked, or waits for review.", takes="either"),
        front_matter="trusted",
    ),
)
