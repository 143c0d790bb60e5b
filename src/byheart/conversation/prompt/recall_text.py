"""Write a recall for a model: memories in full, and a line for each of the others.

Entries are in the form in which answers are sent, where null fields may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.conversation.prompt.control_marks import break_marks
from byheart.model import RecalledMemory, RecalledSummary, to_wire
from byheart.model.fields import BY_NAME
from byheart.model.ids import short_form

HEADING = "Also:\n"
# The words of a user or an agent need no mark; whose these are is said.
_FOREIGN = ("tool", "file", "import")
# An extracted summary is shorter; a given one of any length must not use up the budget of a recall.
_SUMMARY_CHARS = 300

Entry = Mapping[str, Any]


class RecallText:
    """Write with short ids, and with few other words that tell where a text comes from."""

    heading = HEADING

    def detail(self, memory: RecalledMemory) -> str:
        """Write a memory in full."""
        return write_detail(to_wire(memory))

    def line(self, entry: RecalledSummary) -> str:
        """Write a line for a memory that is only listed."""
        return write_line(to_wire(entry))


def write_detail(entry: Entry) -> str:
    """Write a memory in full, with its control marks broken."""
    title = f" {entry['title']}" if entry.get("title") else ""
    named = f"[{short_form(entry['id'])}]{title} ({', '.join(_about(entry))})"
    return break_marks(f"{named}\n{entry['content'].strip()}") + "\n\n"


def write_line(entry: Entry) -> str:
    """Write a line for a memory that is only listed."""
    summary = entry["summary"]
    if len(summary) > _SUMMARY_CHARS:
        summary = f"{summary[: _SUMMARY_CHARS - 1].rstrip()}…"
    return f"- {short_form(entry['id'])}: {break_marks(summary)}\n"


def _about(entry: Entry) -> list[str]:
    about = []
    if entry.get("role"):
        about.append(f"{entry['kind']} by {entry['role']}")
    elif entry["kind"] != BY_NAME["kind"].default:
        about.append(entry["kind"])
    about.append(entry["created_at"][:10])
    if entry["origin"] in _FOREIGN and entry["kind"] != entry["origin"]:
        about.append(f"from {entry['origin']}")
    if entry.get("session_id"):
        about.append(f"session {entry['session_id']}")
    if entry.get("stale"):
        about.append("its file has changed since")
    if entry.get("superseded_by"):
        about.append(f"replaced by {short_form(entry['superseded_by'])}")
    return about
