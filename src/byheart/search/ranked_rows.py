"""Hold the rows of a ranking in their order, and change this order by factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from byheart.contracts import Candidates, Figures, Numbers
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

KEYWORDS, VECTOR = "fts", "vector"
# A page shows ten hits, and one more says whether another page follows.
PAGE = 10
_ON_A_PAGE = PAGE + 1
_DIGITS = 6

Mask = NDArray["np.bool_"]


class Place(NamedTuple):
    """Hold a chunk's rank in one retriever (from 0, None if not found), score and contribution."""

    rank: int | None
    score: float
    contribution: float


class Shares(NamedTuple):
    """Hold what each retriever and the neighbours contribute to the final score of each row.

    `form` is the factor by which the sum was multiplied.
    """

    by_words: Figures
    by_vector: Figures
    beside: Figures | None = None
    form: Figures | None = None


class Fused(NamedTuple):
    """Hold a chunk with its final score, its place in each retriever, and its neighbours' share."""

    chunk_no: int
    memory_no: int
    score: float
    places: Mapping[str, Place]
    # The cosine of the best window, if both the chunk and the question have vectors.
    cosine: float | None
    beside: float = 0.0
    # The factors of the score by the form of a turn, and by the feedback on the memory.
    form: float = 1.0
    feedback: float = 1.0
    # The factors of the score by the times that the question names, and by the kind of file.
    time: float = 1.0
    file: float = 1.0
    # The part of the score by a time, if the question names nothing else, and whether the memory
    # is from that time.
    time_alone: float = 0.0
    in_time: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Hold the rows of a tier, best first, and the final score of every candidate.

    Rows are described only as far as they are read: most callers need a page.
    """

    rows: Numbers
    scores: Figures
    describe: Callable[[Numbers], Iterator[Fused]]
    # The factor of every score by feedback, if it is not 1 for all.
    feedback: Figures | None = None
    # The same by the times that the question names.
    times: Figures | None = None
    # The rows from a time, if the question names nothing else.
    in_time: Mask | None = None

    def __iter__(self) -> Iterator[Fused]:
        return self.describe(self.rows)


def keep_order(found: Candidates, tier: Mask, retriever: str) -> Ordered:
    """Return the ranking of a single retriever unchanged, with its scores as final scores."""
    by_words = retriever == KEYWORDS
    ranks = found.keyword_ranks if by_words else found.vector_ranks
    scores = found.bm25 if by_words else found.cosines
    rows = tier.nonzero()[0]
    # A row of the third list may have no rank: then its score places it, behind the others.
    ranked = ranks.take(rows)
    order = np.lexsort((rows, -scores.take(rows), np.where(ranked < 0, len(ranks), ranked)))
    rows = rows.take(order)

    def describe_rows(some: Numbers) -> Iterator[Fused]:
        columns = found.chunk_nos, found.memory_nos, scores, ranks
        for number, memory, score, rank in _in_parts(some, *columns):
            place = Place(rank if rank >= 0 else None, score, score)
            yield Fused(number, memory, score, {retriever: place}, None if by_words else score)

    return Ordered(rows, scores, describe_rows)


def add_times(ordered: Ordered, nearness: Figures, chunks: int) -> Ordered:
    """Add what a time tells if a question names nothing else, and order the rows again.

    It counts like a word that one of the chunks has.
    """
    added = (nearness * math.log(max(chunks, 2))).round(_DIGITS)
    scores = (ordered.scores + added).round(_DIGITS)
    rows = ordered.rows.take(np.argsort(-scores.take(ordered.rows), kind="stable"))
    in_time = nearness >= 1

    def describe_rows(some: Numbers) -> Iterator[Fused]:
        figures = _in_parts(some, scores, added, in_time)
        for fused, (score, by_time, inside) in zip(ordered.describe(some), figures, strict=True):
            yield fused._replace(score=score, time_alone=by_time, in_time=inside)

    return replace(ordered, rows=rows, scores=scores, describe=describe_rows, in_time=in_time)


def prefer_times(ordered: Ordered, factors: Figures) -> Ordered:
    """Multiply the scores by the factors of named times, and order the rows again.

    Among equal scores, the nearer time comes first. No factor is below 1: a time is a preference,
    and takes nothing from what is from other times.
    """
    return replace(_multiply(ordered, factors, "time"), times=factors)


def put_aside(ordered: Ordered, factors: Figures | None) -> Ordered:
    """Multiply the scores by the factors of tests and generated files, and order the rows again."""
    return _multiply(ordered, factors, "file")


def _multiply(ordered: Ordered, factors: Figures | None, name: str) -> Ordered:
    """Multiply the scores by factors that an explanation shows by their name."""
    if factors is None:
        return ordered
    scores = (ordered.scores * factors).round(_DIGITS)
    order = np.lexsort((-factors.take(ordered.rows), -scores.take(ordered.rows)))
    rows = ordered.rows.take(order)

    def describe_rows(some: Numbers) -> Iterator[Fused]:
        figures = _in_parts(some, scores, factors)
        for fused, (score, factor) in zip(ordered.describe(some), figures, strict=True):
            yield fused._replace(**{"score": score, name: factor})

    return replace(ordered, rows=rows, scores=scores, describe=describe_rows)


def apply_gains(ordered: Ordered, gains: Figures | None) -> Ordered:
    """Multiply the scores by factors, and order the rows again; equals keep their order.

    A factor below 1 moves no row off its page of `PAGE` rows: the score is at least that of the
    last row there.
    """
    if gains is None:
        return ordered
    raised = (ordered.scores * np.maximum(gains, 1.0)).round(_DIGITS)
    rows = ordered.rows.take(np.argsort(-raised.take(ordered.rows), kind="stable"))
    least = np.repeat(raised.take(rows[PAGE - 1 :: PAGE]), PAGE)
    scores = (ordered.scores * gains).round(_DIGITS)
    # The last page is not full: there is nowhere to fall to.
    on_full_pages = rows[: len(least)]
    scores[on_full_pages] = np.maximum(scores.take(on_full_pages), least)
    rows = rows.take(np.argsort(-scores.take(rows), kind="stable"))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(ordered.scores > 0, scores / ordered.scores, 1.0)

    def describe_rows(some: Numbers) -> Iterator[Fused]:
        figures = _in_parts(some, scores, factors)
        for fused, (score, factor) in zip(ordered.describe(some), figures, strict=True):
            yield fused._replace(score=score, feedback=factor)

    return replace(ordered, rows=rows, scores=scores, describe=describe_rows, feedback=factors)


def describe(
    found: Candidates,
    rows: Numbers,
    scores: Figures,
    shares: Shares,
    *,
    by_rank: bool = False,
) -> Iterator[Fused]:
    """Describe rows in the order given, with their final scores and the share of each retriever.

    With `by_rank`, a retriever counts only for the chunks that it ranked; otherwise it counts for
    every chunk that it has a score for.
    """
    columns = (
        *(found.chunk_nos, found.memory_nos, scores, found.cosines),
        *(found.keyword_ranks, found.bm25, shares.by_words),
        *(found.vector_ranks, shares.by_vector),
        np.zeros(len(scores)) if shares.beside is None else shares.beside,
        np.ones(len(scores)) if shares.form is None else shares.form,
    )
    for number, memory, score, cosine, *figures in _in_parts(rows, *columns):
        rank, bm25, by_words, place, by_vector, beside, form = figures
        near = None if cosine != cosine else cosine  # not a number: it has no vector
        places = {}
        if rank >= 0 or (bm25 > 0 and not by_rank):
            places[KEYWORDS] = Place(rank if rank >= 0 else None, bm25, by_words)
        if near is not None and (place >= 0 or not by_rank):
            places[VECTOR] = Place(place if place >= 0 else None, near, by_vector)
        yield Fused(number, memory, score, places, near, beside, form)


def _in_parts(rows: Numbers, *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Give the values of rows: first those of a page, since most callers need no more."""
    for part in (rows[:_ON_A_PAGE], rows[_ON_A_PAGE:]):
        if len(part):
            yield from zip(*(column.take(part).tolist() for column in columns), strict=True)
