"""Read transcripts of Claude Code: JSON lines, one file per session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, BinaryIO

from byheart.conversation.agent_events import CLAUDE_CODE as AGENT
from byheart.conversation.agent_events import project_of, said_by_user
from byheart.transfer.foreign.import_items import (
    Item,
    Omission,
    Piece,
    dicts,
    label,
    title,
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

_TYPES = ("user", "assistant", "system", "summary", "attachment", "progress")
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
# This many hash digits identify a line: a million lines collide once in 10^7 cases.
_MARK_DIGITS = 16
_NO_ANSWER = ("(no content)", "No response requested.")


def is_record(line: Record) -> bool:
    """Check whether a line belongs to a Claude Code transcript."""
    if line.get("type") == "summary":
        return "leafUuid" in line
    known = word(line.get("type")) in (
        *_TYPES,
        *_TITLES,
        "file-history-snapshot",
        "queue-operation",
    )
    return known and ("sessionId" in line or "snapshot" in line)


def read(source: Source, stream: BinaryIO) -> Iterator[Item]:
    """Yield the messages and tool outputs."""
    return read_lines(source, stream, Transcript(source.path.stem).read)


class Transcript:
    """Read a transcript, and keep the state that later lines depend on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._title: str | None = None
        self._project: str | None = None
        self._calls = Calls()
        self._seen: set[str] = set()

    def state(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Return the state needed to continue from here; `clean` redacts the secrets of a line."""
        calls = self._calls.waiting().items()
        return {
            "title": None if self._title is None else clean(self._title),
            "project": self._project,
            "calls": {name: (tool, clean(about)) for name, (tool, about) in calls},
            "seen": "".join(self._seen),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from where `state` was taken."""
        self._title, self._project = state["title"], state["project"]
        self._calls.restore(state["calls"])
        seen, size = state["seen"], _MARK_DIGITS
        self._seen = {seen[at : at + size] for at in range(0, len(seen), size)}

    def read(self, place: str, line: Record) -> Iterator[Item]:
        """Yield the items of a line."""
        kind, uuid = word(line.get("type")), word(line.get("uuid"))
        if kind in _TITLES:
            self._title = title(line.get(_TITLES[kind])) or self._title
            return
        message = line.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            yield Item(place, Omission("record"))
            return
        mark = _mark(uuid)
        if uuid and mark in self._seen:  # the line was repeated after a compaction
            yield Item(place, Omission("repetition"))
            return
        self._seen.add(mark)
        self._project = self._project or project_of(word(line.get("cwd")))
        if line.get("isSidechain"):
            yield Item(place, Omission("sidechain"))
        elif line.get("isCompactSummary"):
            yield Item(place, self._summary(line, message))
        elif _is_meta(line):
            yield Item(place, Omission("meta"))
        elif kind == "user":
            yield from self._user(place, line, message.get("content"))
        else:
            yield from self._assistant(place, line, message.get("content"))

    def _user(self, place: str, line: Record, content: object) -> Iterator[Item]:
        for block in dicts(content):
            if block.get("type") == "tool_result":
                yield Item(place, self._output(line, block))
                yield from omit_others(place, block.get("content"), "text")
        yield from omit_others(place, content, "text", "tool_result")
        text = text_of(content, "text")
        if text:
            said = said_by_user(text)
            held = Omission("meta") if said is None else self._turn(line, "user", said)
            yield Item(place, held)

    def _assistant(self, place: str, line: Record, content: object) -> Iterator[Item]:
        for block in dicts(content):
            if block.get("type") == "tool_use":
                self._calls.note(block.get("id"), block.get("name"), block.get("input"))
        yield from omit_others(place, content, "text", "tool_use")
        text = text_of(content, "text").strip()
        if text in _NO_ANSWER:
            yield Item(place, Omission("meta"))
        elif text:
            yield Item(place, self._turn(line, "assistant", text))

    def _output(self, line: Record, block: dict[str, Any]) -> Piece | Omission:
        tool, about = self._calls.take(block.get("tool_use_id"))
        text = text_of(block.get("content"), "text")
        if not text.strip():
            return Omission("empty output")
        fields = self._fields(line, role="tool", kind="tool_output", content=text)
        return Piece({**fields, "title": about}, label(block.get("tool_use_id")), tool=tool)

    def _turn(self, line: Record, role: str, text: str) -> Piece:
        # One turn with the conversation's title is enough to find the conversation.
        about, self._title = self._title, None
        return Piece(self._fields(line, role=role, content=text, title=about))

    def _summary(self, line: Record, message: dict[str, Any]) -> Piece | Omission:
        text = text_of(message.get("content"), "text")
        if not text.strip():
            return Omission("meta")
        fields = self._fields(line, kind="session_context", content=text)
        at = fields.pop("created_at", None)
        fields["origin"] = "agent"
        return Piece(fields, label(f"compaction:{line.get('uuid')}"), at)

    def _fields(self, line: Record, **fields: Any) -> dict[str, Any]:
        return without_nothing(
            session_id=label(line.get("sessionId")) or self._name,
            agent_id=AGENT,
            task_code=self._project,
            created_at=line.get("timestamp"),
            **fields,
        )


def _is_meta(line: Record) -> bool:
    whose = line.get("origin")
    told = whose.get("kind") if isinstance(whose, dict) else None
    return bool(
        line.get("isMeta")
        or line.get("isApiErrorMessage")
        or line.get("isVisibleInTranscriptOnly")
        or (told is not None and told not in ("human", "typed"))
    )


def _mark(uuid: str) -> str:
    return blake2b(uuid.encode(errors="replace"), digest_size=_MARK_DIGITS // 2).hexdigest()
