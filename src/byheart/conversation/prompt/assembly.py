"""Assemble the parts of a context, each within its share of the budget.

The stable part comes first: identity files, the running summary and pinned memories, which stay
the same from turn to turn. Then come the retrieved passages, then the recent messages. The stable
part depends only on its own content and the budget, so a provider can cache its exact bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from byheart.contracts import Candidate
from byheart.conversation.prompt import prompts
from byheart.conversation.prompt.delimiting import PREAMBLE
from byheart.conversation.prompt.entries import (
    Entry,
    identity_entry,
    message_entry,
    passage_entry,
    pinned_entry,
    summary_entry,
)
from byheart.conversation.prompt.identity_files import IdentityFile
from byheart.conversation.prompt.measure import Measure
from byheart.conversation.prompt.passages import choose
from byheart.conversation.prompt.token_budget import (
    IDENTITY_SHARE,
    PINNED_SHARE,
    RECENT_SHARE,
    STABLE_SHARE,
    Reserved,
    fill,
    fill_evenly,
    reserve,
)
from byheart.model import (
    ContextAnswer,
    ContextReceipt,
    LeftOut,
    LeftOutReason,
    Memory,
    Mode,
)
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """Describe a requested context, already checked."""

    session_id: str
    query: str
    mode: Mode
    max_tokens: int
    top_k: int


@dataclass(frozen=True, slots=True)
class Materials:
    """Hold all materials of a context, from one snapshot; messages are in order, oldest first."""

    summary: Memory | None
    pinned: Sequence[Memory]
    recent: Sequence[Memory]
    question_id: str | None
    candidates: Sequence[Candidate]
    # The moment at which pinned memories have to be valid.
    at: datetime
    identity: Sequence[IdentityFile] = ()
    # Passages that probably have less to do with the question are left out.
    least_confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class _Stable:
    """Hold the stable part, in the order in which it is shown, and its number of tokens."""

    preamble: str
    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]
    tokens: int

    @property
    def text(self) -> str:
        return self.preamble + _written(self.entries)


@dataclass(frozen=True, slots=True)
class _Block:
    """Hold the filled parts, each in the order in which it is shown."""

    stable: _Stable
    retrieved: tuple[Entry, ...]
    recent: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (*self.stable.entries, *self.retrieved, *self.recent)

    @property
    def text(self) -> str:
        return self.stable.text + _written((*self.retrieved, *self.recent))


class Assembler:
    """Assemble contexts with one token counter; reuse the stable part while it is unchanged."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._last: tuple[tuple[object, ...], _Stable] | None = None

    def assemble(self, request: ContextRequest, materials: Materials) -> ContextAnswer:
        """Assemble a context within the token limit of the request."""
        return _assemble(request, materials, self._stable(request, materials), self.measure)

    def _stable(self, request: ContextRequest, materials: Materials) -> _Stable:
        # The stable part depends on these values only.
        faults = tuple(_pin_fault(each, materials.at) for each in materials.pinned)
        given = (
            *(materials.identity, materials.summary, materials.pinned, request.max_tokens),
            faults,
        )
        last = self._last
        if last is None or last[0] != given:
            stable = _fill_stable(materials, request.max_tokens, self.measure)
            last = self._last = (given, stable)
        return last[1]


def _assemble(
    request: ContextRequest, materials: Materials, stable: _Stable, measure: Measure
) -> ContextAnswer:
    room = request.max_tokens - stable.tokens if stable.preamble else 0
    while True:
        block = _fill_rest(request, materials, stable, measure, room)
        tokens = _tokens(block, measure)
        used = sum(tokens.values())
        if used <= request.max_tokens:
            break
        room = max(0, room - (used - request.max_tokens))
    text = block.text
    return ContextAnswer(
        session_id=request.session_id,
        query=request.query,
        mode=request.mode,
        text=text,
        stable=stable.text,
        stable_hash=sha256(stable.text.encode()).hexdigest(),
        tokens_used=used,
        openai=prompts.openai_messages(stable.text, block.retrieved, block.recent),
        anthropic=prompts.anthropic_prompt(stable.text, block.retrieved, block.recent),
        receipt=ContextReceipt(
            items=tuple(entry.item for entry in block.entries),
            left_out=block.left_out,
            tokens=tokens,
            max_tokens=request.max_tokens,
            counter=measure.name,
        ),
    )


