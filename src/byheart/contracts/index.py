"""Define the index interface: one call takes a question and returns all that ranking needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from byheart.contracts.embedders import Vectors
from byheart.contracts.stored_postings import StoredPostings
from byheart.model import Filter, IndexState
from byheart.startup.dataclass_types import dataclass

if TYPE_CHECKING:  # numpy takes a tenth of a second to import: `byheart --help` does without
    import numpy as np
    from numpy.typing import NDArray

    from byheart.language.raw_query import RawQuery

# An index looks for at most this many terms of a question: the rarest ones.
MOST_TERMS = 256

Numbers: TypeAlias = "NDArray[np.int64]"
Figures: TypeAlias = "NDArray[np.float64]"


class Background(NamedTuple):
    """Describe the cosines of a question with a sample of all chunks, and the number of chunks.

    A tenth of the sample is above `shoulder`, on average by `excess`; both are in deviations above
    the mean. The defaults are those of a normal distribution, also for samples of too few chunks.
    """

    mean: float
    deviation: float
    chunks: int
    shoulder: float = 1.28
    excess: float = 0.47


class Prominence(NamedTuple):
    """Hold importance, last use and accesses of memories: they count for any question.

    `used_at` is the last access, or else the time of the event itself, in microseconds.
    """

    importance: Figures
    used_at: Numbers
    accesses: Numbers

    def take(self, places: NDArray[np.integer[Any]]) -> Prominence:
        """Pick the prominence at some places."""
        return Prominence(
            self.importance.take(places), self.used_at.take(places), self.accesses.take(places)
        )


class Weighing(NamedTuple):
    """Say how much a memory gains by its relevance and by its prominence.

    `by_prominence` gives the second part for many memories at once. A chunk enters the third list
    with at least the coverage `least`. Among at most `whole` chunks, all that match are candidates,
    and no list is needed.
    """

    relevance: float
    by_prominence: Callable[[Prominence], Figures]
    least: float
    whole: int


class Spans(NamedTuple):
    """Hold stretches of time, one for each memory: the first moments, and those behind."""

    starts: Numbers
    ends: Numbers

    def take(self, places: NDArray[np.integer[Any]]) -> Spans:
        """Pick the spans at some places."""
        return Spans(self.starts.take(places), self.ends.take(places))


class MeanVectors(NamedTuple):
    """Hold the mean vectors of memories; `kind` is the place of each one's kind in `kinds`.

    `total` counts the memories that have vectors, whether they are here or not.
    """

    memory_nos: Numbers
    vectors: Vectors
    kinds: tuple[str, ...]
    kind: Numbers
    total: int


class TurnForms(NamedTuple):
    """Describe how the rows of candidates were said, one value for each row.

    A row that is no turn has the length 0. `asking` is the share of a text that consists of short
    questions; `asking_beside` is the same for the neighbours of a row. A long reply of an assistant
    is no turn: its parts are marked by `in_long_reply`. `by_named_speaker` marks the rows of
    speakers whom the question names.
    """

    lengths: Numbers
    asking: Figures
    asking_beside: Figures
    in_long_reply: NDArray[np.bool_]
    by_named_speaker: NDArray[np.bool_]


class TermsPresent(Protocol):
    """Say which terms the chunks of rows have; an array is one, and so is a lookup."""

    def __getitem__(self, rows: Numbers, /) -> NDArray[np.bool_]:
        """Tell for each row which terms of `document_frequency` the chunk has, in their order."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question to an index: keyword terms, a vector, or both, within a filter.

    `terms` is `None` where the keyword retriever takes no part. `raw` is a query in raw syntax:
    it decides which chunks match, and the index names the terms. With `neighbours`, the turns
    beside each chunk are looked up as well. With `weighing`, a third list has the matching chunks
    whose memories stand out by importance, recency or frequency. With `times`, which are first
    moments and those behind, one more list has the best chunks of memories of these times.

    Some terms may be pieces of words, and `words_of_pieces` gives the term of each one's word. If
    more chunks have the word than a piece, texts without pieces have it: the piece is left out.
    """

    where: Filter
    terms: Sequence[str] | None
    vector: Vectors | None
    raw: RawQuery | None = None
    neighbours: bool = False
    weighing: Weighing | None = None
    times: tuple[tuple[int, int], ...] = ()
    words_of_pieces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The best chunks of each retriever, their neighbours, and the statistics of the filter.

    Rows are in ascending order of `chunk_nos`. A row without a rank (-1) in both retrievers is
    there because it is a neighbour of another row. A cosine is not a number where the chunk has no
    vector, and a neighbour is 0 where there is none. Mean and deviation of the background are 0
    unless both retrievers were asked.
    """

    terms: Sequence[str]
    background: Background
    highest_bm25: float
    document_frequency: Mapping[str, int]
    chunk_nos: Numbers
    memory_nos: Numbers
    bm25: Figures
    cosines: Figures
    keyword_ranks: Numbers
    vector_ranks: Numbers
    terms_present: TermsPresent
    # The two turns before each chunk and the two after it, nearest first, and their figures.
    neighbours: Numbers
    neighbours_bm25: Figures
    neighbours_cosines: Figures
    # Whether a retriever found as many as were asked for: a larger depth may find more.
    more: bool
    # Whether anything in the space was superseded by another memory.
    holds_superseded: bool
    # If the question has a weighing: ranks in the third list; the prominence of each row's memory;
    # the rarity of the terms that a chunk has, as a share of the most that any chunk has; and the
    # number of memories that any depth would find.
    prominence_ranks: Numbers | None = None
    prominence: Prominence | None = None
    coverage: Figures | None = None
    matching_memories: int = 0
    # If the question has times: ranks in the list of these times, and when each row's memory was
    # said or is valid.
    time_ranks: Numbers | None = None
    events: Spans | None = None
    # The rows of memories that are files of a workspace, if the space has any.
    file_rows: Numbers | None = None
    # The feedback of the memories that have any, by row, as `model/feedback.py` writes it.
    feedback: Mapping[int, str] = field(default_factory=dict)
    # Where the question asks for neighbours: how the rows were said, if any was.
    turn_forms: TurnForms | None = None

    @property
    def chunks(self) -> int:
        """Give the number of chunks within the filter."""
        return self.background.chunks


