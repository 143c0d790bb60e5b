"""Find candidates in the arrays: implement the `Index` contract on one view of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from byheart.contracts import (
    Background,
    Candidates,
    Figures,
    IndexLookup,
    MeanVectors,
    Numbers,
    Prominence,
    Question,
    Spans,
    Vectors,
)
from byheart.index import near_duplicates
from byheart.index.background import look_around
from byheart.index.masks import Mask
from byheart.index.mean_vectors import find_mean_vectors
from byheart.index.named_times import read_events, select_times
from byheart.index.neighbouring_turns import NEIGHBOURS, NO_SLOT, find_neighbours
from byheart.index.recall_candidates import (
    Coverage,
    count_memories,
    cover_terms,
    find_matching,
    rank_by_prominence,
    read_prominence,
)
from byheart.index.segment import FIXED_POINT
from byheart.index.selections import Selection, Slots
from byheart.index.turn_forms import describe_turns
from byheart.index.view import Ranked, View, WordScores
from byheart.model import Filter, IndexState
from byheart.model.answers import IndexPlace
from byheart.model.workspaces import FILE_KIND
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

if TYPE_CHECKING:
    from byheart.language.raw_query import RawQuery

# A prefix may begin many terms: so many pages of them are read, and the index takes the rarest
# that the selected chunks have.
_TERMS_PER_PAGE, _MOST_PAGES = 4000, 50
# So many places are looked up one by one; more of them from a table.
_FEW = 1000


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Hold the parts of an answer that do not depend on the depth of the search."""

    selection: Selection
    terms: Sequence[str]
    scored: WordScores | None
    matches: Numbers | None
    background: Background
    # Where the question has a weighing: the chunks that match, and the prominence of every memory.
    matching: Mask | None = None
    matching_memories: int = 0
    coverage: Coverage | None = None
    prominence: Prominence | None = None
    # If the question names times: when each memory was said, and the chunks of these times.
    events: Spans | None = None
    of_times: Selection | None = None


class _Beside(NamedTuple):
    """Hold the neighbours of each row, by their chunk numbers, and their figures."""

    chunk_nos: Numbers
    bm25: Figures
    cosines: Figures


class _TermsPresent:
    """Look up the terms of rows when they are asked for: a verdict reads one row of hundreds."""

    def __init__(self, scored: WordScores | None, slots: Slots) -> None:
        self._postings = () if scored is None else scored.found.values()
        self._slots = slots

    def __getitem__(self, rows: Numbers) -> NDArray[np.bool_]:
        slots = self._slots.take(rows)
        present = np.zeros((len(slots), len(self._postings)), np.bool_)
        for term, parts in enumerate(self._postings):
            for ordered in parts:
                present[:, term] |= _holds(ordered, slots)
        return present


def _holds(ordered: Slots, slots: Slots) -> NDArray[np.bool_]:
    # Slots behind the last one are compared with the last one. No list of postings is empty.
    is_there: NDArray[np.bool_] = ordered.take(ordered.searchsorted(slots), mode="clip") == slots
    return is_there


