"""Check whether a store still finds its own passages, how fast, and without faults.

The questions come from the store's own passages: a sentence, half a sentence, and its rarest
words, so that the answer of each is known. A few other questions have no answer in almost any
store. The benchmark adds nothing to statistics, access counts or the record of returned
passages.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from byheart.contracts import FoundChunk, Storage, Tally
from byheart.embedding import stored_vectors
from byheart.embedding.vectorizer import Asked, Vectorizer
from byheart.errors import Do, Hint, join_hints
from byheart.language.terms import STOP_WORDS
from byheart.model import (
    ECHO,
    MODES,
    Bench,
    BenchFigures,
    BenchRun,
    ChunkHit,
    Filter,
    Finding,
    Mode,
)
from byheart.search import SearchRequest, find
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.system import clock

MOST_QUESTIONS = 1000
# How many passages are read per question: not every passage contains a sentence.
_PASSAGES_PER_QUESTION = 3
_LEAST_WORDS, _LEAST_CHARS, _MOST_CHARS = 5, 20, 300
_TELLING_WORDS = 3
# A sentence ends at a line break, or after a full stop of its script.
_SENTENCE_END = late_pattern(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = late_pattern(r"\w[\w'’.-]*\w|\w")
# A run that is worse than the last by these limits indicates a fault.
_SLOWER, _SLOWER_MS, _GROWN = 3.0, 20.0, 2
_LESS_FOUND, _HARDLY_FOUND = 0.15, 0.5

UNRELATED = (
    "How do emperor penguins keep their eggs warm during the Antarctic winter?",
    "Which glaze gives raku pottery its crackled surface?",
    "Who won the Hungarian chess championship in 1953?",
    "What is the gestation period of the pygmy hippopotamus?",
    "How was rope for clipper ships made from Manila hemp?",
    "Which minerals give the Painted Desert its colours?",
    "How many strings does a Norwegian hardanger fiddle have?",
    "What did Byzantine emperors eat at Easter?",
    "How deep do leatherback turtles dive for jellyfish?",
    "Which moths feed on the nectar of night-blooming cactus?",
    "When was the lighthouse of Cordouan first lit?",
    "How is saffron harvested in the valleys of Kashmir?",
    "What rules has the sport of kabaddi for raiders?",
    "Which glaciers feed the river Ganges?",
    "How are cuneiform tablets dated by their handwriting?",
    "What makes the feathers of a kingfisher blue?",
)

Ask = Callable[[SearchRequest], AbstractContextManager[tuple[SearchRequest, Asked]]]


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Hold a question, its memory, and the parts that any correct passage contains."""

    text: str
    memory_id: str
    parts: tuple[str, ...]

    def is_answered_by(self, hit: ChunkHit) -> bool:
        """Check whether a hit contains the question's source."""
        content = hit.chunk_content.casefold()
        return hit.memory_id == self.memory_id or all(part in content for part in self.parts)


def make_questions(passages: Sequence[FoundChunk], wanted: int, seed: int) -> list[KnownItem]:
    """Make questions from passages, a third each: sentences, halves, rare words."""
    chance = random.Random(seed)
    makers = (_whole, _half, _telling)
    questions: list[KnownItem] = []
    for passage in passages:
        sentences = list(_sentences(passage.chunk.content))
        if len(questions) == wanted:
            break
        if sentences and passage.chunk.chunk_type != ECHO:
            maker = makers[len(questions) % len(makers)]
            text, parts = maker(chance.choice(sentences), chance)
            folded = tuple(part.casefold() for part in parts)
            questions.append(KnownItem(text, passage.memory.memory_id, folded))
    return questions


def _sentences(text: str) -> Iterator[str]:
    for each in _SENTENCE_END.split(text):
        sentence = each.strip()[:_MOST_CHARS]
        # Text written without spaces has few words but many characters.
        enough = len(_WORD.findall(sentence)) >= _LEAST_WORDS or not sentence.isascii()
        if enough and len(sentence) >= _LEAST_CHARS:
            yield sentence


def _whole(sentence: str, _chance: random.Random) -> tuple[str, list[str]]:
    return sentence, [sentence]


