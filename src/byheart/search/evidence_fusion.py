"""Rank chunks by evidence: the sum of what words and vectors say for a chunk.

BM25 is a sum of log odds: how much rarer the shared words are than chance. A cosine becomes the
same kind of figure through z, the number of standard deviations above the question's background:
for a normal background, the odds of such a match by chance fall with exp(-z²/2). So the two figures
can be added, and each retriever counts as far as it distinguishes chunks: words that every chunk
has weigh nothing, and neither do the cosines of a model that finds all texts alike. Both figures
grow with the logarithm of the store's size, so one weight serves any size (docs/quality-method.md).

Four rules keep a weak model from drowning the words. Cosines of some models have a long upper tail,
where many deviations above the mean mean little: the tail is shortened to that of an ordinary
model, and all cosines count less in the same proportion. The best cosine of a question
gives at most `2 · ln(chunks)`, and the others less in proportion. A retriever that tells nothing
does not agree with the other one: the chunks with the most of the question's words are then no
nearer to it than others, and cosines count less. They also count less if one chunk has all words of
the question: a verbatim question needs no other meaning.

The turns right before and after a turn are part of its meaning, so a share of their evidence is
added to it. Conversations also have forms that mislead both retrievers: a turn of three words is
near to many questions, a question resembles another question without answering it, and the long
replies of an assistant repeat what the user said in fewer words. Such rows keep a part of their
score.
"""

from __future__ import annotations

import math

from byheart.contracts import Background, Candidates, Figures, TurnForms
from byheart.contracts.ordering import best_first
from byheart.search.ranked_rows import Mask, Ordered, Shares, describe
from byheart.search.term_rarities import weigh_terms
from byheart.startup.late_numpy import np

# The weight of z². A normal background implies 0.5; results hardly change from 0.5 to 0.8.
VECTOR_WEIGHT = 0.6
# The limit of the evidence of a cosine, in units of ln(chunks). The best of many chunks without any
# meaning has 1.2 of them.
MOST_NEARNESS = 2.0
# A tail whose mean excess over its shoulder is longer than this, in deviations, is shortened to it,
# and all cosines count less in proportion. A normal tail has 0.47, that of the default model 0.47
# to 0.71.
LONGEST_EXCESS = 0.75
# Cosines count in full if the first chunks by words are so many deviations above the background on
# average. Below that they count less, and least at one standard error of chance. The default
# model has 0.7 to 3.1 on public sets, and 0.35 in Chinese, which it misreads. As many chunks as
# `_ASSUMED` are assumed to agree, so that a few chunks do not decide.
AGREEMENT, _COMPARED, _ASSUMED = 0.5, 20, 5
# Cosines count by this factor if the first chunk by words has all of at least so many terms, and by
# more if it lacks up to a tenth of them, weighed by rarity.
VERBATIM, _TERMS_OF_VERBATIM, _ALMOST_ALL = 0.4, 3, 0.9
# The limit of the evidence of all words together, in units of the rarest word's evidence. A long
# question shares many words with many chunks, and these words are not independent.
MOST_WORDS = 3.5
# The weight of BM25 if the question is a single word. A user who asks for `ERR_5521` wants chunks
# with this word, but a model that never saw it still finds some chunks near.
WORDS_OF_ONE = 3.0
# The shares of the evidence of the previous turn, the turn before it, the next turn, and the turn
# after it. A previous turn that asks counts more, because an answer follows its question.
NEIGHBOUR_SHARES = (0.2, 0.1, 0.1, 0.05)
ASKING_SHARES = (0.6, 0.3, 0.05, 0.05)
# A turn asks if short questions are more than this share of it.
_ASKS_FROM = 0.3
# A turn counts by n / (n + SHORT) for its n words, and in full from FULL words on.
SHORT_TURN, FULL_TURN = 10, 30
# The part of its score that a turn loses if it consists of short questions alone.
ASKING_LOSS = 0.6
# The factors for parts of an assistant's long reply, and for speakers whom the question names.
LONG_REPLY, NAMED_SPEAKER = 0.65, 1.2
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
    known = np.fmax(cosines, _NO_VECTOR)  # of a number and NaN, it gives the number
    above = (known - background.mean) / background.deviation
    above = np.minimum(np.maximum(above, 0.0), MOST_DEVIATIONS)
    if background.excess > LONGEST_EXCESS:
        beyond = np.maximum(above - background.shoulder, 0.0)
        above -= beyond * (1 - LONGEST_EXCESS / background.excess)
    weighed: Figures = VECTOR_WEIGHT * above**2
    return weighed


def weigh_nearness(found: Candidates) -> float:
    """Return the factor of the evidence of cosines: below 1 for a model that tells little."""
    highest = float(weigh_cosines(found.cosines, found.background).max(initial=0.0))
    most = MOST_NEARNESS * math.log(max(found.chunks, 2))
    bound = most / highest if highest > most else 1.0
    tail = LONGEST_EXCESS / max(found.background.excess, LONGEST_EXCESS)
    return bound * tail * measure_agreement(found) * _weigh_beside_words(found)


