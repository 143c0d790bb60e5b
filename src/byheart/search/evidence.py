"""Evidence: what words and vectors say for a chunk, added up.

BM25 is a sum of log odds: how much rarer the shared words are than chance. A cosine becomes the
same kind of figure by how many standard deviations z it stands above the question's background:
for a normal one, the odds against such a match fall with exp(-z²/2). So the two can be added, and
each leg is heard as far as it tells anything: words that everybody uses weigh nothing, and neither
do cosines of a model that finds everything alike. Both grow with the logarithm of the store, so
that one weight serves any size (docs/quality.md).

What was said right before and after a turn belongs to what it means: a share of its neighbours'
evidence is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Background, Ranked, Reader, Vectors
from byheart.model import Filter
from byheart.search.fusion import Fused, Place, Tier

# What z² counts. A normal background would make it 0.5; from 0.5 to 0.8 hardly anything changes.
VECTOR_WEIGHT = 0.6
# The most that all words together can say, in units of what the rarest one says. A long question
# shares many words with many chunks, and these are no independent witnesses.
MOST_WORDS = 3.5
# What BM25 counts if the question is a single word: who asks for `ERR_5521` wants what has it, and
# a model that never saw such a word finds something near it all the same.
WORDS_OF_ONE = 3.0
# Shares of the evidence of the turn before, the one before that, the next, and the one after it.
# An answer follows what it answers.
NEIGHBOUR_SHARES = np.array([0.4, 0.2, 0.2, 0.1])
# How many of the best bring their neighbours in, if no leg has found these.
_LEADING = 100
# Below this, all cosines are the same but for their rounding.
_LEAST_DEVIATION = 1e-4
# No chunk is so many deviations above a background of different texts, not even the question itself
# (on ten public sets 9 at most). Beside thousands of equal lines, everything else is: there the
# words decide.
MOST_DEVIATIONS = 12.0
_NO_VECTOR = -2.0
_DIGITS = 6

Numbers = NDArray[np.int64]
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Chunks in ascending order: BM25 scores, cosines, and the evidence that each of these is."""

    chunk_nos: Numbers
    words: Figures
    cosines: Figures
    by_words: Figures
    by_vector: Figures

    @property
    def evidence(self) -> Figures:
        """Add up what words and vectors say."""
        return self.by_words + self.by_vector

    def only(self, places: NDArray[np.intp]) -> Weighed:
        """Keep some of the chunks."""
        return Weighed(*(column[places] for column in self._columns()))

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (self.chunk_nos, self.words, self.cosines, self.by_words, self.by_vector)

    def joined(self, other: Weighed) -> Weighed:
        """Put two lots of different chunks together."""
        both = zip(self._columns(), other._columns(), strict=True)
        together = [np.concatenate(columns) for columns in both]
        order = np.argsort(together[0])
        return Weighed(*(column[order] for column in together))

    def at(self, chunk_nos: Numbers) -> Figures:
        """Give the evidence of each chunk, 0 for one that is not here."""
        places = np.minimum(np.searchsorted(self.chunk_nos, chunk_nos), len(self.chunk_nos) - 1)
        return np.where(self.chunk_nos[places] == chunk_nos, self.evidence[places], 0.0)


def weigh_cosines(cosines: Figures, background: Background) -> Figures:
    """Turn cosines into evidence: none for what is not above the background."""
    if background.deviation < _LEAST_DEVIATION:
        return np.zeros(len(cosines))
    above = np.clip((cosines - background.mean) / background.deviation, 0.0, MOST_DEVIATIONS)
    weighed: Figures = VECTOR_WEIGHT * above**2
    return weighed


def weigh_words(highest: float, background: Background, *, one_word: bool = False) -> float:
    """Give what BM25 counts, by the highest score there is: less than 1 for a long question."""
    if one_word:
        return WORDS_OF_ONE
    most = MOST_WORDS * math.log(max(background.chunks, 2))
    return min(1.0, most / highest) if highest > 0 else 1.0


