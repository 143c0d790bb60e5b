"""Build the context of a prompt from a session and a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from byheart.contracts import Candidate, Listing, Models, Reader, Storage
from byheart.conversation.prompt import (
    STABLE_SHARE,
    Assembler,
    ContextRequest,
    IdentityFile,
    Materials,
    Measure,
    read_identity_files,
    says_nothing,
)
from byheart.conversation.receipts import make_receipt
from byheart.conversation.running_summary import find_summary
from byheart.embedding.vectorizer import Asked, Vectorizer
from byheart.errors import join_hints
from byheart.language.terms import query_terms
from byheart.memory import notes
from byheart.model import (
    ContextAnswer,
    ContextPart,
    Filter,
    IndexState,
    LeftOut,
    Memory,
    Mode,
    ReceiptVerb,
)
from byheart.model.filters import of_session
from byheart.search import SearchRequest, gather, is_relevant
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.system import clock

# Passages are chosen among twice as many chunks plus these. Each chunk takes 0.05 ms.
_MORE_CANDIDATES = 4
LARGEST_TOP_K = 100
# A long message has its question at the beginning.
_LONGEST_QUESTION = 4000
# The number of earlier turns to search for a question if the last message asks nothing.
_QUESTION_TURNS = 6


@dataclass(frozen=True, slots=True)
class Reminder:
    """Limit a context that nobody asked for to relevant passages that were not given before."""

    since: datetime | None
    least_similarity: float
    max_chars: int


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Describe a requested context, already checked; `where` filters the retrieved passages."""

    where: Filter
    query: str | None
    mode: Mode
    max_tokens: int
    recent: int
    top_k: int
    # A second filter, whose passages are retrieved as well.
    also: Filter | None = None
    reminder: Reminder | None = None
    # A preview is not recorded.
    preview: bool = False


_DAMAGED = "its text is not the one that was saved"


class _There(NamedTuple):
    """Hold the parts that do not depend on the question: summary, pins, messages, identity."""

    summary: Memory | None
    pinned: Sequence[Memory]
    recent: Sequence[Memory]
    identity: Sequence[IdentityFile]


