"""Search with other vectors than those of the store; the product ranks and fuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kept import KeptEmbedder, KeptVectors
from measures import DEPTH
from numpy.typing import NDArray
from sets import Document, Question, name_chunk
from token_model import MEAN, Pooling
from variations import Compared, Variation, texts_of

from byheart.contracts import Background, Vectors
from byheart.contracts import Question as Asked
from byheart.embedding.vectorizer import Passage, passages
from byheart.index.array_search import ArraySearch
from byheart.index.selections import Selection
from byheart.index.view import Ranked, WordScores
from byheart.model import Filter
from byheart.search.ranking import FIRST_TIER, Ranking
from byheart.search.request import SearchRequest
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

Numbers = NDArray[np.int64]
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk of a store: its number, what is embedded of it, and what it counts for.

    That is its document, or itself where a set asks for chunks; and the conversation it is of.
    """

    chunk_no: int
    passage: Passage
    document: str
    group: str | None


@dataclass(frozen=True, slots=True)
class FilledStore:
    """A store that holds the documents of a set."""

    storage: SqliteStorage
    space: str
    places: Sequence[Place]


@contextmanager
def fill_store(
    path: Path, space: str, documents: Sequence[Document], kept: KeptVectors, in_chunks: bool
) -> Iterator[FilledStore]:
    """Save documents as `run` does, with vectors that are kept."""
    storage = SqliteStorage(path)
    with MemoryStore(storage, KeptEmbedder(kept), load_settings()) as store:
        items = [
            {"content": each.text, "title": each.title, "session_id": each.group, "space": space}
            for each in documents
        ]
        saved = store.save_many(items)
        places: list[Place] = []
        with storage.searching(space) as reader:
            for document, each in zip(documents, saved, strict=True):
                found = reader.chunks_of(each.memory_id, space)
                shown = passages([chunk.chunk for chunk in found], document.title)
                places += [
                    Place(
                        chunk.chunk_no, passage, _name(document, passage, in_chunks), document.group
                    )
                    for chunk, passage in zip(found, shown, strict=True)
                ]
        yield FilledStore(storage, space, sorted(places, key=lambda place: place.chunk_no))


def _name(document: Document, passage: Passage, in_chunks: bool) -> str:
    return name_chunk(document.name, passage.chunk.start_char) if in_chunks else document.name


class VectorRetriever:
    """Windows of all chunks of a store, and how a chunk is compared by them."""

    def __init__(
        self, places: Sequence[Place], windows: Sequence[Vectors], compared: Compared
    ) -> None:
        self._chunk_nos = np.array([each.chunk_no for each in places], np.int64)
        self._groups = np.array([each.group or "" for each in places])
        self._starts = np.cumsum([0, *(len(each) for each in windows[:-1])])
        self._counts = np.array([len(each) for each in windows])
        self._vectors = np.concatenate(windows)
        self._compared = compared
        self._last: tuple[bytes, str | None, tuple[Numbers, Figures]] | None = None

    def compare(self, question: Vectors, where: Filter) -> tuple[Numbers, Figures]:
        """Give the chunks within a conversation and their cosines, best of several questions."""
        key = (question.tobytes(), where.session_id)
        if self._last is None or self._last[:2] != key:
            self._last = (*key, self._compare(question, where.session_id))
        return self._last[2]

    def look_up(self, chunk_nos: Numbers) -> Figures:
        """Give the cosines of some chunks with the question that was compared last."""
        assert self._last is not None, "a question was compared"
        numbers, cosines = self._last[2]
        looked_up: Figures = cosines[np.searchsorted(numbers, chunk_nos)]
        return looked_up

    def _compare(self, question: Vectors, group: str | None) -> tuple[Numbers, Figures]:
        cosines = (self._vectors @ np.atleast_2d(question).T).max(axis=1).astype(np.float64)
        if self._compared == "mean":
            of_chunks = np.add.reduceat(cosines, self._starts) / self._counts
        else:
            of_chunks = np.maximum.reduceat(cosines, self._starts)
        if group is None:
            return self._chunk_nos, of_chunks
        inside = np.flatnonzero(self._groups == group)
        return self._chunk_nos[inside], of_chunks[inside]


def make_retriever(
    shown: FilledStore,
    words: FilledStore,
    how: Variation,
    kept: KeptVectors,
    poolings: Sequence[Pooling] = (MEAN,),
) -> VectorRetriever:
    """Embed the chunks that one store shows, for use beside the words of another or the same."""
    tokens = kept.model.embedder
    texts = [texts_of(each.passage, how, tokens) for each in shown.places]
    flat = kept.embed([text for some in texts for text in some], poolings)
    ends = np.cumsum([len(some) for some in texts])
    both = zip(shown.places, words.places, strict=True)
    assert all(one.document == other.document for one, other in both), "the same chunks"
    return VectorRetriever(words.places, np.split(flat, ends[:-1]), how.windows)


class OtherVectors(ArraySearch):
    """A store's index with another vector retriever; all else is the index's own."""

    def __init__(self, index: ArraySearch, retriever: VectorRetriever) -> None:
        self.__dict__.update(index.__dict__)
        self._retriever = retriever

    def _rank_by_vector(self, question: Asked, selection: Selection, depth: int) -> Ranked:
        """Rank all chunks by their cosines; nothing here is superseded."""
        del selection
        where = question.where
        numbers, cosines = self._retriever.compare(question.vector, where)
        order = np.lexsort((numbers, -cosines))[: 0 if where.superseded else depth]
        return Ranked(self._view.slots_of(numbers[order]), cosines[order])

    def _background(self, question: Asked, selection: Selection) -> Background:
        """Look at all chunks; the product looks at some hundreds, which is the same within .002."""
        del selection
        _, cosines = self._retriever.compare(question.vector, question.where)
        return Background(float(cosines.mean()), float(cosines.std()), len(cosines))

    def _figures(
        self, slots: Numbers, scored: WordScores | None, vector: Vectors | None, known: Ranked
    ) -> tuple[Figures, Figures]:
        """Look the cosines of some chunks up; all are of the question's conversation."""
        bm25, none = super()._figures(slots, scored, None, known)
        if vector is None:
            return bm25, none
        return bm25, self._retriever.look_up(self._view.chunks.chunk_nos.take(slots))


def rank_chunks(
    index: Any, space: str, question: Question, vector: Vectors, mode: Any
) -> Iterator[tuple[int, float]]:
    """Rank chunks as the product does that is asked for whole memories, with their scores."""
    where = Filter(space, session_id=question.group, include_global=question.group is None)
    request = SearchRequest(question.text, where, mode=mode)
    for fused in Ranking(request, index, vector, FIRST_TIER):
        yield fused.chunk_no, fused.score


def first_documents(
    ranked: Iterator[tuple[int, float]], documents: Mapping[int, str], count: int = DEPTH
) -> list[str]:
    """Name the first documents of a ranking of chunks."""
    found: dict[str, None] = {}
    for number, _ in ranked:
        found.setdefault(documents[number])
        if len(found) == count:
            break
    return list(found)
