"""Choose the found chunks that are worth their tokens, and join them into passages.

Chunks that the prompt already contains are left out. Chunks that say the same are included once.
Chunks with new content come before another phrasing of the same content. Adjacent chunks become
one passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby

from byheart.contracts import Candidate
from byheart.language import distinct_words as particulars
from byheart.model import Chunk, IndexedFile, LeftOut, LeftOutReason, MemoryFields
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

# Two texts this similar say the same, unless only one has a certain name, number or "not".
SAME = 0.85
# The weight of relevance against novelty (Maximal Marginal Relevance).
RELEVANCE_SHARE = 0.6

Likeness = NDArray["np.float32"]


@dataclass(frozen=True, slots=True)
class Passage:
    """Hold one or more adjacent chunks of a memory."""

    memory: MemoryFields
    chunks: tuple[Chunk, ...]
    score: float
    file: IndexedFile | None = None

    @property
    def text(self) -> str:
        """Return the original text of the passage; the chunks are exact slices of it."""
        return "".join(chunk.content for chunk in self.chunks)

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Return the ids of the chunks."""
        return tuple(f"{self.memory.text_id}#{chunk.index}" for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Hold the chosen passages, best first, and chunks left out although they ranked as high."""

    passages: tuple[Passage, ...]
    left_out: tuple[LeftOut, ...]


def choose(
    candidates: Sequence[Candidate],
    there: Mapping[str, LeftOutReason],
    texts: Sequence[str],
    top_k: int,
    least_confidence: float = 0.0,
) -> Chosen:
    """Choose passages; `there` names memories already in the prompt, `texts` are their texts."""
    likeness = liken(candidates)
    contents = [candidate.found.chunk.content.strip() for candidate in candidates]
    left_out: list[LeftOut] = []
    able: list[int] = []
    for at, candidate in enumerate(candidates):
        reason = there.get(candidate.found.memory.memory_id)
        if reason is not None:
            left_out.append(_left_out(candidate, reason, _TELLS[reason]))
            continue
        if candidate.confidence < least_confidence:
            left_out.append(_left_out(candidate, "unrelated", _doubt(candidate)))
            continue
        # The same words under another title may get quite different vectors.
        alike = (o for o in able if likeness[at, o] >= SAME or contents[at] == contents[o])
        same = next((o for o in alike if _say_the_same(contents[at], contents[o])), None)
        if same is not None or any(contents[at] in text for text in texts):
            named = "another part" if same is None else _name(candidates[same])
            left_out.append(_left_out(candidate, "duplicate", f"says the same as {named}"))
            continue
        able.append(at)
    chosen = diversify(able, likeness, top_k)
    least = min((candidates[at].score for at in chosen), default=0.0)
    left_out += (
        _left_out(candidates[at], "similar", "too much like what is there already")
        for at in able
        if at not in chosen and candidates[at].score > least
    )
    ranked_as_high = [each for each in left_out if len(chosen) < top_k or (each.score or 0) > least]
    ranked_as_high = _first_unrelated(ranked_as_high, top_k)
    passages = sorted(
        _join([candidates[at] for at in chosen]), key=lambda each: (-each.score, each.chunk_ids)
    )
    return Chosen(tuple(passages), tuple(ranked_as_high))


_TELLS: Mapping[LeftOutReason, str] = {
    "recent": "is among the recent messages",
    "pinned": "is pinned",
    "summary": "is the running summary",
    "question": "is the question itself",
}


def liken(candidates: Sequence[Candidate]) -> Likeness:
    """Compare all pairs: by the cosine of their nearest windows, or by their common words."""
    vectors = [each.vectors for each in candidates if each.vectors is not None]
    if vectors and len(vectors) == len(candidates):
        windows = np.concatenate(vectors)
        starts = np.cumsum([0, *(len(each) for each in vectors[:-1])])
        # Not `windows @ windows.T`: BLAS would start threads, which wait if a core is busy.
        cosines = np.einsum("id,jd->ij", windows, windows)
        nearest = np.maximum.reduceat(cosines, starts, axis=0)
        return np.maximum.reduceat(nearest, starts, axis=1)
    words = [particulars.words_of(each.found.chunk.content) for each in candidates]
    shared = np.eye(len(words), dtype=np.float32)
    for (one, some), (two, other) in combinations(enumerate(words), 2):
        shared[one, two] = shared[two, one] = _overlap(some, other)
    return shared


def _overlap(some: set[str], other: set[str]) -> float:
    both = len(some & other)
    return both / (len(some) + len(other) - both or 1)


def _say_the_same(some: str, other: str) -> bool:
    return some == other or not particulars.differ(some, other)


def diversify(able: Sequence[int], likeness: Likeness, top_k: int) -> list[int]:
    """Pick candidates one by one that are relevant and differ from those already picked."""
    left, chosen = list(able), list[int]()
    # Use ranks, because fused scores hardly differ. Rank `top_k` has half the value of the first.
    relevance = {at: top_k / (top_k + rank) for rank, at in enumerate(able)}
    nearest = dict.fromkeys(able, 0.0)
    while left and len(chosen) < top_k:
        best = max(
            left,
            key=lambda at: RELEVANCE_SHARE * relevance[at] - (1 - RELEVANCE_SHARE) * nearest[at],
        )
        left.remove(best)
        chosen.append(best)
        for at in left:
            nearest[at] = max(nearest[at], float(likeness[at, best]))
    return chosen


def _join(chosen: Iterable[Candidate]) -> Iterator[Passage]:
    """Join adjacent chunks into one passage."""
    found = sorted(chosen, key=lambda each: (each.found.memory.text_id, each.found.chunk.index))
    places = enumerate(found)
    for _, run in groupby(
        places, lambda each: (each[1].found.memory.text_id, each[1].found.chunk.index - each[0])
    ):
        together = [each for _, each in run]
        yield Passage(
            together[0].found.memory,
            tuple(each.found.chunk for each in together),
            max(each.score for each in together),
            together[0].found.file,
        )


def _first_unrelated(left_out: Sequence[LeftOut], top_k: int) -> list[LeftOut]:
    """Keep the first unrelated chunks only: all other chunks of the store are unrelated too."""
    unrelated = [each for each in left_out if each.reason == "unrelated"][:top_k]
    return [each for each in left_out if each.reason != "unrelated" or each in unrelated]


def _doubt(candidate: Candidate) -> str:
    return f"has probably nothing to do with the question (confidence {candidate.confidence:.2f})"


def _left_out(candidate: Candidate, reason: LeftOutReason, tells: str) -> LeftOut:
    memory_id = candidate.found.memory.text_id
    return LeftOut("retrieved", memory_id, _name(candidate), candidate.score, reason, tells)


def _name(candidate: Candidate) -> str:
    return f"{candidate.found.memory.text_id}#{candidate.found.chunk.index}"
