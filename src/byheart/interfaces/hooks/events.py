"""Read the events that Claude Code sends on stdin when it calls a hook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byheart.conversation.agent_events import project_of
from byheart.errors import InvalidInput
from byheart.startup.dataclass_types import dataclass

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


@dataclass(frozen=True, slots=True)
class Event:
    """Describe one call of a hook; fields that the event does not give are empty."""

    name: str
    session_id: str
    project: str | None
    transcript: Path | None
    said: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a field of the event, or "" if it is not text."""
        value = self.said.get(name)
        return value if isinstance(value, str) else ""

    @property
    def is_of_subagent(self) -> bool:
        """Tell whether the event comes from a subagent's conversation."""
        return bool(self.said.get("agent_id"))


def read_event(said: Mapping[str, Any], name: str, environ: Mapping[str, str]) -> Event:
    """Read an event; `name` is the event that the hook was called for."""
    if not isinstance(said.get("session_id"), str):
        raise InvalidInput("the event names no session_id")
    if name == "UserPromptSubmit" and not isinstance(said.get("prompt"), str):
        raise InvalidInput("the event has no prompt that is text")
    transcript = said.get("transcript_path")
    # The agent may have changed its folder since; the project is the folder where it was started.
    folder = environ.get(PROJECT_VARIABLE) or said.get("cwd")
    return Event(
        name=name,
        session_id=said["session_id"],
        project=project_of(folder) if isinstance(folder, str) else None,
        transcript=Path(transcript).expanduser() if isinstance(transcript, str) else None,
        said=said,
    )


def output_text(response: object) -> str:
    """Return the output of a tool as text, whatever its structure."""
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return "\n".join(filter(None, map(output_text, response)))
    if not isinstance(response, dict):
        return ""
    if "stdout" in response or "stderr" in response:
        streams = (response.get(name) for name in ("stdout", "stderr"))
        return "\n".join(each for each in streams if isinstance(each, str) and each)
    for name in ("text", "result", "output", "content"):
        if response.get(name):
            return output_text(response[name])
    return "" if response.get("type") == "image" else json.dumps(response, ensure_ascii=False)
