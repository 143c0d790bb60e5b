"""Make the error for a damaged store, whose rows contradict one another in one snapshot."""

from __future__ import annotations

from byheart.errors import Do, Hint, StoreDamaged


def contradiction(text_id: str) -> StoreDamaged:
    """Make the error for a text whose rows contradict one another."""
    return StoreDamaged(
        f"the store's rows about {text_id} contradict one another: its file has changed",
        Hint("see what is damaged with: ", Do("admin.doctor")),
    )
