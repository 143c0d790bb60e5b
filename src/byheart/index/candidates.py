"""Find candidates in the arrays: implement the `Index` contract on one view of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byheart.contracts import Background, Candidates, IndexLookup, Question, Ranked, Vectors
from byheart.index import likeness
from byheart.index.array_search import Selection, View, WordScores
from byheart.index.background import look_around
from byheart.index.segment import FIXED_POINT
from byheart.index.turns import NEIGHBOURS, find_neighbours
from byheart.language.raw_query import RawQuery
from byheart.model import Filter, IndexState

# A prefix may begin many terms: so many pages of them are read, and the index takes the rarest
# that the selected chunks have.
_TERMS_PER_PAGE, _MOST_PAGES = 4000, 50

Numbers = NDArray[np.int64]
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Hold the parts of an answer that do not depend on the depth of the search."""

    selection: Selection
    terms: Sequence[str]
    scored: WordScores | None
    matches: Numbers | None
    background: Background


class ArraySearch:
    """Answer questions from one view, for as long as the snapshot of its database lasts."""

    def __init__(self, view: View, lookup: IndexLookup, now: int) -> None:
        self._view = view
        self._lookup = lookup
        self._now = now
        self._selections: dict[Filter, Selection] = {}
        self._prepared: dict[Question, _Prepared] = {}

    def candidates(self, question: Question, depth: int) -> Candidates:
        """Give the first `depth` chunks of each retriever with all that ranking needs."""
        prepared = self._prepare(question)
        by_words = self._rank_by_words(prepared, depth)
        by_vector = self._rank_by_vector(question, prepared.selection, depth)
        found = _distinct(np.concatenate([by_words.chunk_nos, by_vector.chunk_nos]))
        rows, around = self._with_neighbours(found, question, prepared.selection)
        beside = around[around > 0]
        everyone = _distinct(np.concatenate([rows, beside])) if len(beside) else rows
        bm25 = self._bm25(prepared.scored, everyone)
        cosines = self._cosines(question.vector, everyone, by_vector)
        here = np.searchsorted(everyone, rows) if len(beside) else slice(None)
        return Candidates(
            terms=prepared.terms,
            background=prepared.background,
            highest_bm25=float(by_words.scores.max(initial=0.0)),
            document_frequency=_frequencies(prepared.scored),
            chunk_nos=rows,
            memory_nos=self._view.owner_nos(rows),
            bm25=bm25[here],
            cosines=cosines[here],
            keyword_ranks=_ranks(by_words, rows),
            vector_ranks=_ranks(by_vector, rows),
            terms_present=self._terms_present(prepared.scored, rows),
            neighbours=around,
            neighbours_bm25=_figures_of(around, everyone, bm25, 0.0),
            neighbours_cosines=_figures_of(around, everyone, cosines, np.nan),
            more=max(len(by_words.chunk_nos), len(by_vector.chunk_nos)) >= depth,
            holds_superseded=self._view.space(question.where.space, self._now).superseded,
        )

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
            matches = self._lookup.matches(question.raw)
        if question.terms is not None or question.raw is not None:
            scored = self._view.score_words(terms, selection)
        background = self._background(question, selection)
        prepared = _Prepared(selection, terms, scored, matches, background)
        self._prepared[question] = prepared
        return prepared

    def _background(self, question: Question, selection: Selection) -> Background:
        if question.vector is None:
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

    def _rank_by_vector(self, question: Question, selection: Selection, depth: int) -> Ranked:
        if question.vector is None:
            return _nothing()
        return self._view.rank_by_vector(question.vector, selection, depth)

    def _with_neighbours(
        self, found: Numbers, question: Question, selection: Selection
    ) -> tuple[Numbers, Numbers]:
        """Add the turns beside the chunks that were found, and name the neighbours of every row."""
        if not question.neighbours:
            return found, np.zeros((len(found), 2 * NEIGHBOURS), np.int64)
        around = find_neighbours(self._view, found, selection)
        if not around.any():
            return found, around
        rows = _distinct(np.concatenate([found, around[around > 0]]))
        return rows, find_neighbours(self._view, rows, selection)

    def _bm25(self, scored: WordScores | None, chunk_nos: Numbers) -> Figures:
        if scored is None:
            return np.zeros(len(chunk_nos))
        return self._view.word_scores(scored.scores, chunk_nos)

    def _cosines(self, vector: Vectors | None, chunk_nos: Numbers, known: Ranked) -> Figures:
        cosines = np.full(len(chunk_nos), np.nan)
        if vector is None:
            return cosines
        cosines[np.searchsorted(chunk_nos, known.chunk_nos)] = known.scores
        missing = np.flatnonzero(np.isnan(cosines))
        if len(missing):
            slots = self._view.slots_of(chunk_nos[missing])
            cosines[missing] = self._view.compare(slots, vector).of(slots)
        return cosines

    def _terms_present(self, scored: WordScores | None, chunk_nos: Numbers) -> NDArray[np.bool_]:
        postings = [] if scored is None else list(scored.found.values())
        present = np.zeros((len(chunk_nos), len(postings)), np.bool_)
        slots = self._view.slots_of(chunk_nos)
        for column, parts in enumerate(postings):
            for part in parts:
                places = np.minimum(np.searchsorted(part, slots), max(len(part) - 1, 0))
                if len(part):
                    present[:, column] |= part.take(places) == slots
        return present

    def term_shares(self, question: Question, chunk_no: int) -> dict[str, float]:
        """Give the contribution of each term to the BM25 score of a chunk."""
        prepared, view = self._prepare(question), self._view
        return view.weigh_terms(prepared.terms, view.slot_of(chunk_no), prepared.selection)

    def best_window(self, vector: Vectors, chunk_no: int) -> float:
        """Locate the window of a chunk that is nearest to a vector: 0 is the first, 1 the last."""
        windows = self._view.windows(self._view.slots_of(np.array([chunk_no]))).vectors
        return int((windows @ vector).argmax()) / (len(windows) - 1) if len(windows) > 1 else 0.0

    def vectors(self, chunk_nos: Sequence[int]) -> dict[int, Vectors]:
        """Give the vectors of chunks, a row for each window; chunks without any are left out."""
        found = self._view.windows(self._view.slots_of(np.array(chunk_nos, np.int64)))
        numbers = self._view.chunks.chunk_nos.take(found.slots).tolist()
        rows = np.split(found.vectors / np.float32(FIXED_POINT), found.first[1:])
        return dict(zip(numbers, rows, strict=True)) if numbers else {}

    def resembling(self, memory_no: int, least: float, limit: int) -> list[tuple[int, float]]:
        """Find memories that say almost the same as one, best first, by their numbers."""
        return likeness.resembling(self._view, memory_no, least, limit, self._now)

    def doubles(self, where: Filter, least: float) -> list[tuple[int, int, float]]:
        """Pair memories of one kind and session that say almost the same, best first."""
        pairs = likeness.find_pairs(self._view, self._select(where).chunks, least)
        return list(zip(*(column.tolist() for column in pairs), strict=True))

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
        held = self._view.count(Filter(space, session_id, include_global), self._now)
        model = self._lookup.active_model_name()
        return IndexState(held.memories, held.chunks, held.bare_chunks, model)

    def inventory(self, space: str) -> tuple[dict[str, int], int]:
        """Count the memories of a space by kind, and its vectors."""
        view = self._view
        held = view.space(space, self._now)
        names = list(view.codes["kind"].numbers)  # by number
        counts = np.bincount(view.memories.kind[held.memories], minlength=len(names))
        kinds = dict(zip(names, counts.tolist(), strict=True))
        vectors = sum(
            int(np.count_nonzero(held.selection.chunks[each.vector_slots]))
            for each in view.segments
        )
        return {name: kinds[name] for name in sorted(kinds) if kinds[name]}, vectors


def _nothing() -> Ranked:
    return Ranked(np.empty(0, np.int64), np.empty(0))


def _distinct(chunk_nos: Numbers) -> Numbers:
    """Sort numbers and drop repeated ones: ten times as fast as `unique` for a few hundred."""
    ordered = np.sort(chunk_nos)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _ranks(ranked: Ranked, chunk_nos: Numbers) -> Numbers:
    """Give the rank of each chunk in a retriever; -1 if the retriever did not find the chunk."""
    ranks = np.full(len(chunk_nos), -1)
    places = np.searchsorted(chunk_nos, ranked.chunk_nos)
    ranks[places] = np.arange(len(ranked.chunk_nos))
    return ranks


def _figures_of(around: Numbers, known: Numbers, figures: Figures, none: float) -> Figures:
    """Look up the figure of each neighbour; `none` where there is no neighbour."""
    found = np.full(around.shape, none)
    is_there = around > 0
    if is_there.any():
        found[is_there] = figures.take(np.searchsorted(known, around[is_there]))
    return found


def _frequencies(scored: WordScores | None) -> dict[str, int]:
    found = {} if scored is None else scored.found
    return {term: sum(map(len, parts)) for term, parts in found.items()}