def _half(sentence: str, chance: random.Random) -> tuple[str, list[str]]:
    middle = sentence.find(" ", len(sentence) // 2)
    at = middle if middle > 0 else len(sentence) // 2
    half = chance.choice((sentence[:at], sentence[at:])).strip()
    return half or sentence, [half or sentence]


def _telling(sentence: str, _chance: random.Random) -> tuple[str, list[str]]:
    """Choose the words that look rarest: names, numbers and long ones."""
    words = [each for each in _WORD.findall(sentence) if each.casefold() not in STOP_WORDS]
    rank = sorted(words, key=lambda word: (-_oddness(word), -len(word)))[:_TELLING_WORDS]
    chosen = [word for word in words if word in rank] or [sentence]
    return " ".join(chosen), chosen


def _oddness(word: str) -> int:
    return any(char.isdigit() for char in word) + any(char.isupper() for char in word[1:])


class Bencher:
    """Ask a store known questions in every mode, and compare the result with the last run."""

    def __init__(self, storage: Storage, vectorizer: Vectorizer, ask: Ask, keeps: bool) -> None:
        self._storage = storage
        self._vectorizer = vectorizer
        self._ask = ask
        # The ledger is used only if statistics are collected.
        self._ledger = storage.ledger if keeps else None

    def run(self, space: str, questions: int, k: int, seed: int) -> Bench:
        """Ask all questions, look for faults, and store the figures for the next run."""
        started = time.perf_counter()
        findings = [*self._storage.inspect(), *self._look_at_model()]
        where = Filter(space)
        with self._storage.searching(space) as reader:
            state = reader.index.state(space)
            passages = reader.chunks(
                reader.index.sample(where, questions * _PASSAGES_PER_QUESTION, seed)
            )
        known = make_questions(passages, questions, seed)
        modes: tuple[Mode, ...] = MODES if self._vectorizer.unavailable() is None else ("fts",)
        figures = tuple(self._measure(mode, where, known, k) for mode in modes if known)
        run = BenchRun(clock.now(), space, state.chunks, state.model, seed, k, figures)
        runs = self._ledger.read(space).runs if self._ledger is not None else ()
        before = runs[-1] if runs else None
        findings += compare(run, before)
        if self._ledger is not None and known:
            self._ledger.add(Tally(runs=(run,)))
        wrong = [each for each in findings if not each.ok]
        return Bench(
            store=self._storage.location,
            run=run,
            before=before,
            runs_kept=len(runs) + bool(known and self._ledger is not None),
            ok=not wrong,
            message=_summarize(wrong, run),
            findings=tuple(findings),
            elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    def _look_at_model(self) -> Iterator[Finding]:
        unavailable, remark = self._vectorizer.unavailable(), self._vectorizer.remark()
        if unavailable is not None:
            yield Finding("embedding", False, unavailable, Hint("look at: ", Do("model status")))
        elif remark is not None:
            yield Finding("model", False, remark, Hint("run: ", Do("admin.reembed")))
        waiting = stored_vectors.count_waiting(self._storage)
        if waiting:
            message = stored_vectors.describe_missing(waiting)
            yield Finding("vectors", False, message, Hint("run: ", Do("admin.doctor", fix=True)))

    def _measure(
        self, mode: Mode, where: Filter, known: Sequence[KnownItem], k: int
    ) -> BenchFigures:
        # These queries run first, because the very first one waits for the model.
        others = [self._search(each, mode, where, 1)[1] for each in UNRELATED]
        ranks: list[int | None] = []
        verdicts: list[str] = []
        times: list[float] = []
        for each in known:
            hits, verdict, elapsed_ms = self._search(each.text, mode, where, k)
            answers = [rank for rank, hit in enumerate(hits) if each.is_answered_by(hit)]
            ranks.append(answers[0] if answers else None)
            verdicts.append(verdict)
            times.append(elapsed_ms)
        found = [rank for rank in ranks if rank is not None]
        times.sort()
        return BenchFigures(
            mode=mode,
            questions=len(known),
            recall=round(len(found) / len(known), 4),
            mrr=round(sum(1 / (rank + 1) for rank in found) / len(known), 4),
            called_none=verdicts.count("none"),
            unrelated=len(others),
            called_answered=others.count("answered"),
            p50_ms=round(times[len(times) // 2], 3),
            p95_ms=round(times[int(len(times) * 0.95)], 3),
        )

    def _search(
        self, query: str, mode: Mode, where: Filter, limit: int
    ) -> tuple[list[ChunkHit], str, float]:
        started = time.perf_counter()
        with self._ask(SearchRequest(query, where, limit=limit, mode=mode)) as (request, asked):
            found = find(request, asked.reader, asked.vector, asked.unrelated)
        elapsed_ms = (time.perf_counter() - started) * 1000
        hits = [hit for hit in found.hits if isinstance(hit, ChunkHit)]
        return hits, found.judgement.verdict, elapsed_ms


def compare(run: BenchRun, before: BenchRun | None) -> Iterator[Finding]:
    """Find figures that are much worse than before, or worse than in any healthy store."""
    earlier = {each.mode: each for each in before.figures} if before else {}
    for now in run.figures:
        last = earlier.get(now.mode)
        name = f"{now.mode} search"
        if last is not None and now.recall < last.recall - _LESS_FOUND:
            message = f"it finds {now.recall:.0%} of what it should, and found {last.recall:.0%}"
            yield Finding(name, False, message, Hint("run: ", Do("admin.doctor")))
        elif now.mode != "vector" and now.recall < _HARDLY_FOUND:
            # A passage is found by its own words, but need not be near to half of its sentence.
            message = f"it finds {now.recall:.0%} of what it should"
            yield Finding(name, False, message, Hint("run: ", Do("admin.doctor", rebuild=True)))
        if before is None or last is None or run.chunks > _GROWN * before.chunks:
            continue  # a store that has grown takes longer
        if now.p50_ms > max(_SLOWER * last.p50_ms, last.p50_ms + _SLOWER_MS):
            message = f"it takes {now.p50_ms:.1f} ms, and took {last.p50_ms:.1f} ms"
            hint = Hint("is the machine busy? look at: ", Do("admin.stats"))
            yield Finding(name, False, message, hint)


def _summarize(wrong: Sequence[Finding], run: BenchRun) -> str:
    """Summarize in one line whether anything is wrong."""
    if wrong:
        said = join_hints("; ", (Hint(f"{each.check}: ", each.message) for each in wrong))
        return Hint("Wrong: ", said or "")
    if not run.figures:
        return "Nothing is wrong, but there is nothing to ask about either."
    return "Nothing is wrong."
