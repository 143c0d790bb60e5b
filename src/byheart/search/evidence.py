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
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Background, Candidates
from byheart.search.fusion import KEYWORDS, VECTOR, Fused, Mask, Place, cosine_of

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

Figures = NDArray[np.float64]


def weigh_cosines(cosines: Figures, background: Background) -> Figures:
    """Turn cosines into evidence: none for a chunk that is not above the background."""
    if background.deviation < _LEAST_DEVIATION:
        return np.zeros(cosines.shape)
    known = np.nan_to_num(cosines, nan=_NO_VECTOR)
    above = np.clip((known - background.mean) / background.deviation, 0.0, MOST_DEVIATIONS)
    weighed: Figures = VECTOR_WEIGHT * above**2
    return weighed


def weigh_words(highest: float, background: Background, *, one_word: bool = False) -> float:
    """Give the weight of BM25, by the highest score there is: less than 1 for a long question."""
    if one_word:
        return WORDS_OF_ONE
    most = MOST_WORDS * math.log(max(background.chunks, 2))
    return min(1.0, most / highest) if highest > 0 else 1.0


def rank_by_evidence(found: Candidates, tier: Mask, words_weight: float) -> Iterator[Fused]:
    """Order the rows of a tier, and turns beside the best of them, by evidence.

    A chunk that one retriever did not find among its first has a score there all the same. Ties go
    to the nearer chunk, then to the older one.
    """
    by_words = words_weight * found.bm25
    by_vector = weigh_cosines(found.cosines, found.background)
    evidence = by_words + by_vector
    listed = tier | _brought_in(found, tier, evidence)
    beside = _evidence_beside(found, words_weight)
    scores = np.round(evidence + beside, _DIGITS)
    rows = np.flatnonzero(listed)
    near = np.nan_to_num(found.cosines[rows], nan=_NO_VECTOR)
    for at in rows[np.lexsort((rows, -near, -scores[rows]))].tolist():
        # Made one by one, since a page takes 11 of hundreds.
        shares = float(by_words[at]), float(by_vector[at])
        yield Fused(
            int(found.chunk_nos[at]),
            int(found.memory_nos[at]),
            float(scores[at]),
            dict(_places(found, at, *shares)),
            cosine_of(found, at),
            float(beside[at]),
        )


def _brought_in(found: Candidates, tier: Mask, evidence: Figures) -> Mask:
    """Mark the turns beside the best of a tier that no retriever found, if they have evidence.

    A turn that has nothing to do with the question is no answer, whatever is said beside it.
    """
    brought = np.zeros(len(tier), np.bool_)
    if not found.neighbours.any():
        return brought
    rows = np.flatnonzero(tier)
    best = rows[np.argsort(-evidence[rows], kind="stable")[:_LEADING]]
    beside = found.neighbours[best].ravel()
    brought[np.searchsorted(found.chunk_nos, beside[beside > 0])] = True
    return brought & (evidence > 0)


def _evidence_beside(found: Candidates, words_weight: float) -> Figures:
    """Give each row its share of the evidence for the turns before and after it."""
    around = words_weight * found.neighbours_bm25
    around += weigh_cosines(found.neighbours_cosines, found.background)
    shares: Figures = np.where(found.neighbours > 0, around, 0.0) @ NEIGHBOUR_SHARES
    return shares


def _places(
    found: Candidates, at: int, by_words: float, by_vector: float
) -> Iterator[tuple[str, Place]]:
    keyword_rank, vector_rank = int(found.keyword_ranks[at]), int(found.vector_ranks[at])
    bm25, cosine = float(found.bm25[at]), cosine_of(found, at)
    if bm25 > 0 or keyword_rank >= 0:
        yield KEYWORDS, Place(keyword_rank if keyword_rank >= 0 else None, bm25, by_words)
    if cosine is not None:
        yield VECTOR, Place(vector_rank if vector_rank >= 0 else None, cosine, by_vector)
