"""Reminding: how what is known is put to an agent that did not ask for it."""

from __future__ import annotations

import re

from byheart.conversation.prompt import says_nothing
from byheart.conversation.prompt.delimiting import PREAMBLE, SUMMARY, quote
from byheart.model import Memory

__all__ = ["PREAMBLE", "asks_for_something", "quote_summary"]

# A path is no command.
_COMMAND = re.compile(r"/[\w:-]+(?:\s|$)")


def asks_for_something(prompt: str) -> bool:
    """Say whether anything could answer a prompt: not a command, nor thanks."""
    return not _COMMAND.match(prompt) and not says_nothing(prompt)


def quote_summary(summary: Memory) -> str:
    """Quote what a session came to, and say which and when."""
    about = (("session", summary.session_id), ("date", f"{summary.updated_at:%Y-%m-%d}"))
    return quote(SUMMARY, summary.content, about)
