"""Make the entries of a context, with their written form and their number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from byheart.conversation.prompt.delimiting import (
    IDENTITY,
    MESSAGE,
    PASSAGE,
    PINNED,
    SUMMARY,
    quote,
)
from byheart.conversation.prompt.identity_files import IdentityFile
from byheart.conversation.prompt.measure import Measure
from byheart.conversation.prompt.passages import Passage
from byheart.model import (
    HEADING_SEPARATOR,
    ContextItem,
    ContextPart,
    LeftOut,
    LeftOutReason,
    Memory,
    Origin,
)
from byheart.model.fields import BY_NAME
from byheart.model.ids import short_form
from byheart.search import describe_file
from byheart.startup.dataclass_types import dataclass

# The origin of the words of each speaker whose turns are messages of their own in a prompt.
SPEAKERS: Mapping[str, Origin] = {"user": "user", "assistant": "agent"}
CUT_MARK = " […]"
# Fewer tokens of a text say nothing.
LEAST_TOKENS = 24
# Only as much of a text is examined as may be shown.
_CHARS_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold a text with its tag, and its item in the receipt."""

    part: ContextPart
    tag: str
    attributes: tuple[tuple[str, str | None], ...]
    text: str
    item: ContextItem

    @property
    def written(self) -> str:
        """Return the entry as it is written in the context."""
        return quote(self.tag, self.text, self.attributes)

    def tokens(self, measure: Measure, most: int) -> int:
        """Count the tokens of the entry; for a very long text, return any number above `most`."""
        if len(self.text) <= most * _CHARS_PER_TOKEN:
            return measure.count(self.written)
        return self.measured(measure, most).item.tokens

    def measured(self, measure: Measure, most: int) -> Entry:
        """Record the tokens of the entry; read only the beginning of a text that cannot fit."""
        if len(self.text) <= most * _CHARS_PER_TOKEN:
            tokens = measure.count(self.written)
            return self if tokens == self.item.tokens else self._counted(tokens)
        entry = replace(self, text=self.text[: most * _CHARS_PER_TOKEN] + CUT_MARK)
        item = replace(self.item, tokens=measure.count(entry.written), cut=True)
        return replace(entry, item=item)

    def _counted(self, tokens: int) -> Entry:
        return replace(self, item=replace(self.item, tokens=tokens))

    def shortened(self, measure: Measure, room: int) -> Entry | None:
        """Cut the text so that the entry fits, or return None if too little of it would remain."""
        most = room - measure.count(replace(self, text=CUT_MARK).written)
        while most >= LEAST_TOKENS:
            text = measure.shorten(self.text, most).rstrip()
            entry = replace(self, text=text.removesuffix(CUT_MARK) + CUT_MARK)
            tokens = measure.count(entry.written)
            if tokens <= room:
                return replace(entry, item=replace(self.item, tokens=tokens, cut=True))
            most -= tokens - room
        return None

    def left_out(self, reason: LeftOutReason, tells: str) -> LeftOut:
        """Report why the entry is left out."""
        chunks = self.item.chunk_ids
        return LeftOut(
            self.part,
            self.item.memory_id,
            chunks[0] if chunks else None,
            self.item.score,
            reason,
            tells,
        )


def identity_entry(file: IdentityFile) -> Entry:
    """Make an entry of an identity file, without its folder, which only the owner may know."""
    name = file.path.replace("\\", "/").rpartition("/")[2]
    item = ContextItem(
        part="identity",
        memory_id="",
        chunk_ids=(),
        kind="file",
        role=None,
        origin="file",
        title=None,
        path=name,
        start_line=None,
        end_line=None,
        session_id=None,
        created_at=file.modified_at,
        score=None,
        tokens=0,
        cut=False,
    )
    return Entry("identity", IDENTITY, (("file", name),), file.text, item)


def summary_entry(memory: Memory) -> Entry:
    """Make an entry of the running summary."""
    return _whole("summary", SUMMARY, memory, {"session": memory.session_id})


def pinned_entry(memory: Memory) -> Entry:
    """Make an entry of a pinned memory."""
    return _whole(
        "pinned",
        PINNED,
        memory,
        {
            "id": short_form(memory.memory_id),
            "kind": _kind(memory.kind),
            "origin": memory.origin,
            "title": memory.title,
            "date": f"{memory.created_at:%Y-%m-%d}",
        },
    )


def message_entry(memory: Memory) -> Entry:
    """Make an entry of a turn."""
    said = {
        "role": memory.role,
        "origin": None if speaks_for_itself(memory) else memory.origin,
        "title": memory.title,
        "path": memory.path,
    }
    return _whole("recent", MESSAGE, memory, said)


def speaks_for_itself(said: Memory | ContextItem) -> bool:
    """Return whether a turn has the origin that its role claims; other roles claim none."""
    return SPEAKERS.get(said.role or "", said.origin) == said.origin


def passage_entry(passage: Passage) -> Entry:
    """Make an entry of a retrieved passage, with everything needed to cite and open it."""
    first, last, memory = passage.chunks[0], passage.chunks[-1], passage.memory
    lines, facts = f"{first.start_line}-{last.end_line}", describe_file(passage.file)
    attributes = {
        "id": f"{short_form(memory.text_id)}#{first.index}-{last.index}"
        if len(passage.chunks) > 1
        else short_form(passage.chunk_ids[0]),
        "kind": _kind(memory.kind),
        "origin": memory.origin,
        "title": memory.title if memory.title != memory.path else None,
        "path": memory.path,
        "lines": lines if memory.path else None,
        "stale": "its file has changed since" if facts["stale"] else None,
        "under": HEADING_SEPARATOR.join(
            heading.title
            for heading in first.headings
            if heading.title != memory.title and heading.title not in passage.text
        ),
        "session": memory.session_id,
        "date": f"{memory.created_at:%Y-%m-%d}",
    }
    item = ContextItem(
        part="retrieved",
        memory_id=memory.text_id,
        chunk_ids=passage.chunk_ids,
        kind=memory.kind,
        role=None,
        origin=memory.origin,
        title=memory.title,
        path=memory.path,
        start_line=first.start_line,
        end_line=last.end_line,
        session_id=memory.session_id,
        created_at=memory.created_at,
        score=passage.score,
        tokens=0,
        cut=False,
        **facts,
    )
    return Entry("retrieved", PASSAGE, tuple(attributes.items()), passage.text.strip("\r\n"), item)


def _kind(kind: str) -> str | None:
    """Name a kind, unless it is the usual one: every word of a tag costs tokens."""
    return None if kind == BY_NAME["kind"].default else kind


def _whole(part: ContextPart, tag: str, memory: Memory, attributes: dict[str, str | None]) -> Entry:
    item = ContextItem(
        part=part,
        memory_id=memory.memory_id,
        chunk_ids=(),
        kind=memory.kind,
        role=memory.role,
        origin=memory.origin,
        title=memory.title,
        path=memory.path,
        start_line=None,
        end_line=None,
        session_id=memory.session_id,
        created_at=memory.created_at,
        score=memory.importance if part == "pinned" else None,
        tokens=0,
        cut=False,
    )
    return Entry(part, tag, tuple(attributes.items()), memory.content.strip("\r\n"), item)
