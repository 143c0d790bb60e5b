"""Trials: every variation of the vector retriever on a sample of every set, alone and in hybrid."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from kept import KeptVectors
from measures import compare, measure
from runs import Outcome, group, mean
from sets import Question, RetrievalSet
from token_model import FIRST, MEAN, Pooling
from variations import AS_BUILT, VARIATIONS, Variation, question_texts, retell, texts_of
from vector_retriever import (
    FilledStore,
    OtherVectors,
    fill_store,
    first_documents,
    make_retriever,
    rank_chunks,
)

from byheart.contracts import Vectors

MODES = ("vector", "hybrid")


class Trials:
    """The trials of one set; stores and vectors stay for the next run."""

    def __init__(self, whole: RetrievalSet, folder: Path, kept: KeptVectors) -> None:
        self._whole = whole
        self._folder = folder
        self._kept = kept
        self._open = ExitStack()
        self._stores: dict[str | None, FilledStore] = {}

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def store(self, said: str | None = None) -> FilledStore:
        """Fill the store of the set, or one of its documents told in another way."""
        if said not in self._stores:
            documents = self._whole.documents
            if said is not None:
                documents = [retell(each, said) for each in documents]  # type: ignore[arg-type]
            # Of another sample, it would hold other documents.
            sample = f"{len(documents)}_{len(self._whole.questions)}"
            name = f"{self._whole.name}_{said or 'as_it_is'}_{sample}"
            filling = fill_store(
                self._folder / f"{name}.db", name, documents, self._kept, self._whole.in_chunks
            )
            self._stores[said] = self._open.enter_context(filling)
        return self._stores[said]

    def run_all(self, only: Sequence[str] = ()) -> Iterator[Outcome]:
        """Run what can make a difference to the set, or some of it, beside what is built."""
        for how in VARIATIONS:
            if how.fits(self._whole.name) and (how is AS_BUILT or not only or how.name in only):
                yield from self.run(how)

    def run(self, how: Variation) -> Iterator[Outcome]:
        """Ask all questions with one variation, by vectors alone and hybrid."""
        started = time.process_time()
        embedded = self.store(how.said)
        words = embedded if how.said_in_words else self.store()
        poolings = self._poolings(how)
        retriever = make_retriever(embedded, words, how, self._kept, poolings)
        documents = {each.chunk_no: each.document for each in words.places}
        wanted = {name for each in self._whole.questions for name in each.gains}
        assert wanted <= set(documents.values()), "what answers is in the store"
        with words.storage.searching(words.space) as reader:
            other = OtherVectors(reader.index, retriever)
            for each in self._whole.questions:
                vector = self.embed_question(each, how, poolings)
                for mode in MODES:
                    ranked = rank_chunks(other, words.space, each, vector, mode)
                    found = first_documents(ranked, documents)
                    yield make_outcome(self._whole.name, f"{mode}, {how.name}", each, found)
        seconds = time.process_time() - started
        print(f"\r{self._whole.name}  {how.name}  {seconds:.0f} s", file=sys.stderr, flush=True)

    def _poolings(self, how: Variation) -> Sequence[Pooling]:
        if how.pooling == "mean":
            return (MEAN,)
        tokens = self._kept.model.embedder
        texts = (
            text for each in self.store().places for text in texts_of(each.passage, how, tokens)
        )
        rare = self._kept.model.rare_first(self._whole.name, texts)
        return (FIRST, rare) if how.pooling == "first token" else (rare, FIRST)

    def embed_question(
        self, question: Question, how: Variation, poolings: Sequence[Pooling] = (MEAN,)
    ) -> Vectors:
        """Embed a question, or several parts of it."""
        vectors = self._kept.embed(question_texts(question.text, how), poolings)
        if how.question == "sentences, mean":
            together = vectors.sum(axis=0)
            vectors = (together / np.linalg.norm(together))[np.newaxis]
        return vectors


def make_outcome(name: str, system: str, question: Question, found: Sequence[str]) -> Outcome:
    """Measure what was found for a question."""
    measured = measure(found, question.gains)
    wanted = list(question.gains)
    return Outcome(
        name, system, question.name, question.text, question.category, found, wanted, measured
    )


def render_trials(outcomes: Sequence[Outcome]) -> str:
    """Lay out what each variation changes in nDCG@10, with half of the 95 % range behind it."""
    rows = group(outcomes)
    names = sorted({name for name, _ in rows})
    lines = []
    for mode in dict.fromkeys(system.split(", ")[0] for _, system in rows):
        lines += [f"| {mode} | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]
        base = f"{mode}, {AS_BUILT.name}"
        systems = dict.fromkeys(system for _, system in rows if system.startswith(f"{mode}, "))
        for system in systems:
            cells = [_cell(rows, name, system, base) for name in names]
            lines.append(f"| {system.removeprefix(f'{mode}, ')} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(rows: dict[tuple[str, str], list[Outcome]], name: str, system: str, base: str) -> str:
    if (name, system) not in rows:
        return ""
    if system == base:
        return f"{mean(rows[name, system], 'ndcg@10'):.3f}"
    before = [each.measures["ndcg@10"] for each in rows[name, base]]
    change = compare(before, [each.measures["ndcg@10"] for each in rows[name, system]])
    shown = f"{change.mean:+.3f} ±{(change.high - change.low) / 2:.3f}"
    return f"**{shown}**" if change.sure else shown
