"""Summarize a session that no agent has summarized: the most important turns, in order."""

from __future__ import annotations

from collections.abc import Iterable

from byheart.contracts import SaidTurn


def extract_summary(turns: Iterable[SaidTurn]) -> str:
    """List the summaries of turns, one line each, without repetitions."""
    lines = dict.fromkeys(f"- {turn.role}: {turn.summary}" for turn in turns)
    return "\n".join(lines)