def _weigh_beside_words(found: Candidates) -> float:
    """Return a factor below 1 if the first chunk by words has nearly all words of the question."""
    first = np.flatnonzero(found.keyword_ranks == 0)
    if len(found.document_frequency) < _TERMS_OF_VERBATIM or not len(first):
        return 1.0
    rarities = weigh_terms(found)
    [held] = rarities.held_by(found, first[:1])
    coverage = held / rarities.all
    return 1 - (1 - VERBATIM) * max(0.0, coverage - _ALMOST_ALL) / (1 - _ALMOST_ALL)


def measure_agreement(found: Candidates) -> float:
    """Return from 0 to 1 how far the chunks that words rank first are nearer than others.

    Words that nearly all chunks have rank chunks by chance, so they judge nothing.
    """
    mean, deviation = found.background.mean, found.background.deviation
    if deviation < _LEAST_DEVIATION:
        return 1.0
    first = (found.keyword_ranks >= 0) & (found.keyword_ranks < _COMPARED)
    cosines = found.cosines[first]
    cosines = cosines[~np.isnan(cosines)]
    above = float(((cosines - mean) / deviation).sum()) + _ASSUMED * AGREEMENT
    full = (len(cosines) + _ASSUMED) * AGREEMENT
    by_chance = math.sqrt(len(cosines))  # a standard error of the sum, if the model knows nothing
    agreement = min(max((above - by_chance) / (full - by_chance), 0.0), 1.0)
    conviction = min(found.highest_bm25 / math.log(max(found.chunks, 2)), 1.0)
    return 1 - conviction * (1 - agreement)


def weigh_words(highest: float, background: Background, *, one_word: bool = False) -> float:
    """Return the weight of BM25 from its highest score: below 1 for a long question."""
    if one_word:
        return WORDS_OF_ONE
    most = MOST_WORDS * math.log(max(background.chunks, 2))
    return min(1.0, most / highest) if highest > 0 else 1.0


def rank_by_evidence(
    found: Candidates, tier: Mask, words_weight: float, nearness: float = 1.0
) -> Ordered:
    """Order the rows of a tier, and the turns next to its best rows, by evidence.

    `words_weight` and `nearness` are the factors of BM25 and of the evidence of cosines.

    Each chunk has a score from both retrievers, even if only one ranked it. Ties go to the nearer
    chunk, then to the older one.
    """
    by_words = words_weight * found.bm25
    by_vector = nearness * weigh_cosines(found.cosines, found.background)
    evidence = by_words + by_vector
    scores, listed, beside = evidence, tier, None
    if found.neighbours.any():
        listed = tier | _brought_in(found, tier, evidence)
        beside = _evidence_beside(found, words_weight, nearness)
        scores = evidence + beside
    form = None if found.turn_forms is None else weigh_form(found.turn_forms)
    if form is not None:
        scores = scores * form
    scores = scores.round(_DIGITS)
    rows = listed.nonzero()[0]
    near = np.fmax(found.cosines.take(rows), _NO_VECTOR)
    rows = rows.take(best_first(scores.take(rows), near))
    shares = Shares(by_words, by_vector, beside, form)
    return Ordered(rows, scores, lambda some: describe(found, some, scores, shares))


def weigh_form(forms: TurnForms) -> Figures:
    """Return the factor of each row by the form in which it was said; 1 for other texts."""
    lengths = forms.lengths.astype(np.float64)
    full = (FULL_TURN + SHORT_TURN) / FULL_TURN
    by_length = np.minimum(full * lengths / (lengths + SHORT_TURN), 1.0)
    factors = np.where(lengths > 0, by_length * (1 - ASKING_LOSS * forms.asking), 1.0)
    factors[forms.in_long_reply] *= LONG_REPLY
    factors[forms.by_named_speaker] *= NAMED_SPEAKER
    return factors


def _brought_in(found: Candidates, tier: Mask, evidence: Figures) -> Mask:
    """Mark turns with evidence next to a tier's best rows, even if no retriever found them.

    A turn without evidence of its own is no answer, whatever its neighbours say.
    """
    brought = np.zeros(len(tier), np.bool_)
    rows = np.flatnonzero(tier)
    best = rows[best_first(evidence[rows])[:_LEADING]]
    beside = found.neighbours[best].ravel()
    brought[np.searchsorted(found.chunk_nos, beside[beside > 0])] = True
    return brought & (evidence > 0)


def _evidence_beside(found: Candidates, words_weight: float, nearness: float) -> Figures:
    """Return each row's share of the evidence for the turns before and after it."""
    around = words_weight * found.neighbours_bm25
    around += nearness * weigh_cosines(found.neighbours_cosines, found.background)
    around *= found.neighbours > 0
    shares: Figures = (around * share_with_neighbours(found)).sum(axis=1)
    return shares


def share_with_neighbours(found: Candidates) -> Figures:
    """Return the share of its evidence that each row gets from each neighbour."""
    if found.turn_forms is None:
        return np.broadcast_to(NEIGHBOUR_SHARES, found.neighbours.shape)
    asks = found.turn_forms.asking_beside > _ASKS_FROM
    return np.where(asks, ASKING_SHARES, NEIGHBOUR_SHARES)