def _fill_stable(materials: Materials, max_tokens: int, measure: Measure) -> _Stable:
    """Fill the stable part: identity files, the summary, and pinned memories by importance."""
    frame = measure.count(PREAMBLE)
    preamble = PREAMBLE if frame <= max_tokens else ""
    share = min(max_tokens - frame, int(max_tokens * STABLE_SHARE)) if preamble else 0
    holds = [each for each in materials.pinned if _pin_fault(each, materials.at) is None]
    identity = [identity_entry(file) for file in materials.identity if file.trouble is None]
    unreadable = tuple(
        entry.left_out("unreadable", f"{entry.item.path}: {file.trouble}")
        for file in materials.identity
        if file.trouble is not None
        for entry in (identity_entry(file),)
    )
    summary = [] if materials.summary is None else [summary_entry(materials.summary)]
    # Among equally important pins the short ones come first, so that more of them fit.
    by_worth = sorted(holds, key=lambda memory: (-memory.importance, len(memory.content)))
    pinned = [pinned_entry(memory) for memory in by_worth]
    faulty = tuple(
        pinned_entry(memory).left_out(*fault)
        for memory in materials.pinned
        if (fault := _pin_fault(memory, materials.at)) is not None
    )
    room = share
    while True:
        files = fill(identity, int(room * IDENTITY_SHARE), measure)
        left = room - files.tokens
        for_pins = reserve(pinned, int(left * PINNED_SHARE), measure)
        first = fill(summary, left - for_pins.tokens, measure)
        second = fill_evenly(pinned, left - first.tokens, measure)
        placed = sorted((*first.kept, *second.kept), key=_stable_order(materials))
        entries = [*files.kept, *placed]
        left_out = (*unreadable, *files.left_out, *first.left_out, *second.left_out, *faulty)
        apart = measure.count(preamble) + files.tokens + first.tokens + second.tokens
        tokens = measure.count_joined(lambda: preamble + _written(entries), apart)  # noqa: B023
        excess = tokens - measure.count(preamble) - share
        if excess <= 0 or not entries:
            return _Stable(preamble, tuple(entries), left_out, tokens)
        room = max(0, room - excess)


def _pin_fault(memory: Memory, at: datetime) -> tuple[LeftOutReason, str] | None:
    """Return why a pinned memory does not belong into a prompt at a moment."""
    if memory.superseded_by is not None:
        return "superseded", f"{memory.superseded_by} is valid instead"
    if memory.valid_until is not None and memory.valid_until <= at:
        return "not valid", f"ended on {memory.valid_until:%Y-%m-%d}"
    if memory.valid_from is not None and memory.valid_from > at:
        return "not valid", f"begins on {memory.valid_from:%Y-%m-%d}"
    return None if memory.trusted else ("untrusted", "waits for review")


def _fill_rest(
    request: ContextRequest, materials: Materials, stable: _Stable, measure: Measure, room: int
) -> _Block:
    """Fill retrieved passages and recent messages; each may use the room the other leaves."""
    there = {entry.item.memory_id for entry in stable.entries}
    latest_first = [
        message_entry(memory)
        for memory in reversed(materials.recent)
        # An empty turn says nothing; it exists only for the transcript.
        if memory.memory_id not in there and memory.content.strip()
    ]
    for_recent = reserve(latest_first, int(room * RECENT_SHARE), measure)
    chosen = choose(
        materials.candidates,
        _there(materials, stable, for_recent),
        [entry.text for entry in (*stable.entries, *for_recent.entries)],
        request.top_k,
        materials.least_confidence,
    )
    passages = [passage_entry(passage) for passage in chosen.passages]
    retrieved = fill(passages, room - for_recent.tokens, measure)
    brought = {entry.item.memory_id for entry in retrieved.kept}
    recent = fill(
        [entry for entry in latest_first if entry.item.memory_id not in brought],
        room - retrieved.tokens,
        measure,
    )
    doubled = tuple(
        entry.left_out("retrieved", "is among what was retrieved")
        for entry in latest_first
        if entry.item.memory_id in brought
    )
    return _Block(
        stable,
        retrieved.kept,
        recent.kept[::-1],
        (
            *stable.left_out,
            *chosen.left_out,
            *retrieved.left_out,
            *doubled,
            *recent.left_out,
        ),
    )


def _stable_order(materials: Materials) -> Callable[[Entry], int]:
    """Order the summary before the pins, and the pins in the order of pinning."""
    places = {memory.memory_id: place for place, memory in enumerate(materials.pinned)}
    return lambda entry: places.get(entry.item.memory_id, -1)


def _there(materials: Materials, stable: _Stable, recent: Reserved) -> dict[str, LeftOutReason]:
    """Name the memories that the prompt already contains, and the question itself."""
    there: dict[str, LeftOutReason] = {}
    if materials.question_id is not None:
        there[materials.question_id] = "question"
    if materials.summary is not None:
        there[materials.summary.memory_id] = "summary"
    for entry in stable.entries:
        if entry.part == "identity":
            continue
        there[entry.item.memory_id] = "summary" if entry.part == "summary" else "pinned"
    for entry in recent.entries:
        there[entry.item.memory_id] = "recent"
    return there


def _tokens(block: _Block, measure: Measure) -> Mapping[str, int]:
    tokens = {
        "frame": measure.count(block.stable.preamble),
        **dict.fromkeys(("identity", "summary", "pinned", "retrieved", "recent"), 0),
    }
    for entry in block.entries:
        tokens[entry.part] += entry.item.tokens
    parts = sum(tokens.values())
    tokens["frame"] += measure.count_joined(lambda: block.text, parts) - parts
    return tokens


def _written(entries: Sequence[Entry]) -> str:
    return "".join(entry.written for entry in entries)
