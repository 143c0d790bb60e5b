"""Read Codex rollouts: JSON lines, one file per session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from byheart.conversation.agent_events import project_of
from byheart.startup.late_patterns import late_pattern
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    label,
    without_nothing,
    word,
)
from byheart.transfer.foreign.sources import Source
from byheart.transfer.foreign.transcripts import (
    Calls,
    Record,
    omit_others,
    read_lines,
    text_of,
)

AGENT = "codex"
_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_TEXTS = ("input_text", "output_text", "text")
_SPEAKERS = ("user", "assistant")
# Texts that the program sends to the model in the user's name.
_INSERTED = late_pattern(
    r"# AGENTS\.md instructions"
    r"|<(?:user_instructions|environment_context|permissions|collaboration_mode|app-context|skills?"
    r"|user_action|user_shell_command|turn_aborted|subagent_notification)[\s>]",
    re.IGNORECASE,
)
_ID = late_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_record(line: Record) -> bool:
    """Check whether a line belongs to a Codex rollout."""
    if line.get("type") in _TYPES:
        return isinstance(line.get("payload"), dict)
    return _is_early_header(line)


def _is_early_header(line: Record) -> bool:
    """Check whether a line begins a rollout from before 2025-09, without an envelope."""
    about = {"instructions", "git"} & line.keys()
    return bool(about) and {"id", "timestamp"} <= line.keys() and "type" not in line


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield the messages and tool outputs."""
    return read_lines(source, stream, _Rollout(source).read)


class _Rollout:
    def __init__(self, source: Source) -> None:
        found = _ID.search(source.path.stem)
        self._session = found[0] if found else source.path.stem
        self._started = False
        self._project: str | None = None
        self._calls = Calls()
        self._last: object = None

    def read(self, place: str, line: Record) -> Iterator[Item]:
        """Yield the items of a line."""
        payload, kind = line.get("payload"), word(line.get("type"))
        self._last = line.get("timestamp") or self._last
        if _is_early_header(line):
            self._begin(line)
        elif kind == "session_meta" and isinstance(payload, dict):
            self._begin(payload)
        elif kind == "compacted" and isinstance(payload, dict):
            yield Item(place, self._summary(payload))
        elif kind == "response_item" and isinstance(payload, dict):
            yield from self._record(place, payload)
        elif kind in ("message", "reasoning", *_CALLS, *_OUTPUTS):
            yield from self._record(place, line)
        else:
            yield Item(place, Omission("record"))

    def _begin(self, about: Mapping[str, Any]) -> None:
        # A continued session names its predecessor later; the first id is the session's own.
        if not self._started:
            self._started = True
            self._session = label(about.get("id")) or self._session
            self._project = project_of(word(about.get("cwd")))

    def _record(self, place: str, payload: Mapping[str, Any]) -> Iterator[Item]:
        kind = word(payload.get("type"))
        if kind == "message":
            yield Item(place, self._message(payload))
            yield from omit_others(place, payload.get("content"), *_TEXTS)
        elif kind in _CALLS:
            given = payload.get("arguments") or payload.get("input") or payload.get("action")
            tool = payload.get("name") or "local_shell"
            self._calls.note(payload.get("call_id") or payload.get("id"), tool, given)
        elif kind in _OUTPUTS:
            yield Item(place, self._output(payload))
        else:
            yield Item(place, Omission("thinking" if kind == "reasoning" else "record"))

    def _message(self, payload: Mapping[str, Any]) -> Piece | Omission:
        role = payload.get("role")
        text = text_of(payload.get("content"), *_TEXTS).strip()
        if role not in _SPEAKERS or not text:
            return Omission("meta")
        if role == "user" and _INSERTED.match(text):
            return Omission("meta")
        return Piece(self._fields(role=role, content=text))

    def _output(self, payload: Mapping[str, Any]) -> Piece | Omission:
        tool, about = self._calls.take(payload.get("call_id"))
        text = _output_text(payload.get("output"))
        if not text.strip():
            return Omission("empty output")
        fields = self._fields(role="tool", kind="tool_output", content=text, title=about)
        return Piece(fields, label(payload.get("call_id")), tool=tool)

    def _summary(self, payload: Mapping[str, Any]) -> Piece | Omission:
        text = payload.get("message")
        if not isinstance(text, str) or not text.strip():
            return Omission("record")
        fields = self._fields(kind="session_context", content=text, origin="agent")
        at = fields.pop("created_at", None)
        return Piece(fields, label(f"compaction:{at}"), at)

    def _fields(self, **fields: Any) -> dict[str, Any]:
        return without_nothing(
            session_id=self._session,
            agent_id=AGENT,
            task_code=self._project,
            created_at=self._last,
            **fields,
        )


def _output_text(output: object) -> str:
    """Return the text of an output, which may be wrapped in a JSON string."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return str(output)
    if isinstance(output, dict):
        inner = output.get("output", output.get("content"))
        return text_of(inner, *_TEXTS) or (
            json.dumps(output, ensure_ascii=False) if inner is None else ""
        )
    return text_of(output, *_TEXTS)