class Index(Protocol):
    """Retrieve candidates and figures from one snapshot of a store."""

    def candidates(self, question: Question, depth: int) -> Candidates:
        """Give the first `depth` chunks of each retriever with all that ranking needs."""
        ...

    def term_shares(self, question: Question, chunk_no: int) -> dict[str, float]:
        """Give the contribution of each term to the BM25 score of a chunk."""
        ...

    def best_window(self, vector: Vectors, chunk_no: int) -> float:
        """Locate the window of a chunk that is nearest to a vector: 0 is the first, 1 the last."""
        ...

    def vectors(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        """Give the vectors of chunks, a row for each window; chunks without any are left out."""
        ...

    def resembling(self, memory_no: int, least: float, limit: int) -> list[tuple[int, float]]:
        """Find memories that say almost the same as one, best first, by their numbers."""
        ...

    def doubles(self, where: Filter, least: float) -> list[tuple[int, int, float]]:
        """Pair memories of one kind and session that say almost the same, best first."""
        ...

    def mean_vectors(self, where: Filter, limit: int) -> MeanVectors:
        """Give the mean vector of each memory that has any; of every n-th if there are many."""
        ...

    def sample(self, where: Filter, count: int, seed: int) -> list[int]:
        """Pick chunks at random: the same ones for the same seed while nothing changes."""
        ...

    def state(
        self, space: str, session_id: str | None = None, *, include_global: bool = True
    ) -> IndexState:
        """Count the memories and chunks of a space, or of the part that a session may see."""
        ...


class Accesses(NamedTuple):
    """Hold when memories were last accessed, in microseconds, and how often."""

    memory_nos: Numbers
    accessed_at: Numbers
    counts: Numbers


class IndexLookup(Protocol):
    """Answer the queries of an array index to its database, in the snapshot of the search."""

    def members(self, where: Filter) -> Sequence[Numbers]:
        """List the memories that satisfy each condition of a filter that has no column."""
        ...

    def matches(self, raw: RawQuery, within: range) -> Numbers:
        """List the chunks with numbers in a range that a raw query matches, in any space."""
        ...

    def continuations(self, prefix: str, after: str, limit: int) -> Sequence[str]:
        """List terms of the store that begin with a prefix, in order, behind another term."""
        ...

    def accesses(self, space: str, limit: int) -> Accesses:
        """List the memories of a space that were accessed last."""
        ...

    def active_model_name(self) -> str | None:
        """Name the model whose vectors are searched."""
        ...

    def stored_postings(self) -> StoredPostings | None:
        """Read the postings of a large space; `None` if the database keeps none."""
        ...
