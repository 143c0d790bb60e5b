"""The running summary of a session that no agent has summed up: what mattered most, in order."""

from __future__ import annotations

from collections.abc import Iterable

from byheart.contracts import SaidTurn


def extract_summary(turns: Iterable[SaidTurn]) -> str:
    """List what was said, a sentence each; what was said again stands once."""
    lines = dict.fromkeys(f"- {turn.role}: {turn.summary}" for turn in turns)
    return "\n".join(lines)
