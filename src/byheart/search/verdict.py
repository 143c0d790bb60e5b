"""Judge whether the best hit answers the question, or is only the nearest chunk.

The verdict uses three figures of the best hit. Coverage is the share of the question's words that
the hit has, each word weighed by its rarity. Weight is the rarity of these words together, in units
of a word that no chunk has: one shared word out of one says less than four out of five. Similarity
is the hit's cosine, less the cosine that the model gives to texts with nothing in common. The
cosine's distance from the question's own background ranks well, but says nothing here: a question
about the main subject of a store is near to all its chunks. The number of chunks counts too,
because the best of more chunks is better by chance alone: among three chunks a cosine of 0.3 shows
an answer, among a thousand it does not.

Two estimates are made, by words and similarity together and by similarity alone, and the higher one
counts, because a question may share no word with its answer. The weights come from logistic
regressions on ten public data sets and on small stores, where half of the questions came from
another data set. The result says whether the hit is about the question: `related`.

A hit about the question need not be the right one: others may be as much about it. It is called an
answer if it stands out, that is if its score has a lead over the next memory. The probability that
it is right also depends on how much the question's words can tell, and on the number of chunks.
docs/quality-method.md has the fits, and docs/quality.md their accuracy on held-out data sets, and
the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from byheart.contracts import Candidates, Numbers
from byheart.model import Judgement, Verdict, VerdictExplanation
from byheart.model.answers import LEAST_RIGHT, RELATED_FROM
from byheart.search.evidence_fusion import share_with_neighbours
from byheart.search.ranked_rows import Fused, Mask
from byheart.search.ranking import Best, Ranking
from byheart.search.term_rarities import TermRarities, weigh_terms
from byheart.startup.late_numpy import np

# Averages over ten data sets: out of a thousand questions with an answer, 8 are below NONE_BELOW by
# words alone, and 3 in hybrid; out of a thousand unrelated ones, 42 and 11 are above RELATED_FROM.
NONE_BELOW = 0.05
# The lead over the next memory with which a related hit stands out, in units of ln(chunks). From a
# hundred chunks on it is the same; among fewer there are fewer rivals, so less is enough.
ENOUGH_LEAD, _LESS_FOR_ONE, _MANY_RIVALS = 0.56, 0.78, 100
# The log odds that a related hit is right: of the only chunk, less by each ln(chunks), more by each
# unit of its lead, and more by ln(1 + highest BM25 / ln(chunks)): rare words find one text, common
# ones find many. A longer lead than the limit says no more.
_OF_THE_ONLY_ONE, _BY_CHUNKS, _BY_LEAD, _LONGEST_LEAD, _BY_WORDS = -0.35, 0.24, 1.4, 2.0, 1.2
# A hit that is hardly related is right with this probability at most.
MOST_UNRELATED = 0.6
# Beyond this weight, more rare words shared with a long question prove nothing further.
_MOST_WEIGHT = 3.0
# Combined with words, a similarity only distinguishes related from unrelated texts.
_LEAST_SIMILARITY, _MOST_SIMILARITY = 0.1, 0.5
# Measured on 42 to 8,559 chunks; numbers outside these limits count as the nearest limit.
_FEWEST_CHUNKS, _MOST_CHUNKS = 100, 10_000
# The similarity that makes an answer without any shared word. It grows with the logarithm of the
# number of chunks, as the similarity of the best unrelated chunk does, up to a limit.
SIMILAR, _SIMILAR_BY_LOG, _SIMILAR_BY_LOG_SQUARE, _MOST_SIMILAR = 0.21, 0.025, 0.005, 0.576
_DIGITS = 4


class Signs(NamedTuple):
    """Hold the figures of the best hit, and the number of chunks it was chosen from.

    `similarity` is None if no vectors were compared, `coverage` and `weight` if no words were.
    """

    coverage: float | None
    weight: float | None
    similarity: float | None
    chunks: int | None = None


class Estimate(NamedTuple):
    """Hold the figures of a chunk, and the probability that it has to do with its question."""

    signs: Signs
    confidence: float


def estimate(signs: Signs) -> float:
    """Estimate the probability that a hit has to do with its question.

    It grows with the shared words and the similarity, and falls with the number of chunks.
    """
    alone = estimate_by_similarity(signs, similar_enough(signs.chunks))
    # A question in other words than its answer shares no words with it.
    return max(estimate_with_words(signs), alone)


def estimate_with_words(signs: Signs) -> float:
    """Estimate by words and, if vectors were compared, similarity together; 0 without words."""
    if signs.coverage is None or signs.weight is None:
        return 0.0
    weight = min(signs.weight, _MOST_WEIGHT)
    if signs.similarity is None:
        # A little flatter than the fit, which would give "none" to twice as many answerable ones.
        return _logistic(-4.7 + 3.0 * signs.coverage + 1.7 * weight)
    near = min(max(signs.similarity, _LEAST_SIMILARITY), _MOST_SIMILARITY)
    chance = 0.3 * math.log(min(max(signs.chunks or 0, _FEWEST_CHUNKS), _MOST_CHUNKS))
    return _logistic(-5.1 + 2.6 * signs.coverage + 1.3 * weight + 8.2 * near - chance)


def estimate_by_similarity(signs: Signs, enough: float) -> float:
    """Estimate by similarity alone: `enough` of it gives `RELATED_FROM`."""
    return _logistic(-6.5 + 5.88 * (signs.similarity or 0.0) / enough)


def similar_enough(chunks: int | None) -> float:
    """Return the similarity that makes an answer if it is the best of so many chunks."""
    if chunks is None:
        return _MOST_SIMILAR
    log = math.log(max(chunks, 1))
    return min(SIMILAR + _SIMILAR_BY_LOG * log + _SIMILAR_BY_LOG_SQUARE * log**2, _MOST_SIMILAR)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def stands_out(lead: float, chunks: int) -> bool:
    """Say whether the lead of a hit over the next memory is long enough for an answer."""
    rivals = min(math.log(max(chunks, 1)) / math.log(_MANY_RIVALS), 1.0)
    enough = ENOUGH_LEAD - _LESS_FOR_ONE * (1 - rivals)
    return lead / math.log(max(chunks, 2)) >= enough


def estimate_right(lead: float, highest_bm25: float, chunks: int) -> float:
    """Estimate the probability that a related hit is the right one.

    It grows with its lead over the next memory and with the best match by words, and falls with the
    number of chunks.
    """
    unit = math.log(max(chunks, 2))
    odds = _OF_THE_ONLY_ONE - _BY_CHUNKS * math.log(min(max(chunks, 1), _MOST_CHUNKS))
    odds += _BY_LEAD * min(lead / unit, _LONGEST_LEAD)
    odds += _BY_WORDS * math.log1p(highest_bm25 / unit)
    return max(_logistic(odds), LEAST_RIGHT)


def combine(related: float, right: float) -> float:
    """Return the probability that a hit answers: low if the hit is hardly related."""
    limit = 1.0 if related >= RELATED_FROM else related * MOST_UNRELATED / RELATED_FROM
    return min(right, limit)


def name_verdict(related: float, *, is_distinct: bool = True) -> Verdict:
    """Return the verdict for the probability of being related, and whether the hit stands out."""
    if related < NONE_BELOW:
        return "none"
    return "answered" if is_distinct and related >= RELATED_FROM else "weak"


def judge(ranking: Ranking, unrelated: float) -> Judgement:
    """Judge the best hit of a ranking, whichever page was requested.

    A chunk that matches a raw query is an answer, because the query is exact. `unrelated` is the
    cosine of texts that have nothing in common.
    """
    if ranking.best is None:
        return Judgement("none", 0.0)
    if ranking.raw:
        return Judgement("answered", 1.0)
    fused, found, _ = ranking.best
    rarities = weigh_terms(found) if ranking.by_words else None
    row = found.chunk_nos.searchsorted([fused.chunk_no])
    [signs] = _read_signs(row, found, unrelated, rarities)
    return judge_signs(ranking.best, signs)


def judge_signs(best: Best, signs: Signs) -> Judgement:
    """Judge a hit that was chosen from some candidates by its figures."""
    fused, found, lead = best
    # A memory from the time is what a question wants that names nothing else.
    related = 1.0 if fused.in_time else estimate(signs)
    confidence, is_distinct = related, True
    if lead is not None:
        is_distinct = stands_out(lead, found.chunks)
        confidence = combine(related, estimate_right(lead, found.highest_bm25, found.chunks))
    grounds = VerdictExplanation(
        coverage=_shown(signs.coverage),
        weight=_shown(signs.weight),
        similarity=_shown(signs.similarity),
        chunks=signs.chunks,
        related=round(related, _DIGITS),
        lead=_shown(lead),
    )
    verdict = name_verdict(related, is_distinct=is_distinct)
    return Judgement(verdict, round(confidence, _DIGITS), grounds)


def _shown(figure: float | None) -> float | None:
    return None if figure is None else round(figure, _DIGITS)


def judge_passages(
    passages: Sequence[Fused], found: Candidates, unrelated: float, rarities: TermRarities | None
) -> list[Estimate]:
    """Estimate for each of some chunks the probability that it has to do with the question.

    `rarities` are those of the candidates, or None if they were not searched by words. A turn
    counts by the turns beside it too, with the shares that the ranking gives them: "On Friday." is
    an answer if the turn before it is the question.
    """
    rows = found.chunk_nos.searchsorted([each.chunk_no for each in passages])
    beside = np.array([bool(each.beside) for each in passages], np.bool_)
    read = _read_signs(rows, found, unrelated, rarities)
    judged = _judge(read, rows, found, unrelated, rarities, beside=beside)
    return [
        Estimate(signs, 1.0 if each.in_time else own)
        for each, signs, own in zip(passages, read, judged, strict=True)
    ]


def judge_rows(
    rows: Numbers,
    found: Candidates,
    unrelated: float,
    rarities: TermRarities | None,
    *,
    beside: Mask,
) -> list[float]:
    """Estimate for each of some rows the probability that it has to do with the question.

    A row marked in `beside` counts by the turns around it too, as far as they are candidates.
    """
    read = _read_signs(rows, found, unrelated, rarities)
    return _judge(read, rows, found, unrelated, rarities, beside=beside)


def _judge(
    read: Iterable[Signs],
    rows: Numbers,
    found: Candidates,
    unrelated: float,
    rarities: TermRarities | None,
    *,
    beside: Mask,
) -> list[float]:
    """Estimate the same for rows whose own figures were read."""
    own = list(map(estimate, read))
    lent_to = np.flatnonzero(beside)
    if not len(lent_to):
        return own
    turns = found.neighbours.take(rows.take(lent_to), axis=0)
    shares = share_with_neighbours(found).take(rows.take(lent_to), axis=0)
    passage, side = np.isin(turns, found.chunk_nos).nonzero()  # others are no candidates
    near = _read_signs(
        found.chunk_nos.searchsorted(turns[passage, side]), found, unrelated, rarities
    )
    for at, share, signs in zip(
        lent_to.take(passage).tolist(), shares[passage, side].tolist(), near, strict=True
    ):
        own[at] = max(own[at], share * estimate(signs))
    return own


def _read_signs(
    rows: Numbers, found: Candidates, unrelated: float, rarities: TermRarities | None
) -> list[Signs]:
    """Read the figures of chunks from the candidates they were chosen from."""
    held: Iterable[float | None] = repeat(None, len(rows))
    if rarities is not None:
        held = rarities.held_by(found, rows)
    figures = zip(held, found.cosines.take(rows).tolist(), strict=True)
    return [_to_signs(*each, found.chunks, unrelated, rarities) for each in figures]


def _to_signs(
    held: float | None, cosine: float, chunks: int, unrelated: float, rarities: TermRarities | None
) -> Signs:
    coverage = weight = similarity = None
    if rarities is not None and held is not None:
        coverage = held / rarities.all if rarities.all else 0.0
        weight = held / rarities.unseen
    if not math.isnan(cosine):
        similarity = (cosine - unrelated) / (1 - unrelated)
    return Signs(coverage, weight, similarity, chunks)
