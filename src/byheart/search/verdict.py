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

from byheart.contracts import MOST_TERMS, Candidates
from byheart.language.rarity import rarity
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
# Among fewer chunks a term that one of them has would seem common: rarity is counted as if there
# were so many chunks, of which the others have none of the question's terms.
LEAST_TO_TELL_RARITY = 100
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


def judge(ranking: Ranking, unrelated: float) -> Judgement:
    """Judge the best hit of a ranking, whichever page of it was asked for.

    A chunk that a raw query matches is an answer: the query says exactly what it asks for.
    `unrelated` is the cosine of texts that have nothing in common.
    """
    if ranking.best is None:
        return Judgement("none", 0.0)
    if ranking.raw:
        return Judgement("answered", 1.0)
    signs = read_signs(*ranking.best, unrelated, by_words=ranking.by_words)
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


def read_signs(best: Fused, found: Candidates, unrelated: float, *, by_words: bool) -> Signs:
    """Read what is known of the best hit from the candidates that it was chosen from."""
    coverage = weight = similarity = chunks = None
    if by_words:
        asked, held, rarest = _weigh_terms(best, found)
        coverage = held / asked if asked else 0.0
        weight, chunks = held / rarest, found.chunks
    if best.cosine is not None:
        similarity = (best.cosine - unrelated) / (1 - unrelated)
    return Signs(coverage, weight, similarity, chunks)


def _weigh_terms(best: Fused, found: Candidates) -> tuple[float, float, float]:
    """Add up the rarity of all terms asked for, of those the hit has, and of a term nobody has."""
    counted = max(found.chunks, LEAST_TO_TELL_RARITY)
    unseen = rarity(0, counted)
    terms = found.document_frequency
    rarities = np.array([rarity(chunks, counted) for chunks in terms.values()])
    present = found.terms_present[np.searchsorted(found.chunk_nos, best.chunk_no)]
    missing = (min(len(set(found.terms)), MOST_TERMS) - len(terms)) * unseen
    return float(rarities.sum()) + missing, float(rarities @ present), unseen