class Prompter:
    """Gather the materials of a context from one snapshot of the store."""

    def __init__(self, storage: Storage, vectorizer: Vectorizer, settings: Settings) -> None:
        self._storage = storage
        self._vectorizer = vectorizer
        self._settings = settings
        self._assembler: Assembler | None = None

    def context(
        self, request: PromptRequest, verb: ReceiptVerb
    ) -> tuple[ContextAnswer, IndexState]:
        """Make the context of a session, and return it with the state of the index."""
        session_id = request.where.session_id
        assert session_id is not None, "a context is of one session"
        question = self._question(request)
        query = (request.query or (question.content if question else ""))[:_LONGEST_QUESTION]
        mode = request.mode
        asks_by_meaning = mode != "fts" and bool(query) and request.top_k > 0
        searches = _searches(request, query, self._settings)
        # Load the tokenizer before the snapshot is opened that tells whether it is the right one.
        self._vectorizer.likely_tokens().token_starts("")
        question_text = query if asks_by_meaning else None
        with self._vectorizer.asking(question_text, request.where.space) as asked:
            if asks_by_meaning and asked.vector is None:
                mode = "fts"
            assembler = self._assembled_by(asked.models or asked.reader.models.read())
            there, damaged = _sound(self._look_up(request, asked.reader))
            known = [*there.recent, *there.pinned, *filter(None, (there.summary, question))]
            ids = {memory.memory_id for memory in known}
            gathered = [
                gather(
                    replace(search, mode=mode),
                    asked.reader,
                    asked.vector,
                    ids,
                    asked.unrelated,
                    question.memory_id if question else None,
                )
                for search in searches
            ]
            found = _best_first(each.candidates for each in gathered)
            damaged += [_damaged_passage(each) for each in found if each.found.memory.damaged]
            found = [each for each in found if not each.found.memory.damaged]
            materials = Materials(
                at=request.where.as_of or clock.now(),
                summary=_shown(there.summary),
                pinned=there.pinned,
                recent=there.recent,
                question_id=question.memory_id if question else None,
                candidates=_worth_giving(request, found, query, asked),
                identity=there.identity,
                # A reminder has a threshold of its own, in `_worth_giving`.
                least_confidence=0.0 if request.reminder else self._settings.context_min_confidence,
            )
            state = asked.reader.index.state(
                request.where.space,
                request.where.session_id,
                include_global=request.where.include_global,
            )
        asked_for = ContextRequest(session_id, query, mode, request.max_tokens, request.top_k)
        answer = assembler.assemble(asked_for, materials)
        while request.reminder is not None and _too_long(answer, request.reminder):
            asked_for = replace(asked_for, max_tokens=asked_for.max_tokens // 2)
            answer = assembler.assemble(asked_for, materials)
        answer = _with_left_out(answer, damaged)
        if not request.preview:
            answer = self._record(answer, verb, request.where.space)
        remark = join_hints("; ", (asked.remark, _name_missing(answer)))
        judgement = max(
            (each.judgement for each in gathered), key=lambda each: each.confidence, default=None
        )
        return replace(
            answer,
            degraded=asked.degraded,
            remark=remark,
            verdict=judgement.verdict if judgement else None,
            confidence=judgement.confidence if judgement else 0.0,
            index=state,
        ), state

    def _record(self, answer: ContextAnswer, verb: ReceiptVerb, space: str) -> ContextAnswer:
        """Note what was given, and keep the receipt."""
        given = [
            name
            for item in answer.receipt.items
            for name in item.chunk_ids or filter(None, (item.memory_id,))
        ]
        kept_days = self._settings.receipt_days
        receipt_id, receipts = make_receipt(answer, verb, space, clock.now(), kept_days)
        self._storage.note([*notes.emissions(given, space, answer.session_id), *receipts])
        return replace(answer, receipt_id=receipt_id)

    def _look_up(self, request: PromptRequest, reader: Reader) -> _There:
        session_id, space = request.where.session_id, request.where.space
        assert session_id is not None, "a context is of one session"
        own = of_session(session_id, space)
        everywhere = replace(own, include_global=request.where.include_global)
        return _There(
            find_summary(reader, session_id, space),
            reader.memories(Listing(everywhere, "pinned")),
            reader.memories(
                Listing(replace(own, trusted=True), "said last", request.recent, roles=())
            )
            if request.recent
            else [],
            list(read_identity_files(self._settings, space)),
        )

    def _question(self, request: PromptRequest) -> Memory | None:
        """Find the last user message that asks something, unless the request has a query."""
        if request.query is not None:
            return None
        with self._storage.reading(request.where.space) as reader:
            own = of_session(request.where.session_id, request.where.space)
            own = replace(own, trusted=True)
            last = reader.memories(Listing(own, "said last", 1, roles=("user",)))
            if last and says_nothing(last[0].content):
                several = Listing(own, "said last", _QUESTION_TURNS, roles=("user",))
                last = reader.memories(several)
        asks = (turn for turn in reversed(last) if not says_nothing(turn.content))
        return next(asks, last[-1] if last else None)

    def _assembled_by(self, models: Models) -> Assembler:
        counter = self._vectorizer.counter(models)
        if self._assembler is None or self._assembler.measure.name != counter.name:
            self._assembler = Assembler(Measure(*counter))
        return self._assembler


def _sound(there: _There) -> tuple[_There, list[LeftOut]]:
    """Remove damaged texts, because a model would believe them."""
    named: list[tuple[ContextPart, Sequence[Memory]]] = [
        ("summary", [there.summary] if there.summary else []),
        ("pinned", there.pinned),
        ("recent", there.recent),
    ]
    damaged = [
        LeftOut(part, memory.memory_id, None, None, "damaged", _DAMAGED)
        for part, memories in named
        for memory in memories
        if memory.damaged
    ]
    if not damaged:
        return there, []
    summary, pinned, recent = ([each for each in some if not each.damaged] for _, some in named)
    sound = _There(summary[0] if summary else None, pinned, recent, there.identity)
    return sound, damaged


def _damaged_passage(candidate: Candidate) -> LeftOut:
    found = candidate.found
    chunk_id = f"{found.memory.text_id}#{found.chunk.index}"
    return LeftOut(
        "retrieved", found.memory.text_id, chunk_id, candidate.score, "damaged", _DAMAGED
    )


def _with_left_out(answer: ContextAnswer, damaged: Sequence[LeftOut]) -> ContextAnswer:
    if not damaged:
        return answer
    left_out = (*answer.receipt.left_out, *damaged)
    return replace(answer, receipt=replace(answer.receipt, left_out=left_out))


def _searches(request: PromptRequest, query: str, settings: Settings) -> list[SearchRequest]:
    if not request.top_k or not query.strip():
        return []
    limit = 2 * request.top_k + _MORE_CANDIDATES
    return [
        SearchRequest(
            query.strip(),
            _injectable(where),
            limit=limit,
            mode=request.mode,
            feedback_half_life_days=settings.feedback_half_life_days,
            time_weight=settings.time_weight,
        )
        for where in filter(None, (request.where, request.also))
    ]


def _injectable(where: Filter) -> Filter:
    """Leave out untrusted memories, unless the caller asks for them."""
    return replace(where, trusted=True) if where.trusted is None else where


def _name_missing(answer: ContextAnswer) -> str | None:
    """Name pinned memories without room, since users rely on them, or other serious losses."""
    dropped = [each for each in answer.receipt.left_out if each.reason == "budget"]
    if dropped and not answer.receipt.items:
        return f"nothing fits: max_tokens {answer.receipt.max_tokens} is too few"
    damaged = [each for each in answer.receipt.left_out if each.reason == "damaged"]
    if damaged:
        return f"damaged, so left out: {', '.join(each.memory_id for each in damaged)}"
    missing = [each.memory_id for each in dropped if each.part == "pinned"]
    share = f"what stays has {STABLE_SHARE:.0%} of max_tokens"
    return f"pinned, but no room for: {', '.join(missing)} ({share})" if missing else None


def _worth_giving(
    request: PromptRequest, candidates: list[Candidate], query: str, asked: Asked
) -> list[Candidate]:
    """Remove irrelevant, already given and repeated passages from a reminder's candidates."""
    if request.reminder is None:
        return candidates
    about, session_id = request.reminder, request.where.session_id
    assert session_id is not None, "a context is of one session"
    given = asked.reader.given_since(request.where.space, session_id, about.since)
    words, prompt = query_terms(query), _unspaced(query)
    return [
        each
        for each in candidates
        if each.found.chunk_no not in given
        and not _repeats(each, prompt)
        and is_relevant(each, words, asked.vector, about.least_similarity)
    ]


def _repeats(candidate: Candidate, prompt: str) -> bool:
    """Return whether a passage is an earlier copy of the prompt, or of a part of it."""
    text, is_turn = _unspaced(candidate.found.chunk.content), candidate.found.memory.role == "user"
    return text == prompt or (is_turn and f" {text} " in f" {prompt} ")


def _unspaced(text: str) -> str:
    return " ".join(text.split())


def _too_long(answer: ContextAnswer, reminder: Reminder) -> bool:
    return len(answer.text) > reminder.max_chars and answer.receipt.max_tokens > 1


def _best_first(gathered: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Merge several lists into one, each chunk once, ordered by score."""
    chunks = {each.found.chunk_no: each for found in gathered for each in found}
    return sorted(chunks.values(), key=lambda each: -each.score)


def _shown(summary: Memory | None) -> Memory | None:
    hidden = summary is None or summary.forgotten_at is not None or not summary.trusted
    return None if hidden else summary
