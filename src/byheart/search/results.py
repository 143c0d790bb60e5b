"""Turn ranked chunks into results: passages, sections or whole memories."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from byheart.contracts import FoundChunk, Listing, Reader, Section, Vectors
from byheart.model import (
    HEADING_SEPARATOR,
    ChunkHit,
    Explanation,
    Hit,
    Judgement,
    Memory,
    MemoryFields,
    MemoryHit,
    NamedTime,
    RetrieverExplanation,
    SectionHit,
    section_of,
)
from byheart.model.workspaces import FILE_KIND
from byheart.search.damaged_store import contradiction
from byheart.search.ranked_rows import Fused
from byheart.search.ranking import FIRST_PASSAGES, FIRST_TIER, Ranking
from byheart.search.request import SearchRequest
from byheart.search.reranking import RerankedList, Reranking
from byheart.search.side_files import read_paths
from byheart.search.snippets import Snippet, make_snippet, make_snippets
from byheart.search.stale_files import describe_file
from byheart.search.verdict import judge

AUTO_MERGE_RATIO = 0.6
# The number of ranked chunks to read for each requested section or memory.
_CHUNKS_PER_SECTION, _CHUNKS_PER_MEMORY = 5, 20
_RANKED_PER_HIT = 3
_DIGITS = 6
# The similarity shown in a listing without a query, where nothing was compared.
SCOPED_SIMILARITY = 2.0

_MEMORY_FIELDS = tuple(each.name for each in fields(MemoryFields))
_get_fields = attrgetter(*_MEMORY_FIELDS)

Group = list[Fused]


class Found(NamedTuple):
    """Hold the hits of a page, whether more pages follow, the verdict, and the times named."""

    hits: list[Hit]
    more: bool
    judgement: Judgement
    times: tuple[NamedTime, ...] = ()
    # The reason why a reranker did not order the hits.
    not_reranked: str | None = None


def find(
    request: SearchRequest,
    reader: Reader,
    vector: Vectors | None,
    unrelated: float = 0.0,
    reranking: Reranking | None = None,
) -> Found:
    """Answer a request; `unrelated` is the cosine of texts that have nothing in common."""
    if not request.query:
        return _list_memories(request, reader)
    answer = _Answer(request, reader, vector, reranking)
    hits, more = {"fine": answer.passages, "medium": answer.sections, "coarse": answer.memories}[
        request.granularity
    ]()
    return Found(hits, more, answer.judge(unrelated), answer.times, answer.not_reranked)


def _read_texts(reader: Reader, ranked: Sequence[Fused]) -> list[str]:
    found = reader.chunks([each.chunk_no for each in ranked])
    return [each.chunk.content for each in found]


class _Answer:
    def __init__(
        self,
        request: SearchRequest,
        reader: Reader,
        vector: Vectors | None,
        reranking: Reranking | None,
    ) -> None:
        self._request = request
        self._reader = reader
        self._vector = vector
        self._ranking = Ranking(
            request, reader.index, vector, _depth(request), paths_of=read_paths(reader)
        )
        self._ranked = RerankedList(
            self._ranking,
            None if request.raw else reranking,
            request.query,
            # A method of this object would keep it, and the arrays of its view, until Python's
            # garbage collector looks for reference cycles.
            partial(_read_texts, reader),
        )

    @property
    def not_reranked(self) -> str | None:
        """Return why the reranker did not order the hits."""
        return self._ranked.failure

    @property
    def times(self) -> tuple[NamedTime, ...]:
        """Return the times that the question names."""
        return tuple(each.named for each in self._ranking.times)

    def judge(self, unrelated: float) -> Judgement:
        """Judge whether the best hit answers the question."""
        return judge(self._ranking, unrelated)

    def passages(self) -> tuple[list[Hit], bool]:
        """Return single chunks."""
        request = self._request
        page = list(islice(self._ranked, request.offset, request.offset + request.limit + 1))
        shown = page[: request.limit]
        chunks = self._reader.chunks([each.chunk_no for each in shown])
        snippets = self._snippets(chunks)
        hits = [
            ChunkHit(
                **_fields_of(found.memory),
                chunk_id=f"{found.memory.text_id}#{found.chunk.index}",
                chunk_index=found.chunk.index,
                chunk_content=found.chunk.content,
                chunk_type=found.chunk.chunk_type,
                header_path=found.chunk.header_path,
                level=found.chunk.level,
                start_line=found.chunk.start_line,
                end_line=found.chunk.end_line,
                similarity=fused.cosine,
                score=fused.score,
                snippet=snippet.text,
                snippet_marks=snippet.marks,
                explanation=self._explain(fused),
                **describe_file(found.file),
            )
            for fused, found, snippet in zip(shown, chunks, snippets, strict=True)
        ]
        return list(hits), len(page) > request.limit

    def sections(self) -> tuple[list[Hit], bool]:
        """Return whole sections, each once, in the order of their best chunks."""
        page, more = self._groups(self._sections_of, _CHUNKS_PER_SECTION)
        best = list(self._with_best(page))
        self._reader.prefetch(*(partial(self._section, *each) for each in best))
        return [self._section(*each) for each in best], more

    def _sections_of(self, ranked: Sequence[Fused]) -> list[Hashable]:
        headings = self._reader.headings([each.chunk_no for each in ranked])
        sections = map(section_of, headings)
        return [(each.memory_no, section) for each, section in zip(ranked, sections, strict=True)]

    def _section(self, group: Group, found: FoundChunk, snippet: Snippet) -> Hit:
        best = group[0]
        section = found.chunk.section
        chunks = self._reader.chunks_of(
            found.memory.text_id,
            self._request.where.space,
            # An H1 section is the text before its subsections, not the whole document.
            under=Section(section, below=bool(section) and section[-1].level >= 2),
        )
        if not chunks:
            raise contradiction(found.memory.text_id)
        ratio = len(group) / len(chunks)
        header = HEADING_SEPARATOR.join(each.title for each in section)
        damaged = any(each.memory.damaged for each in chunks)
        return SectionHit(
            **_fields_of(found.memory, damaged=damaged),
            section_header=header,
            section_content="".join(each.chunk.content for each in chunks),
            header_path=header,
            start_line=chunks[0].chunk.start_line,
            end_line=chunks[-1].chunk.end_line,
            chunks_in_section=len(chunks),
            matched_chunks=len(group),
            match_ratio=ratio,
            auto_merged=ratio >= AUTO_MERGE_RATIO,
            similarity=_mean(_cosines(group)),
            score=best.score,
            snippet=snippet.text,
            snippet_marks=snippet.marks,
            explanation=self._explain(best),
            **describe_file(found.file),
        )

    def memories(self) -> tuple[list[Hit], bool]:
        """Return whole memories, in the order of their best chunks."""
        page, more = self._groups(_owners, _CHUNKS_PER_MEMORY)
        best = list(self._with_best(page))
        self._reader.prefetch(*(partial(self._memory, *each) for each in best))
        return [self._memory(*each) for each in best], more

    def _memory(self, group: Group, found: FoundChunk, snippet: Snippet) -> Hit:
        best = group[0]
        memory = self._reader.memory(found.memory.text_id, self._request.where.space)
        if memory is None:  # impossible in an undamaged store, since one snapshot has both
            raise contradiction(found.memory.text_id)
        return MemoryHit(
            **_fields_of(found.memory, damaged=memory.damaged),
            content=memory.content,
            content_hash=memory.content_hash,
            entities=memory.entities,
            metadata=memory.metadata,
            matching_chunks=len(group),
            total_chunks=memory.chunks,
            similarity=max(_cosines(group), default=None),
            score=best.score,
            snippet=snippet.text,
            snippet_marks=snippet.marks,
            explanation=self._explain(best),
            **describe_file(found.file),
        )

    def _with_best(self, groups: Sequence[Group]) -> Iterator[tuple[Group, FoundChunk, Snippet]]:
        """Fetch the best chunk of each group, all in one read, and make its snippet."""
        best = self._reader.chunks([group[0].chunk_no for group in groups])
        return zip(groups, best, self._snippets(best), strict=True)

    def _groups(
        self, keys_of: Callable[[Sequence[Fused]], Sequence[Hashable]], chunks_per_group: int
    ) -> tuple[list[Group], bool]:
        """Gather ranked chunks until there are enough groups for a page, and one more.

        Matches are counted only among the first batch of chunks. Later chunks are read only to find
        new groups, so that the counts do not depend on how many batches are read.
        """
        end = self._request.offset + self._request.limit
        groups: dict[Hashable, Group] = {}
        ranked = iter(self._ranked)
        counting = True
        while batch := list(islice(ranked, end * chunks_per_group)):
            keys = keys_of(batch)
            for key, fused in zip(keys, batch, strict=True):
                if counting or key not in groups:
                    groups.setdefault(key, []).append(fused)
            if len(groups) > end:
                break
            counting = False
        return list(groups.values())[self._request.offset : end], len(groups) > end

    def _snippets(self, chunks: Sequence[FoundChunk]) -> list[Snippet]:
        vector = self._vector

        def find_nearest(at: int) -> float:
            if vector is None:
                return 0.0
            return self._reader.index.best_window(vector, chunks[at].chunk_no)

        texts = [found.chunk.content for found in chunks]
        return make_snippets(texts, self._sought, self._request.snippet_chars, find_nearest)

    @cached_property
    def _sought(self) -> frozenset[str]:
        """Return the terms to mark, always as the same object: lookups of words compare it."""
        return frozenset(self._ranking.terms)

    def _explain(self, fused: Fused) -> Explanation | None:
        if not self._request.explain:
            return None
        explained = {
            retriever: RetrieverExplanation(
                place.rank, place.score, place.contribution, self._terms(retriever, fused)
            )
            for retriever, place in fused.places.items()
        }
        return Explanation(
            self._ranking.method,
            fused.score,
            **explained,
            neighbours=fused.beside,
            form=round(fused.form, _DIGITS),
            feedback=round(fused.feedback, _DIGITS),
            time=round(fused.time, _DIGITS),
            time_alone=fused.time_alone,
            file=fused.file,
            reranker=self._ranked.explanations.get(fused.chunk_no),
        )

    def _terms(self, retriever: str, fused: Fused) -> dict[str, float]:
        if retriever != "fts":
            return {}
        return self._ranking.term_shares(fused)


def _depth(request: SearchRequest) -> int:
    """Return the depth of the first tier: at least three chunks for each one to be read.

    The depth depends on the limit, not the offset, so that pages of one size are slices of one
    list.
    """
    if request.granularity == "coarse":
        return max(FIRST_TIER, _RANKED_PER_HIT * request.limit)
    per_hit = _CHUNKS_PER_SECTION if request.granularity == "medium" else 1
    return max(FIRST_PASSAGES, _RANKED_PER_HIT * per_hit * request.limit)


def _list_memories(request: SearchRequest, reader: Reader) -> Found:
    listing = Listing(request.where, "iteration", request.limit, request.offset)
    memories, total = reader.memories(listing), reader.count(listing)
    of_files = [memory.memory_id for memory in memories if memory.kind == FILE_KIND]
    files = reader.indexed_files(of_files, request.where.space) if of_files else {}
    hits: list[Hit] = [
        MemoryHit(
            **_fields_of(memory),
            content=memory.content,
            content_hash=memory.content_hash,
            entities=memory.entities,
            metadata=memory.metadata,
            matching_chunks=0,
            total_chunks=memory.chunks,
            similarity=SCOPED_SIMILARITY,
            score=SCOPED_SIMILARITY,
            snippet=make_snippet(memory.content, (), request.snippet_chars).text,
            source_type="scoped",
            **describe_file(files.get(memory.memory_id)),
        )
        for memory in memories
    ]
    # A listing asks for all memories, so any memory answers it.
    judgement = Judgement("answered", 1.0) if total else Judgement("none", 0.0)
    return Found(hits, request.offset + len(memories) < total, judgement)


def _fields_of(memory: MemoryFields | Memory, *, damaged: bool | None = None) -> dict[str, Any]:
    """Return the fields that a hit shows; `damaged` applies to all of the hit's text."""
    shown = dict(zip(_MEMORY_FIELDS, _get_fields(memory), strict=True))
    return shown if damaged is None else {**shown, "damaged": damaged}


def _owners(ranked: Sequence[Fused]) -> list[Hashable]:
    return [each.memory_no for each in ranked]


def _cosines(group: Group) -> list[float]:
    return [each.cosine for each in group if each.cosine is not None]


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None
