"""Let a reranker order the first passages of a ranking.

A reranker reads the question together with each passage, which takes tens of milliseconds for each:
only the first ones are read. Passages of superseded memories stay behind all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from byheart.contracts import Reranker
from byheart.errors import ByheartError, Hint
from byheart.model import RerankerExplanation
from byheart.search.ranked_rows import Fused
from byheart.search.ranking import Ranking

TextsOf = Callable[[Sequence[Fused]], Sequence[str]]


class Reranking(NamedTuple):
    """Hold a reranker, and how many passages it is to order."""

    reranker: Reranker
    passages: int


class RerankedList:
    """Give the chunks of a ranking, the first ones in the order of a reranker.

    If the reranker fails, the order stays, and `failure` says why.
    """

    def __init__(
        self, ranking: Ranking, reranking: Reranking | None, question: str, texts_of: TextsOf
    ) -> None:
        self._ranking = ranking
        self._reranking = reranking
        self._question = question
        self._texts_of = texts_of
        self.explanations: dict[int, RerankerExplanation] = {}
        self.failure: str | None = None

    def __iter__(self) -> Iterator[Fused]:
        ranked = iter(self._ranking)
        if self._reranking is not None:
            yield from self._rerank(self._reranking, list(islice(ranked, self._reranking.passages)))
        yield from ranked

    def _rerank(self, reranking: Reranking, first: list[Fused]) -> list[Fused]:
        if not first:
            return first
        started = time.perf_counter()
        try:
            scores = ask_reranker(reranking.reranker, self._question, self._texts_of(first))
        except ByheartError as error:
            self.failure = Hint("the hits were not reranked: ", error.message)
            return first
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        for rank, (each, score) in enumerate(zip(first, scores, strict=True)):
            self.explanations[each.chunk_no] = RerankerExplanation(score, rank, elapsed_ms)
        return sorted(first, key=self._place)

    def _place(self, fused: Fused) -> tuple[bool, float]:
        score = self.explanations[fused.chunk_no].score
        return self._ranking.is_superseded(fused), -score


def ask_reranker(reranker: Reranker, question: str, passages: Sequence[str]) -> list[float]:
    """Ask a reranker, which may be somebody else's code, and check its answer."""
    try:
        scores = [float(each) for each in reranker.score(question, passages)]
    except ByheartError:
        raise
    except Exception as error:
        raise ByheartError(f"the reranker failed: {type(error).__name__}: {error}") from error
    if len(scores) != len(passages) or not all(map(math.isfinite, scores)):
        raise ByheartError(
            f"the reranker gave {len(scores)} scores for {len(passages)} passages, or no numbers"
        )
    return scores
