"""List the fields of a memory that say how it was used."""

from __future__ import annotations

from byheart.model.feedback import check_feedback
from byheart.model.field_types import Field

USAGE_FIELDS: tuple[Field, ...] = (
    Field(name="accessed_at", codec="moment", nullable=True, exported="always"),
    Field(name="access_count", codec="whole", exported="always"),
    Field(
        name="feedback",
        codec="text",
        owner="text",
        nullable=True,
        free=True,
        array="feedback",
        check=check_feedback,
        exported="if given",
        checked_in_imports=True,
    ),
)