class Evidence:
    """The evidence for chunks of one question under one filter; `highest` is its best BM25."""

    def __init__(
        self,
        reader: Reader,
        terms: Sequence[str],
        vector: Vectors,
        where: Filter,
        highest: float,
        *,
        one_word: bool,
    ) -> None:
        self._reader = reader
        self._terms = terms
        self._vector = vector
        self._where = where
        self._background = reader.background(vector, where)
        self.words_weight = weigh_words(highest, self._background, one_word=one_word)

    def rank(self, legs: Mapping[str, Tier]) -> Iterator[Fused]:
        """Order all that the legs have found, and their neighbours, by evidence.

        What one leg has not found among its first is looked up there all the same: a score is that
        of the chunk, whoever brought it in. Ties go to the nearer one, then to age.
        """
        found = np.concatenate([leg.found.chunk_nos for leg in legs.values()])
        known = self._weigh(_distinct(found), legs["vector"].found)
        known, beside = self._with_neighbours(known)
        scores = np.round(known.evidence + beside, _DIGITS)
        ranks = {name: _ranks(leg, known.chunk_nos) for name, leg in legs.items()}
        for at in np.lexsort((known.chunk_nos, -known.cosines, -scores)).tolist():
            # Made one by one, since a page takes 11 of hundreds.
            yield Fused(
                int(known.chunk_nos[at]),
                float(scores[at]),
                dict(_places(known, ranks, at)),
                float(beside[at]),
            )

    def _weigh(self, chunk_nos: Numbers, near: Ranked | None = None) -> Weighed:
        cosines = np.full(len(chunk_nos), np.nan)
        if near is not None:
            cosines[np.searchsorted(chunk_nos, near.chunk_nos)] = near.scores
        missing = np.flatnonzero(np.isnan(cosines))
        if len(missing):
            others = self._reader.cosines(self._vector, chunk_nos[missing])
            cosines[missing] = np.nan_to_num(others, nan=_NO_VECTOR)
        words = self._reader.word_scores(self._terms, chunk_nos, self._where)
        by_vector = weigh_cosines(cosines, self._background)
        return Weighed(chunk_nos, words, cosines, self.words_weight * words, by_vector)

    def _with_neighbours(self, known: Weighed) -> tuple[Weighed, Figures]:
        """Add the turns beside the best, and tell what each turn owes to those around it."""
        around = self._reader.neighbours(known.chunk_nos, self._where)
        if not around.any():
            return known, np.zeros(len(known.chunk_nos))
        best = np.argsort(-known.evidence, kind="stable")[:_LEADING]
        brought = self._weigh(_others(around[best], known.chunk_nos))
        # What has nothing to do with the question is no answer, whatever stands beside it.
        listed = known.joined(brought.only(np.flatnonzero(brought.evidence > 0)))
        around = self._reader.neighbours(listed.chunk_nos, self._where)
        everything = listed.joined(self._weigh(_others(around, listed.chunk_nos)))
        return listed, everything.at(around) @ NEIGHBOUR_SHARES


def _distinct(chunk_nos: Numbers) -> Numbers:
    """Sort numbers and drop the repeated ones: of a few hundred, ten times as fast as `unique`."""
    ordered = np.sort(chunk_nos)
    return ordered[np.flatnonzero(np.diff(ordered, append=-1))]


def _others(chunk_nos: Numbers, known: Numbers) -> Numbers:
    """List the chunks that are not known yet."""
    unknown: Numbers = np.setdiff1d(chunk_nos, known)
    return unknown[unknown > 0]


def _ranks(leg: Tier, chunk_nos: Numbers) -> Numbers:
    """Give the rank of each chunk in a leg, -1 for those it has not found."""
    ranks = np.full(len(chunk_nos), -1)
    ranks[np.searchsorted(chunk_nos, leg.found.chunk_nos)] = leg.ranks
    return ranks


def _places(known: Weighed, ranks: Mapping[str, Numbers], at: int) -> Iterator[tuple[str, Place]]:
    rank = {name: int(each[at]) if each[at] >= 0 else None for name, each in ranks.items()}
    words, cosine = float(known.words[at]), float(known.cosines[at])
    if words > 0 or rank["fts"] is not None:
        yield "fts", Place(rank["fts"], words, float(known.by_words[at]))
    if cosine > _NO_VECTOR:
        yield "vector", Place(rank["vector"], cosine, float(known.by_vector[at]))
