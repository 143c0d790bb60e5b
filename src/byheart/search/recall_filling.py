"""Fill the text of a recall: memories in full, and a line for each of the others.

The budget counts this text, because a model reads it. A memory that is given in full has no line.
The memories that fit are the first ones of the page, with none left out between them, so that the
next page begins behind the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Protocol

from byheart.contracts import Reader, TextSummary
from byheart.model import Memory, RecalledMemory, RecalledSummary
from byheart.search.damaged_store import contradiction
from byheart.search.recall_budget import Budget
from byheart.search.stale_files import FileFacts, describe_file
from byheart.startup.dataclass_types import dataclass

# Memories that are read at once where each may still fit into the budget.
_ASKED_AHEAD = 8
_OWN = ("id", "score", *FileFacts.__annotations__)
_OF_MEMORY = tuple(each.name for each in fields(RecalledMemory) if each.name not in _OWN)


class RecallWriter(Protocol):
    """Write the parts of a recall for a model; each part ends its own line or paragraph."""

    # The line above the memories that are only listed.
    heading: str

    def detail(self, memory: RecalledMemory) -> str:
        """Write a memory in full."""
        ...

    def line(self, entry: RecalledSummary) -> str:
        """Write a line for a memory that is only listed."""
        ...


@dataclass(frozen=True, slots=True)
class Filled:
    """Hold the memories that fit, the text that names them, and the ids of damaged ones."""

    index: tuple[RecalledSummary, ...]
    details: tuple[RecalledMemory, ...]
    text: str
    damaged: tuple[str, ...]


class _Line:
    """Hold one memory of the page: its line, and whether it is listed or given in full."""

    def __init__(self, text: TextSummary, score: float, writer: RecallWriter) -> None:
        self.text_id = text.text_id
        self.file = text.file
        self.score = score
        self.entry = RecalledSummary(text.memory_id, text.summary)
        self.written = writer.line(self.entry)
        self.cost: int | None = None
        self.listed = False
        self.detail: RecalledMemory | None = None


def fill_page(
    page: Sequence[tuple[TextSummary, float]],
    budget: Budget,
    reader: Reader,
    space: str,
    writer: RecallWriter,
) -> Filled:
    """List memories in half of the budget, give those in full that fit, then go on behind them."""
    lines = [_Line(text, score, writer) for text, score in page]
    damaged: list[str] = []
    half = budget.left // 2
    if lines and budget.spend(budget.cost(writer.heading, budget.left)):
        for line in lines:
            line.cost = budget.cost(line.written, budget.left)
            line.listed = budget.spend(line.cost, within=half)
            if not line.listed:
                break
        _add_details(lines, budget, reader, space, writer, damaged)
    # Some counters find more tokens in the whole text than in its parts.
    while (used := budget.count(text := _write(lines, writer))) > budget.max_tokens:
        _drop_last(lines)
    budget.used = used
    shown = [line for line in lines if line.listed or line.detail is not None]
    return Filled(
        tuple(line.entry for line in shown),
        tuple(line.detail for line in lines if line.detail is not None),
        text,
        tuple(damaged),
    )


def _add_details(
    lines: Sequence[_Line],
    budget: Budget,
    reader: Reader,
    space: str,
    writer: RecallWriter,
    damaged: list[str],
) -> None:
    """Replace lines by memories in full where they fit; list until a line does not fit."""
    text_ids = [line.text_id for line in lines]
    lengths = reader.token_counts(text_ids, space)
    asked = set(_likely(text_ids, lengths, budget.left))
    reader.prefetch(*(partial(reader.memory, text_id, space) for text_id in asked))
    for at, line in enumerate(lines):
        if not line.listed:
            line.cost = budget.cost(line.written, budget.left)
            line.listed = budget.spend(line.cost)
            if not line.listed:
                return
        refund = line.cost if line.listed and line.cost is not None else 0
        room = budget.left + refund
        if (lengths.get(line.text_id) or 0) >= room:
            continue
        if line.text_id not in asked:
            # A memory before did not fit, so that there is room for others: ask for some at once.
            fitting = [each for each in text_ids[at:] if (lengths.get(each) or 0) < room]
            more = [each for each in fitting if each not in asked][:_ASKED_AHEAD]
            asked.update(more)
            reader.prefetch(*(partial(reader.memory, text_id, space) for text_id in more))
        memory = reader.memory(line.text_id, space)
        if memory is None:  # impossible in an undamaged store, since one snapshot has both
            raise contradiction(line.text_id)
        if memory.damaged:
            damaged.append(memory.memory_id)
            continue
        detail = _detail(memory, line)
        cost = budget.cost(writer.detail(detail), room)
        if cost is not None:
            budget.used += cost - refund
            line.detail, line.listed = detail, False


def _write(lines: Sequence[_Line], writer: RecallWriter) -> str:
    whole = [writer.detail(line.detail) for line in lines if line.detail is not None]
    listed = [line.written for line in lines if line.listed]
    return "".join([*whole, *([writer.heading] if listed else []), *listed])


def _drop_last(lines: Sequence[_Line]) -> None:
    """Leave out the last memory that is listed or given in full."""
    last = [line for line in lines if line.listed or line.detail is not None][-1]
    last.listed, last.detail = False, None


def _likely(text_ids: Sequence[str], lengths: Mapping[str, int], left: int) -> Iterator[str]:
    """Name the texts that fit into a budget by their own lengths, without their fields."""
    for text_id in text_ids:
        length = lengths.get(text_id) or 0
        if length <= left:
            left -= length
            yield text_id


def _detail(memory: Memory, line: _Line) -> RecalledMemory:
    named = {name: getattr(memory, name) for name in _OF_MEMORY}
    facts = describe_file(line.file)
    return RecalledMemory(id=memory.memory_id, score=line.score, **named, **facts)
