"""Rank chunks by evidence: the sum of what words and vectors say for a chunk.

BM25 is a sum of log odds: how much rarer the shared words are than chance. A cosine becomes the
same kind of figure through z, the number of standard deviations above the question's background:
for a normal background, the odds of such a match by chance fall with exp(-z²/2). So the two figures
can be added, and each retriever counts as far as it distinguishes chunks: words that every chunk
has weigh nothing, and neither do the cosines of a model that finds all texts alike. Both figures
grow with the logarithm of the store's size, so one weight serves any size (docs/quality.md).

The turns right before and after a turn are part of its meaning, so a share of their evidence is
added to it.
"""

from __future__ import annotations

import math

import numpy as np

from byheart.contracts import Background, Candidates, Figures
from byheart.search.rank_fusion import Mask, Ordered, Shares, describe

# The weight of z². A normal background implies 0.5; results hardly change from 0.5 to 0.8.
VECTOR_WEIGHT = 0.6
# The limit of the evidence of all words together, in units of the rarest word's evidence. A long
# question shares many words with many chunks, and these words are not independent.
MOST_WORDS = 3.5
# The weight of BM25 if the question is a single word. A user who asks for `ERR_5521` wants chunks
# with this word, but a model that never saw it still finds some chunks near.
WORDS_OF_ONE = 3.0
# The shares of the evidence of the previous turn, the turn before it, the next turn, and the turn
# after it. Previous turns count more, because an answer follows its question.
NEIGHBOUR_SHARES = np.array([0.4, 0.2, 0.2, 0.1])
# The number of best chunks whose neighbours are included even if no retriever found them.
_LEADING = 100
# Below this deviation, all cosines are equal except for rounding.
_LEAST_DEVIATION = 1e-4
# No chunk is this many deviations above a background of different texts, not even the question
# itself (at most 9 on ten public data sets). But in a store of thousands of equal lines, every
# other chunk is. There the words decide.
MOST_DEVIATIONS = 12.0
_NO_VECTOR = -2.0
_DIGITS = 6


def weigh_cosines(cosines: Figures, background: Background) -> Figures:
    """Turn cosines into evidence; a chunk that is not above the background gets none."""
    if background.deviation < _LEAST_DEVIATION:
        return np.zeros(cosines.shape)
    known = np.nan_to_num(cosines, nan=_NO_VECTOR)
    above = np.clip((known - background.mean) / background.deviation, 0.0, MOST_DEVIATIONS)
    weighed: Figures = VECTOR_WEIGHT * above**2
    return weighed


def weigh_words(highest: float, background: Background, *, one_word: bool = False) -> float:
    """Return the weight of BM25 from its highest score: below 1 for a long question."""
    if one_word:
        return WORDS_OF_ONE
    most = MOST_WORDS * math.log(max(background.chunks, 2))
    return min(1.0, most / highest) if highest > 0 else 1.0


def rank_by_evidence(found: Candidates, tier: Mask, words_weight: float) -> Ordered:
    """Order the rows of a tier, and the turns next to its best rows, by evidence.

    Each chunk has a score from both retrievers, even if only one ranked it. Ties go to the nearer
    chunk, then to the older one.
    """
    by_words = words_weight * found.bm25
    by_vector = weigh_cosines(found.cosines, found.background)
    evidence = by_words + by_vector
    scores, listed, beside = evidence, tier, None
    if found.neighbours.any():
        listed = tier | _brought_in(found, tier, evidence)
        beside = _evidence_beside(found, words_weight)
        scores = evidence + beside
    scores = scores.round(_DIGITS)
    rows = listed.nonzero()[0]
    near = np.nan_to_num(found.cosines.take(rows), nan=_NO_VECTOR)
    rows = rows.take(np.lexsort((rows, -near, -scores.take(rows))))
    shares = Shares(by_words, by_vector)
    return Ordered(rows, scores, lambda some: describe(found, some, scores, shares, beside))


def _brought_in(found: Candidates, tier: Mask, evidence: Figures) -> Mask:
    """Mark turns with evidence next to a tier's best rows, even if no retriever found them.

    A turn without evidence of its own is no answer, whatever its neighbours say.
    """
    brought = np.zeros(len(tier), np.bool_)
    rows = np.flatnonzero(tier)
    best = rows[np.argsort(-evidence[rows], kind="stable")[:_LEADING]]
    beside = found.neighbours[best].ravel()
    brought[np.searchsorted(found.chunk_nos, beside[beside > 0])] = True
    return brought & (evidence > 0)


def _evidence_beside(found: Candidates, words_weight: float) -> Figures:
    """Return each row's share of the evidence for the turns before and after it."""
    around = words_weight * found.neighbours_bm25
    around += weigh_cosines(found.neighbours_cosines, found.background)
    shares: Figures = np.where(found.neighbours > 0, around, 0.0) @ NEIGHBOUR_SHARES
    return shares