class ArraySearch:
    """Answer questions from one view, for as long as the snapshot of its database lasts."""

    def __init__(self, view: View, lookup: IndexLookup, now: int) -> None:
        self._view = view
        self._lookup = lookup
        self._now = now
        self._selections: dict[Filter, Selection] = {}
        self._prepared: dict[Question, _Prepared] = {}

    def candidates(self, question: Question, depth: int) -> Candidates:
        """Give the first `depth` chunks of each retriever with all that ranking needs.

        Chunks are handled by their slots, which are in the order of their numbers.
        """
        view, selection = self._view, self._select(question.where)
        if question.weighing is not None and selection.total <= question.weighing.whole:
            depth = max(depth, selection.total + 1)
        if question not in self._prepared:
            view.expect(question.terms or ())
        # Vectors first: if the index asks its database, the postings come with the same answer.
        by_vector = self._rank_by_vector(question, selection, depth)
        prepared = self._prepare(question)
        by_words = self._rank_by_words(prepared, depth)
        more = max(len(by_words.slots), len(by_vector.slots)) >= depth
        by_prominence = self._rank_by_prominence(question, prepared, depth) if more else _nothing()
        of_times = self._find_in_times(question, prepared, depth) if more else _nothing().slots
        found = _union(_union(by_words.slots, by_vector.slots), by_prominence.slots)
        if len(of_times):
            found = _union(found, of_times)
        slots, around = self._with_neighbours(found, question, selection)
        # Neighbours of a neighbour that was added are no rows, but their figures count.
        everyone = slots if around is None else _union(slots, around[around >= 0])
        bm25, cosines = self._figures(everyone, prepared.scored, question.vector, by_vector)
        beside = self._beside(around, len(slots), everyone, bm25, cosines)
        if len(everyone) > len(slots):
            here = everyone.searchsorted(slots)
            bm25, cosines = bm25.take(here), cosines.take(here)
        words_at, vector_at, prominent_at = (
            _places(slots, each.slots) for each in (by_words, by_vector, by_prominence)
        )
        coverage, prominence, events = prepared.coverage, prepared.prominence, prepared.events
        if prominence is not None:
            prominence = prominence.take(view.chunks.owner.take(slots))
        if events is not None:
            events = events.take(view.chunks.owner.take(slots))
        return Candidates(
            terms=prepared.terms,
            background=prepared.background,
            highest_bm25=float(by_words.scores.max(initial=0.0)),
            document_frequency=_frequencies(prepared.scored),
            chunk_nos=view.chunks.chunk_nos.take(slots),
            memory_nos=view.owner_nos(slots),
            bm25=bm25,
            cosines=cosines,
            keyword_ranks=_ranks(words_at, len(slots)),
            vector_ranks=_ranks(vector_at, len(slots)),
            terms_present=_TermsPresent(prepared.scored, slots),
            neighbours=beside.chunk_nos,
            neighbours_bm25=beside.bm25,
            neighbours_cosines=beside.cosines,
            more=more,
            holds_superseded=view.space(question.where.space, self._now).superseded,
            prominence_ranks=None if prominence is None else _ranks(prominent_at, len(slots)),
            prominence=prominence,
            coverage=None if coverage is None else coverage.take(slots).astype(np.float64),
            matching_memories=prepared.matching_memories,
            time_ranks=None if events is None else _ranks(slots.searchsorted(of_times), len(slots)),
            events=events,
            file_rows=self._file_rows(slots),
            feedback=self._feedback(slots),
            turn_forms=describe_turns(view, slots, around, prepared.terms)
            if question.neighbours
            else None,
        )

    def _file_rows(self, slots: Slots) -> Numbers | None:
        """List the places of chunks whose memories are files."""
        code = self._view.codes["kind"].find(FILE_KIND)
        if code < 0:
            return None
        kinds = self._view.memories.kind.take(self._view.chunks.owner.take(slots))
        return np.flatnonzero(kinds == code)

    def _feedback(self, slots: Slots) -> dict[int, str]:
        """Give the feedback of chunks' memories, by the places of the chunks."""
        view = self._view
        known = view.codes["feedback"].numbers
        if not known:
            return {}
        codes = view.memories.feedback.take(view.chunks.owner.take(slots))
        rows, texts = np.flatnonzero(codes >= 0).tolist(), list(known)
        return {row: texts[codes[row]] for row in rows}

    def _prepare(self, question: Question) -> _Prepared:
        """Select, score and sample once per question, at whatever depth it is asked again."""
        known = self._prepared.get(question)
        if known is not None:
            return known
        selection = self._select(question.where)
        terms: Sequence[str] = question.terms or ()
        matches = scored = None
        if question.raw is not None:
            terms = self._raw_terms(question.raw, selection)
            matches = self._lookup.matches(question.raw, self._view.range_of(selection))
        if question.terms is not None or question.raw is not None:
            scored = self._view.score_words(terms, selection, question.words_of_pieces)
        background = self._background(question, selection)
        prepared = _Prepared(selection, terms, scored, matches, background)
        if question.weighing is not None:
            prepared = self._with_standings(prepared, question)
        if question.times:
            events = read_events(self._view)
            of_times = select_times(self._view, selection, events, question.times)
            prepared = replace(prepared, events=events, of_times=of_times)
        self._prepared[question] = prepared
        return prepared

    def _with_standings(self, prepared: _Prepared, question: Question) -> _Prepared:
        matching = find_matching(
            self._view,
            prepared.selection,
            prepared.scored,
            prepared.matches,
            by_vector=question.vector is not None,
        )
        return replace(
            prepared,
            matching=matching,
            matching_memories=count_memories(self._view, matching),
            coverage=cover_terms(prepared.selection, prepared.scored),
            prominence=read_prominence(self._view, self._lookup, question.where.space),
        )

    def _background(self, question: Question, selection: Selection) -> Background:
        # Only the evidence of both retrievers compares cosines with their background.
        by_both = question.terms is not None or question.raw is not None
        if question.vector is None or not by_both:
            return Background(0.0, 0.0, selection.total)
        return look_around(self._view, question.vector, selection)

    def _select(self, where: Filter) -> Selection:
        selection = self._selections.get(where)
        if selection is None:
            members = self._lookup.members(where)
            selection = self._selections[where] = self._view.select(where, self._now, members)
        return selection

    def _raw_terms(self, raw: RawQuery, selection: Selection) -> list[str]:
        """List the terms that a raw query looks for, and the terms that its prefixes match."""
        own = set(raw.terms)
        found: dict[str, None] = {}
        for prefix in raw.prefixes:
            found |= dict.fromkeys(self._continue(prefix, selection))
        more = self._view.present([each for each in found if each not in own], selection)
        return [*raw.terms, *more]

    def _continue(self, prefix: str, selection: Selection) -> list[str]:
        """List terms with a prefix that the selected chunks have.

        The store's terms are read page by page, so terms of other spaces take no places.
        """
        found: list[str] = []
        after = ""
        for _ in range(_MOST_PAGES):
            page = self._lookup.continuations(prefix, after, _TERMS_PER_PAGE)
            found += self._view.present(page, selection)
            if len(page) < _TERMS_PER_PAGE:
                break
            after = page[-1]
        return found

    def _rank_by_words(self, prepared: _Prepared, depth: int) -> Ranked:
        if prepared.scored is None:
            return _nothing()
        if prepared.matches is not None:
            scores = prepared.scored.scores
            return self._view.rank_matches(prepared.matches, scores, prepared.selection, depth)
        return self._view.rank_by_words(prepared.scored.scores, depth)

    def _rank_by_prominence(self, question: Question, prepared: _Prepared, depth: int) -> Ranked:
        weighing, matching = question.weighing, prepared.matching
        coverage, prominence = prepared.coverage, prepared.prominence
        if weighing is None or matching is None or coverage is None or prominence is None:
            return _nothing()
        return rank_by_prominence(
            self._view, matching, prepared.scored, coverage, prominence, weighing, depth
        )

    def _find_in_times(self, question: Question, prepared: _Prepared, depth: int) -> Slots:
        """List the best chunks of each retriever among memories of the times that are named.

        Otherwise, a store that says much about a subject would hide the mention of last week.
        """
        of_times = prepared.of_times
        if of_times is None or prepared.matches is not None:
            return _nothing().slots
        by_vector = self._rank_by_vector(question, of_times, depth)
        if prepared.scored is None:
            return by_vector.slots
        scores = np.where(of_times.chunks, prepared.scored.scores, np.float32(0))
        return _union(self._view.rank_by_words(scores, depth).slots, by_vector.slots)

    def _rank_by_vector(self, question: Question, selection: Selection, depth: int) -> Ranked:
        if question.vector is None:
            return _nothing()
        return self._view.rank_by_vector(question.vector, selection, depth)

    def _with_neighbours(
        self, found: Slots, question: Question, selection: Selection
    ) -> tuple[Slots, Slots | None]:
        """Add the turns beside the chunks that were found, and name the neighbours of every row."""
        if not question.neighbours:
            return found, None
        around = find_neighbours(self._view, found, selection)
        if around is None:
            return found, None
        slots = _union(found, around[around >= 0])
        added = ~_holds(found, slots)
        everyone = np.empty((len(slots), around.shape[1]), np.int64)
        everyone[~added] = around
        further = find_neighbours(self._view, slots[added], selection)
        everyone[added] = NO_SLOT if further is None else further
        return slots, everyone

    def _figures(
        self, slots: Slots, scored: WordScores | None, vector: Vectors | None, known: Ranked
    ) -> tuple[Figures, Figures]:
        """Give the BM25 score and the cosine of chunks; some cosines are known already."""
        bm25 = np.zeros(len(slots))
        if scored is not None:
            bm25 = self._view.word_scores(scored.scores, slots)
        cosines = np.full(len(slots), np.nan)
        if vector is not None:
            cosines[_places(slots, known.slots)] = known.scores
            missing = np.isnan(cosines).nonzero()[0]
            if len(missing):
                others = slots.take(missing)
                cosines[missing] = self._view.compare(others, vector).of(others)
        return bm25, cosines

    def _beside(
        self, around: Slots | None, count: int, known: Slots, bm25: Figures, cosines: Figures
    ) -> _Beside:
        """Look up the number and the figures of each neighbour."""
        if around is None:
            shape = count, 2 * NEIGHBOURS
            return _Beside(np.zeros(shape, np.int64), np.zeros(shape), np.full(shape, np.nan))
        is_there = around >= 0
        places = known.searchsorted(np.where(is_there, around, known[0]))
        return _Beside(
            np.where(is_there, self._view.chunks.chunk_nos.take(known).take(places), 0),
            np.where(is_there, bm25.take(places), 0.0),
            np.where(is_there, cosines.take(places), np.nan),
        )

    def term_shares(self, question: Question, chunk_no: int) -> dict[str, float]:
        """Give the contribution of each term to the BM25 score of a chunk."""
        prepared, view = self._prepare(question), self._view
        scored = prepared.terms, prepared.selection, question.words_of_pieces
        return view.weigh_terms(*scored, view.slot_of(chunk_no))

    def best_window(self, vector: Vectors, chunk_no: int) -> float:
        """Locate the window of a chunk that is nearest to a vector: 0 is the first, 1 the last."""
        windows = self._view.windows_of(self._view.slot_of(chunk_no))
        if len(windows) < 2:
            return 0.0
        return int((windows.astype(np.float32) @ vector).argmax()) / (len(windows) - 1)

    def vectors(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        """Give the vectors of chunks, a row for each window; chunks without any are left out."""
        found = self._view.windows(self._view.slots_of(np.array(chunk_nos, np.int64)))
        numbers = self._view.chunks.chunk_nos.take(found.slots).tolist()
        rows = np.split(found.vectors / np.float32(FIXED_POINT), found.first[1:])
        return dict(zip(numbers, rows, strict=True)) if numbers else {}

    def resembling(self, memory_no: int, least: float, limit: int) -> list[tuple[int, float]]:
        """Find memories that say almost the same as one, best first, by their numbers."""
        return near_duplicates.resembling(self._view, memory_no, least, limit, self._now)

    def doubles(self, where: Filter, least: float) -> list[tuple[int, int, float]]:
        """Pair memories of one kind and session that say almost the same, best first."""
        pairs = near_duplicates.find_pairs(self._view, self._select(where).chunks, least)
        return list(zip(*(column.tolist() for column in pairs), strict=True))

    def mean_vectors(self, where: Filter, limit: int) -> MeanVectors:
        """Give the mean vector of each memory that has any; of every n-th if there are many."""
        return find_mean_vectors(self._view, self._select(where).chunks, limit)

    def sample(self, where: Filter, count: int, seed: int) -> list[int]:
        """Pick chunks at random: the same ones for the same seed while nothing changes."""
        slots = np.flatnonzero(self._select(where).chunks)
        few = min(count, len(slots))
        chosen = np.random.default_rng(seed).choice(slots, few, replace=False, shuffle=True)
        numbers: list[int] = self._view.chunks.chunk_nos[chosen].tolist()
        return numbers

    def state(
        self, space: str, session_id: str | None = None, *, include_global: bool = True
    ) -> IndexState:
        """Count the memories and chunks of a space, or of the part that a session may see."""
        if session_id is None:
            held = self._view.count_space(space, self._now)
        else:
            held = self._view.count(Filter(space, session_id, include_global), self._now)
        model = self._lookup.active_model_name()
        place: IndexPlace = "memory" if self._view.stored is None else "database"
        return IndexState(held.memories, held.chunks, held.bare_chunks, model, place)

    def inventory(self, space: str) -> tuple[dict[str, int], int]:
        """Count the memories of a space by kind, and its vectors."""
        view = self._view
        held = view.space(space, self._now)
        names = list(view.codes["kind"].numbers)  # by number
        counts = np.bincount(view.memories.kind[held.memories], minlength=len(names))
        kinds = dict(zip(names, counts.tolist(), strict=True))
        vectors = sum(map(len, view.allowed(held.selection)))
        return {name: kinds[name] for name in sorted(kinds) if kinds[name]}, vectors


def _nothing() -> Ranked:
    return Ranked(np.empty(0, np.int64), np.empty(0))


def _union(some: Slots, others: Slots) -> Slots:
    """Merge slots, sort them, and drop repeated ones.

    This is ten times as fast as `unique` for a few hundred.
    """
    if not len(others):
        return np.sort(some)
    ordered = np.concatenate((some, others))
    ordered.sort()
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _places(slots: Slots, wanted: Slots) -> Slots:
    """Find the places of some slots among sorted ones, which have them all."""
    if len(wanted) <= _FEW:
        return slots.searchsorted(wanted)
    # A recall ranks thousands. In the order of ranks, searching for them takes about forty times as
    # long, because the processor cannot predict the steps.
    places = np.empty(int(slots[-1]) + 1, np.int64)
    places[slots] = np.arange(len(slots))
    return places.take(wanted)


def _ranks(rows: Numbers, count: int) -> Numbers:
    """Give the rank of each row in a retriever; -1 if the retriever did not find the chunk."""
    ranks = np.full(count, -1)
    if len(rows):
        ranks[rows] = np.arange(len(rows))
    return ranks


def _frequencies(scored: WordScores | None) -> dict[str, int]:
    found = {} if scored is None else scored.found
    return {term: sum(map(len, parts)) for term, parts in found.items()}
