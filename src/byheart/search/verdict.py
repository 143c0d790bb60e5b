"""The verdict: does the best hit answer the question, or is it only the nearest there is?

Three figures of the best hit are looked at. Coverage is the share of the question's words that it
has, each weighed by its rarity. Weight is how rare these are together, in units of a word that
no chunk has: one shared word out of one says less than four out of five. Similarity is its cosine,
less what the model gives to texts that have nothing in common. How far the cosine stands above the
question's own background, which ranks so well, says nothing here: whoever asks about what a store
is all about is near to all of it. And the more chunks there are, the better the best of them is by
chance alone.

The weights are those of logistic regressions on ten public sets, in which half of the questions
were another set's. docs/quality.md has the fit, how sure it is on sets left out, and the limits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from byheart.contracts import Reader, Vectors
from byheart.model import Judgement, Verdict, VerdictExplanation
from byheart.search.fusion import Fused
from byheart.search.ranking import Ranking

# In the mean over ten sets, of a thousand questions that have an answer 8 are below the first by
# words alone, and 3 in hybrid; of a thousand unrelated ones 42 and 11 are above the second.
NONE_BELOW, ANSWERED_FROM = 0.05, 0.35
# What more rare words have in common with a long question proves nothing further.
_MOST_WEIGHT = 3.0
# Beside words, a similarity tells related from unrelated, and no more.
_LEAST_SIMILARITY, _MOST_SIMILARITY = 0.1, 0.5
# Measured from 42 to 8,559 chunks: what lies beyond is taken for the nearest of these.
_FEWEST_CHUNKS, _MOST_CHUNKS = 100, 10_000
_DIGITS = 4


class Signs(NamedTuple):
    """What is known of the best hit, and the number of chunks that it is the best of.

    No similarity where no vectors were compared, and no coverage where no words were.
    """

    coverage: float | None
    weight: float | None
    similarity: float | None
    chunks: int | None = None


def estimate(signs: Signs) -> float:
    """Estimate how probable it is that a hit answers its question.

    The more so, the more words it has and the nearer it is; the less, the more others there were.
    """
    if signs.coverage is None or signs.weight is None:
        return _by_similarity(signs.similarity or 0.0)
    weight = min(signs.weight, _MOST_WEIGHT)
    if signs.similarity is None:
        # A little flatter than fitted, which would call twice as many none that have an answer.
        return _logistic(-4.7 + 3.0 * signs.coverage + 1.7 * weight)
    near = min(max(signs.similarity, _LEAST_SIMILARITY), _MOST_SIMILARITY)
    chance = 0.3 * math.log(min(max(signs.chunks or 0, _FEWEST_CHUNKS), _MOST_CHUNKS))
    together = _logistic(-5.1 + 2.6 * signs.coverage + 1.3 * weight + 8.2 * near - chance)
    # Who asks in other words than the answer's shares none with it.
    return max(together, _by_similarity(signs.similarity))


def _by_similarity(similarity: float) -> float:
    return _logistic(-5.4 + 8.3 * similarity)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def name_verdict(confidence: float) -> Verdict:
    """Put an estimate into a word."""
    if confidence < NONE_BELOW:
        return "none"
    return "answered" if confidence >= ANSWERED_FROM else "weak"


def judge(ranking: Ranking, reader: Reader, vector: Vectors | None, unrelated: float) -> Judgement:
    """Judge the best hit of a ranking, whichever page of it was asked for.

    What a raw query matches is what it asks for.
    """
    best = ranking.best
    if best is None:
        return Judgement("none", 0.0)
    if ranking.raw:
        return Judgement("answered", 1.0)
    signs = _signs(ranking, best, reader, vector, unrelated)
    confidence = round(estimate(signs), _DIGITS)
    grounds = VerdictExplanation(
        coverage=_shown(signs.coverage),
        weight=_shown(signs.weight),
        similarity=_shown(signs.similarity),
        chunks=signs.chunks,
    )
    return Judgement(name_verdict(confidence), confidence, grounds)


def _shown(figure: float | None) -> float | None:
    return None if figure is None else round(figure, _DIGITS)


def _signs(
    ranking: Ranking, best: Fused, reader: Reader, vector: Vectors | None, unrelated: float
) -> Signs:
    coverage = weight = similarity = chunks = None
    if ranking.by_words:
        here = reader.coverage(ranking.terms, best.chunk_no, ranking.where_of(best))
        coverage = here.found / here.asked if here.asked else 0.0
        weight, chunks = here.found / here.rarest, here.chunks
    if vector is not None:
        place = best.places.get("vector")
        cosine = place.score if place else _cosine(reader, vector, best.chunk_no)
        similarity = None if math.isnan(cosine) else (cosine - unrelated) / (1 - unrelated)
    return Signs(coverage, weight, similarity, chunks)


def _cosine(reader: Reader, vector: Vectors, chunk_no: int) -> float:
    return float(reader.cosines(vector, np.array([chunk_no]))[0])
