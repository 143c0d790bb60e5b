"""Write reminders: memories for an agent that did not ask for them."""

from __future__ import annotations

from byheart.conversation.prompt import says_nothing
from byheart.conversation.prompt.delimiting import PREAMBLE, SUMMARY, quote
from byheart.model import Memory
from byheart.startup.late_patterns import late_pattern

__all__ = ["PREAMBLE", "asks_for_something", "quote_summary"]

# The pattern does not match a path, which is no command.
_COMMAND = late_pattern(r"/[\w:-]+(?:\s|$)")


def asks_for_something(prompt: str) -> bool:
    """Return whether a prompt can have an answer; a command or thanks cannot."""
    return not _COMMAND.match(prompt) and not says_nothing(prompt)


def quote_summary(summary: Memory) -> str:
    """Quote the summary of a session, with the session's id and date."""
    about = (("session", summary.session_id), ("date", f"{summary.updated_at:%Y-%m-%d}"))
    return quote(SUMMARY, summary.content, about)
