"""Transcripts of Claude Code: JSON lines, a file for each session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from byheart.upkeep.foreign.pieces import (
    Item,
    LeftOut,
    Piece,
    label,
    title,
    without_nothing,
    word,
)
from byheart.upkeep.foreign.project import project_of
from byheart.upkeep.foreign.sources import Source
from byheart.upkeep.foreign.transcripts import Calls, Record, read_lines, text_of

AGENT = "claude-code"
_TYPES = ("user", "assistant", "system", "summary", "attachment", "progress")
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
# What the program puts around or beside the words that were typed.
_INSERTED = re.compile(r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>")
_BLANKS = re.compile(r"\s*")
_COMMANDS = ("<command-name>", "<command-message>")
_NOT_SAID = re.compile(
    r"\s*(?:<(?:local-command-\w+|bash-\w+|task-notification|command-message>\s*<)"
    r"|\[Request interrupted by user|Caveat: The messages below were generated)"
)
_NO_ANSWER = ("(no content)", "No response requested.")


def is_record(line: Record) -> bool:
    """Say whether a line is of such a transcript."""
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
    """Give what was said, and what tools put out."""
    return read_lines(source, stream, _Transcript(source).read, may_grow=True)


def said_by_user(text: str) -> str | None:
    """Give what a person typed, without what the program put around it; `None` if nothing was."""
    text = _without_inserted(text).strip()
    # Elsewhere than at the beginning they are quoted.
    if text.startswith(_COMMANDS) and (command := _within(text, "command-name")):
        return f"{command} {_within(text, 'command-args')}".strip()
    return None if _NOT_SAID.match(text) or not text else text


def _without_inserted(text: str) -> str:
    """Take out what programs insert; each end is looked for once, however many begin."""
    kept, at, unclosed = list[str](), 0, set[str]()
    for opens in _INSERTED.finditer(text):
        tag = opens[1]
        if opens.start() < at or tag in unclosed:
            continue
        end = text.find(f"</{tag}>", opens.end())
        if end < 0:
            unclosed.add(tag)
            continue
        kept.append(text[at : opens.start()])
        blanks = _BLANKS.match(text, end + len(f"</{tag}>"))
        assert blanks is not None, "none at all are blanks too"
        at = blanks.end()
    return "".join((*kept, text[at:]))


def _within(text: str, tag: str) -> str:
    """Give what stands in the first element of a name, or nothing."""
    inside, closed, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return inside.strip() if closed else ""


class _Transcript:
    def __init__(self, source: Source) -> None:
        self._name = source.path.stem
        self._title: str | None = None
        self._project: str | None = None
        self._calls = Calls()
        self._seen: set[str] = set()

    def read(self, place: str, line: Record) -> Iterator[Item]:
        """Give what a line holds."""
        kind, uuid = word(line.get("type")), word(line.get("uuid"))
        if kind in _TITLES:
            self._title = title(line.get(_TITLES[kind])) or self._title
            return
        message = line.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            yield LeftOut(place, "record")
            return
        if uuid and uuid in self._seen:  # written anew after a compaction
            yield LeftOut(place, "repetition")
            return
        self._seen.add(uuid)
        self._project = self._project or project_of(word(line.get("cwd")))
        if line.get("isSidechain"):
            yield LeftOut(place, "sidechain")
        elif line.get("isCompactSummary"):
            yield self._summary(place, line, message)
        elif _is_meta(line):
            yield LeftOut(place, "meta")
        elif kind == "user":
            yield from self._user(place, line, message.get("content"))
        else:
            yield from self._assistant(place, line, message.get("content"))

    def _user(self, place: str, line: Record, content: object) -> Iterator[Item]:
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield self._output(place, line, block)
            elif isinstance(block, dict) and block.get("type") != "text":
                yield LeftOut(place, str(block.get("type")))
        text = text_of(content, "text")
        if text:
            said = said_by_user(text)
            if said is None:
                yield LeftOut(place, "meta")
            else:
                yield self._turn(place, line, "user", said)

    def _assistant(self, place: str, line: Record, content: object) -> Iterator[Item]:
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict) or block.get("type") == "text":
                continue
            if block.get("type") == "tool_use":
                self._calls.note(block.get("id"), block.get("name"), block.get("input"))
            else:
                yield LeftOut(place, str(block.get("type")).replace("redacted_", ""))
        text = text_of(content, "text").strip()
        if text in _NO_ANSWER:
            yield LeftOut(place, "meta")
        elif text:
            yield self._turn(place, line, "assistant", text)

    def _output(self, place: str, line: Record, block: dict[str, Any]) -> Item:
        tool, about = self._calls.take(block.get("tool_use_id"))
        text = text_of(block.get("content"), "text")
        if not text.strip():
            return LeftOut(place, "empty output")
        fields = self._fields(line, role="tool", kind="tool_output", content=text)
        return Piece(place, {**fields, "title": about}, label(block.get("tool_use_id")), tool=tool)

    def _turn(self, place: str, line: Record, role: str, text: str) -> Item:
        # One turn that is found by the title of the conversation is enough.
        about, self._title = self._title, None
        return Piece(place, self._fields(line, role=role, content=text, title=about))

    def _summary(self, place: str, line: Record, message: dict[str, Any]) -> Item:
        text = text_of(message.get("content"), "text")
        if not text.strip():
            return LeftOut(place, "meta")
        fields = self._fields(line, kind="session_context", content=text)
        at = fields.pop("created_at", None)
        fields["origin"] = "agent"
        return Piece(place, fields, label(f"compaction:{line.get('uuid')}"), at)

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
