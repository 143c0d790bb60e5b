"""Gather the chunks that a search ranks highest, with the data to choose among them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import NamedTuple

from byheart.contracts import Candidate, Candidates, Reader, Vectors
from byheart.model import Judgement
from byheart.search.ranked_rows import Fused
from byheart.search.ranking import FIRST_PASSAGES, Best, Ranking
from byheart.search.request import SearchRequest
from byheart.search.side_files import read_paths
from byheart.search.term_rarities import weigh_terms
from byheart.search.verdict import Estimate, judge_passages, judge_signs


class Gathered(NamedTuple):
    """Hold the best chunks of a search, best first, and the verdict on the first of them."""

    candidates: list[Candidate]
    judgement: Judgement


def gather(
    request: SearchRequest,
    reader: Reader,
    vector: Vectors | None,
    there: Container[str],
    unrelated: float = 0.0,
    question_id: str | None = None,
) -> Gathered:
    """Gather the best chunks of memories that are not superseded, best first.

    For each chunk of a memory that is already `there`, gather one more. `unrelated` is the cosine
    of texts that have nothing in common. The question may be a turn itself, which is no answer.
    """
    ranking = Ranking(request, reader.index, vector, FIRST_PASSAGES, paths_of=read_paths(reader))
    ranked = (
        (fused, ranking.found)
        for fused in chain.from_iterable(ranking.tiers(superseded=False))
        if ranking.found is not None
    )
    gathered: list[Candidate] = []
    judgement: Judgement | None = None
    wanted = request.limit
    while batch := list(islice(ranked, wanted)):
        numbers = [fused.chunk_no for fused, _ in batch]
        vectors = reader.index.vectors(numbers) if vector is not None else {}
        chunks = reader.chunks(numbers)
        estimates = _estimate(batch, unrelated, by_words=ranking.by_words)
        for at, ((fused, found), chunk) in enumerate(zip(batch, chunks, strict=True)):
            if judgement is None and chunk.memory.memory_id != question_id:
                lead = _lead([each for each, _ in batch[at:]]) if ranking.has_lead else None
                best = Best(fused, found, lead)
                judgement = judge_signs(best, estimates[at].signs)
            near = vectors.get(fused.chunk_no)
            gathered.append(Candidate(chunk, fused.score, near, estimates[at].confidence))
        wanted = sum(chunk.memory.memory_id in there for chunk in chunks)
    return Gathered(gathered, judgement or Judgement("none", 0.0))


def _estimate(
    ranked: Sequence[tuple[Fused, Candidates]], unrelated: float, *, by_words: bool
) -> list[Estimate]:
    """Estimate for each chunk the probability that it has to do with the question."""
    estimates: list[Estimate] = []
    for found, tier in groupby(ranked, itemgetter(1)):
        rarities = weigh_terms(found) if by_words else None
        estimates += judge_passages([each for each, _ in tier], found, unrelated, rarities)
    return estimates


def _lead(ranked: Sequence[Fused]) -> float:
    """Return how much the first score exceeds that of the next memory."""
    first = ranked[0]
    others = (each.score for each in ranked if each.memory_no != first.memory_no)
    return first.score - next(others, 0.0)
