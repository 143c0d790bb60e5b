"""Late interaction: would comparing token by token put the first hits into a better order?

The states of the last layer are made for the question and for the windows of its first hits, as
they would have to be at every question, and each token of the question is compared with the one
that is nearest to it. What that costs is told with it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from kept import KeptVectors
from measures import DEPTH
from numpy.typing import NDArray
from runs import Outcome
from sets import RetrievalSet
from token_model import TokenModel
from trials import Trials, make_outcome
from variations import AS_BUILT, texts_of
from vector_retriever import OtherVectors, make_retriever, rank_chunks

# What the likeness, in standard deviations among the hits, adds to the evidence.
_SHARES = {
    AS_BUILT.name: 0.0,
    "and late interaction": 1.0,
    "and late interaction, twice": 2.0,
    "and late interaction, four times": 4.0,
    "late interaction alone": 1e6,
}

Figures = NDArray[np.float32]


class TokenStates:
    """States of texts, of unit length, made once."""

    def __init__(self, model: TokenModel) -> None:
        self._model = model
        self._made: dict[str, Figures] = {}
        self.seconds = 0.0

    def of(self, text: str) -> Figures:
        """Run the model on a text; leave out the special tokens around it."""
        if text not in self._made:
            started = time.process_time()
            states = self._model.run(text).states[1:-1]
            self._made[text] = states / np.linalg.norm(states, axis=1, keepdims=True)
            self.seconds += time.process_time() - started
        return self._made[text]

    @property
    def each_ms(self) -> float:
        """Tell what a text takes."""
        return self.seconds / max(len(self._made), 1) * 1000


def liken(question: Figures, texts: Sequence[Figures]) -> float:
    """Give the mean over the question's tokens of the best cosine that each has in a text."""
    return max(float((question @ each.T).max(axis=1).mean()) for each in texts)


def try_late_interaction(
    whole: RetrievalSet, trials: Trials, kept: KeptVectors, depth: int
) -> Iterator[Outcome]:
    """Order the first hits of each question anew."""
    filled, states = trials.store(), TokenStates(kept.model)
    places = {each.chunk_no: each for each in filled.places}
    retriever = make_retriever(filled, filled, AS_BUILT, kept)

    def texts(chunk_no: int) -> list[Figures]:
        windows = texts_of(places[chunk_no].passage, AS_BUILT, kept.model.embedder)
        return [states.of(text) for text in windows]

    with filled.storage.searching(filled.space) as reader:
        for each in whole.questions:
            vector = trials.embed_question(each, AS_BUILT)
            ranking = rank_chunks(
                OtherVectors(reader.index, retriever), filled.space, each, vector, "hybrid"
            )
            hits = list(islice(ranking, depth))
            asked = states.of(each.text)
            alike = np.array([liken(asked, texts(number)) for number, _ in hits])
            above = (alike - alike.mean()) / max(float(alike.std()), 1e-6)
            scores = np.array([score for _, score in hits])
            for name, share in _SHARES.items():
                order = np.argsort(-(scores + share * above), kind="stable")
                found = dict.fromkeys(places[hits[at][0]].document for at in order)
                yield make_outcome(whole.name, f"hybrid, {name}", each, list(found)[:DEPTH])
    print(f"{whole.name}: a text takes {states.each_ms:.1f} ms", file=sys.stderr, flush=True)
