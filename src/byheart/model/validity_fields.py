"""List the fields of a memory that say when its statement is true, whenever it was saved."""

from __future__ import annotations

from byheart.model import checks as check
from byheart.model import schemas as schema
from byheart.model.field_types import Field, Flag

VALIDITY_FIELDS: tuple[Field, ...] = (
    Field(
        name="valid_from",
        codec="moment",
        nullable=True,
        written=True,
        array="begins",
        verbs=("save", "update"),
        check=check.check_moment,
        schema=schema.moment("Since when it is true."),
        flag=Flag("Since when it is true.", "DATE"),
        shown=True,
        exported="if given",
        front_matter="valid_from",
    ),
    Field(
        name="valid_until",
        codec="moment",
        nullable=True,
        written=True,
        array="ends",
        verbs=("save", "update"),
        check=check.check_moment,
        schema=schema.moment("When it stops being true; then it ranks last, and is kept."),
        flag=Flag("When it stops being true; then it ranks last.", "DATE"),
        shown=True,
        exported="if given",
        front_matter="valid_until",
    ),
)
