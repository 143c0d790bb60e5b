"""Spell the operations of a hint as commands."""

from __future__ import annotations

from byheart.errors import spell_hint
from byheart.interfaces.commands import spell_command


def for_terminal(text: str) -> str:
    """Spell the operations of a text as commands."""
    return spell_hint(text, spell_command)
