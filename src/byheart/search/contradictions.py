"""The error for rows of one snapshot that contradict one another: the store is damaged."""

from __future__ import annotations

from byheart.errors import StoreDamaged


def contradiction(text_id: str) -> StoreDamaged:
    """Say that a text was found whose rows cannot be read together."""
    return StoreDamaged(
        f"the store's rows about {text_id} contradict one another: its file has changed",
        "see what is damaged with: byheart doctor",
    )
