"""MemoryStore: the front door. Each verb checks what it was given and sets the rooms to work."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from byheart import fields as check
from byheart.contracts import Embedder, PendingChunk, Storage
from byheart.errors import (
    ByheartError,
    EmbedderUnavailable,
    InvalidInput,
    NotFound,
    StoreError,
)
from byheart.identity import parse_chunk_id
from byheart.model import (
    GRANULARITIES,
    MODES,
    ChunkWindow,
    Filter,
    Finding,
    IndexState,
    Match,
    Memory,
    MemoryPage,
    Mode,
    SaveResult,
    SearchAnswer,
    Session,
    Status,
    WrittenFile,
)
from byheart.saving import Saver, SaveRequest, check_request
from byheart.search import SearchRequest, find
from byheart.settings import Settings
from byheart.upkeep import doctor
from byheart.upkeep.documents import write_document
from byheart.vectorizing import Vectorizer

# How much is chunked, embedded and committed at a time: large enough for full batches, small enough
# that an interrupted import loses seconds.
_BATCH_MEMORIES, _BATCH_CHARS = 64, 200_000
# How many waiting chunks a save embeds besides its own, once the provider is back.
_MADE_UP_PER_SAVE, _MADE_UP_PER_BATCH = 8, 256
# How often a long import brings the search index up to date.
_REFRESH_EVERY_CHUNKS = 20_000
_MATCHES: tuple[Match, ...] = ("any", "all")
_FUSIONS = ("rrf",)

Text = str | None
Moment = datetime | str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come."""

    memories: int
    chunks: int
    unchanged: int


class MemoryStore:
    """Save texts and get the right passages back. Safe to use from several threads."""

    def __init__(self, storage: Storage, embedder: Embedder, settings: Settings) -> None:
        self._storage = storage
        self._settings = settings
        self._vectorizer = Vectorizer(storage, embedder, settings.overlap_tokens)
        self._saver = Saver(storage, self._vectorizer, embedder, settings)
        self.space = settings.space

    # --- Saving -------------------------------------------------------------------------------

    def save(
        self,
        content: str,
        kind: str = "note",
        title: Text = None,
        summary: Text = None,
        source: str = "manual",
        session_id: Text = None,
        agent_id: Text = None,
        session_iter: int | str | None = None,
        task_code: Text = None,
        tags: Iterable[str] | None = None,
        entities: Iterable[str] | None = None,
        importance: float | None = None,
        ttl_days: float | None = None,
        expires_at: Moment = None,
        metadata: Mapping[str, Any] | None = None,
        space: Text = None,
        path: Text = None,
    ) -> SaveResult:
        """Save one text; the same text again in its space, session and kind changes nothing."""
        given = {name: value for name, value in locals().items() if name != "self"}
        [result] = self._saver.save([check_request(given, self._settings)])
        if result.status == "created" and not result.pending_vectors:
            # The memory is safe by now: trouble with older ones must not look like its own.
            with contextlib.suppress(StoreError):
                self._saver.make_up(_MADE_UP_PER_SAVE)
        return result

    def save_many(
        self,
        items: Iterable[Mapping[str, Any]],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> list[SaveResult]:
        """Save many texts, each with the fields of `save`, in batches that are kept one by one.

        A bad item stops the import: what came before it is saved, and saving the same items again
        goes on from there without doing anything twice.
        """
        results: list[SaveResult] = []
        chunks = unchanged = unrefreshed = 0
        for batch in self._batches(items):
            saved = self._saver.save(batch)
            results += saved
            chunks += sum(each.chunks for each in saved)
            unchanged += sum(each.status == "unchanged" for each in saved)
            unrefreshed += sum(each.chunks for each in saved if each.status == "created")
            if unrefreshed >= _REFRESH_EVERY_CHUNKS:
                self._storage.refresh()
                unrefreshed = 0
            if on_progress is not None:
                on_progress(Progress(len(results), chunks, unchanged))
        self._storage.refresh()
        return results

    def _batches(self, items: Iterable[Mapping[str, Any]]) -> Iterator[list[SaveRequest]]:
        batch: list[SaveRequest] = []
        chars = 0
        for number, item in enumerate(items):
            try:
                batch.append(check_request(item, self._settings))
            except ByheartError as error:
                yield batch
                error.message = f"item {number}: {error.message}"
                raise
            chars += len(batch[-1].content)
            if len(batch) >= _BATCH_MEMORIES or chars >= _BATCH_CHARS:
                yield batch
                batch, chars = [], 0
        yield batch

    def embed_pending(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Make every vector that is still missing; each batch is kept, so it can be interrupted."""
        made = 0
        last: list[PendingChunk] = []
        # No progress means that nothing can be made, unless another process was faster.
        while (first := self._storage.pending(1)) and first != last:
            count, reason = self._saver.make_up(_MADE_UP_PER_BATCH)
            if reason is not None:
                raise EmbedderUnavailable(f"vectors cannot be made now: {reason}")
            made, last = made + count, first
            if on_progress is not None:
                on_progress(made)
        self._storage.refresh()
        return made

    # --- Searching ----------------------------------------------------------------------------

    def search(
        self,
        query: Text = None,
        limit: int = 10,
        mode: str = "hybrid",
        granularity: str = "fine",
        kind: str | Sequence[str] | None = None,
        session_id: Text = None,
        include_global: bool = True,
        agent_id: Text = None,
        session_iter: int | str | None = None,
        task_code: Text = None,
        tags: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        match: str = "any",
        path: Text = None,
        min_importance: float | None = None,
        created_after: Moment = None,
        created_before: Moment = None,
        as_of: Moment = None,
        include_expired: bool = False,
        offset: int = 0,
        raw: bool = False,
        explain: bool = False,
        similarity_threshold: float | None = None,
        fusion: str = "rrf",
        source: Text = None,
        topK: int | None = None,  # noqa: N803 - the name callers of other systems use
        space: Text = None,
    ) -> SearchAnswer:
        """Find the passages, sections or memories that answer a query, best first.

        `source` is another name of `mode`, `topK` of `limit`. `similarity_threshold` is accepted
        and drops nothing: what is near enough differs from query to query.
        """
        started = time.perf_counter()
        given = {name: value for name, value in locals().items() if name != "self"}
        check.check_choice("fusion", fusion, _FUSIONS)
        request = self._request(
            given, limit if topK is None else topK, mode if source is None else source
        )
        vector, degraded = None, None
        if request.mode != "fts" and request.query:
            vector, degraded = self._vectorizer.query_vector(request.query)
            if vector is None:
                request = replace(request, mode="fts")
        with self._storage.searching() as reader:
            hits, more = find(request, reader, vector)
            state = reader.state(request.where.space)
        return SearchAnswer(
            query=request.query,
            mode=request.mode,
            granularity=request.granularity,
            results=tuple(hits),
            total_results=len(hits),
            has_more=more,
            degraded=degraded or _incomplete(request.mode, state),
            index=state,
            elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    def _request(self, given: Mapping[str, Any], limit: object, mode: object) -> SearchRequest:
        granularity = check.check_choice("granularity", given["granularity"], GRANULARITIES)
        query = given["query"]
        if query is not None and not isinstance(query, str):
            raise InvalidInput(f"query must be text, not {type(query).__name__}")
        # A lone surrogate cannot be stored, so nothing can match it: ask for the rest.
        text = (query or "").encode("utf-8", "replace").decode().strip()
        if not text and granularity != "coarse":
            raise InvalidInput(
                "the query is empty",
                "ask for something, or list memories with granularity=coarse or byheart list",
            )
        if len(text) > check.LONGEST_QUERY:
            raise InvalidInput(
                f"the query has {len(text):,} characters; at most {check.LONGEST_QUERY:,} are "
                "allowed"
            )
        return SearchRequest(
            query=text,
            where=self._filter(given),
            limit=check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            offset=check.check_int("offset", given["offset"], 0, check.LARGEST_OFFSET),
            mode=_raw_mode(mode) if given["raw"] else check.check_choice("mode", mode, MODES),
            granularity=granularity,
            raw=check.check_bool("raw", given["raw"]),
            explain=check.check_bool("explain", given["explain"]),
            snippet_chars=self._settings.snippet_chars,
        )

    def _filter(self, given: Mapping[str, Any]) -> Filter:
        return Filter(
            space=self._space(given["space"]),
            session_id=check.check_optional_label("session_id", given["session_id"]),
            include_global=check.check_bool("include_global", given["include_global"]),
            kind=check.check_kinds(given["kind"]),
            agent_id=check.check_optional_label("agent_id", given["agent_id"]),
            session_iter=check.check_session_iter(given["session_iter"]),
            task_code=check.check_optional_label("task_code", given["task_code"]),
            tags=check.check_labels("tags", given["tags"]),
            entities=check.check_labels("entities", given["entities"]),
            match=check.check_choice("match", given["match"], _MATCHES),
            path=check.check_optional_text("path", given["path"], check.LONGEST_PATH),
            min_importance=check.check_importance("min_importance", given["min_importance"]),
            created_after=check.check_moment("created_after", given["created_after"]),
            created_before=check.check_moment("created_before", given["created_before"]),
            as_of=check.check_moment("as_of", given["as_of"]),
            include_expired=check.check_bool("include_expired", given["include_expired"]),
        )

    def _space(self, space: object) -> str:
        return self.space if space is None else check.check_label("space", space)

    # --- Reading ------------------------------------------------------------------------------

    def get(self, memory_id: str, space: Text = None) -> Memory:
        """Fetch one memory whole, by its id or by the id of one of its chunks."""
        name = check.check_label("memory_id", memory_id)
        owner, index = parse_chunk_id(name) if "#" in name else (name, 0)
        with self._storage.reading() as reader:
            memory = reader.memory(owner, self._space(space))
        if memory is None or index >= memory.chunks:
            raise _not_found(name)
        return memory

    def reconstruct(self, memory_id: str, space: Text = None) -> str:
        """Give a memory's text back, byte for byte as it was saved."""
        return self.get(memory_id, space).content

    def write_to_file(
        self,
        memory_id: str,
        output_path: str | Path,
        include_metadata: bool = True,
        overwrite: bool = False,
        space: Text = None,
    ) -> WrittenFile:
        """Write a memory to a file, under front matter that names it unless told not to."""
        return write_document(self.get(memory_id, space), output_path, include_metadata, overwrite)

    def expand(self, chunk_id: str, around: int = 2, space: Text = None) -> ChunkWindow:
        """Show a chunk with its neighbours, as one stretch of the text."""
        check.check_int("around", around, 0, check.LARGEST_LIMIT)
        memory_id, index = parse_chunk_id(check.check_label("chunk_id", chunk_id))
        with self._storage.reading() as reader:
            found = reader.chunks_of(memory_id, self._space(space))
        if index >= len(found):
            raise _not_found(chunk_id)
        near = tuple(each.chunk for each in found[max(0, index - around) : index + around + 1])
        return ChunkWindow(
            memory_id=memory_id,
            chunk_id=chunk_id,
            target_chunk_index=index,
            context_window=around,
            chunks_returned=len(near),
            expanded_content="".join(chunk.content for chunk in near),
            chunks=near,
        )

    def list(
        self,
        limit: int = 20,
        offset: int = 0,
        kind: str | Sequence[str] | None = None,
        session_id: Text = None,
        include_global: bool = True,
        agent_id: Text = None,
        session_iter: int | str | None = None,
        task_code: Text = None,
        tags: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        match: str = "any",
        path: Text = None,
        min_importance: float | None = None,
        created_after: Moment = None,
        created_before: Moment = None,
        as_of: Moment = None,
        include_expired: bool = False,
        space: Text = None,
    ) -> MemoryPage:
        """List memories, latest iteration and latest first."""
        where = self._filter({name: value for name, value in locals().items() if name != "self"})
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        with self._storage.reading() as reader:
            memories, total = reader.memories(where, limit, offset)
        return MemoryPage(tuple(memories), total, offset + len(memories) < total)

    def sessions(
        self, agent_id: Text = None, limit: int = 20, offset: int = 0, space: Text = None
    ) -> tuple[Session, ...]:
        """List sessions by agent, the latest active first."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        agent = check.check_optional_label("agent_id", agent_id)
        with self._storage.reading() as reader:
            sessions, _ = reader.sessions(self._space(space), agent, limit, offset)
        return tuple(sessions)

    # --- Upkeep -------------------------------------------------------------------------------

    def status(self, space: Text = None) -> Status:
        """Describe the store: how much it holds, and what it cannot do at the moment."""
        status = self._storage.status(self._space(space))
        degraded = self._vectorizer.unavailable() or _incomplete("hybrid", status.index)
        if not status.writable:
            degraded = "; ".join(filter(None, ["the store can only be read", degraded]))
        return replace(status, degraded=degraded)

    def doctor(
        self, fix: bool = False, rebuild: bool = False, optimize: bool = False
    ) -> tuple[Finding, ...]:
        """Check the store and what it needs; mend what can be derived when asked to."""
        if rebuild:
            self._storage.rebuild()
        if optimize:
            self._storage.optimize()
        return doctor.examine(self._storage, self._vectorizer.unavailable(), self._mend(fix))

    def _mend(self, fix: bool) -> Callable[[], int] | None:
        return self.embed_pending if fix else None

    def close(self) -> None:
        """Release files and memory."""
        self._storage.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _raw_mode(mode: object) -> Mode:
    if check.check_choice("mode", mode, MODES) == "vector":
        raise InvalidInput("raw queries have no meaning for vectors", "use mode=fts")
    return "fts"


def _incomplete(mode: Mode, state: IndexState) -> str | None:
    if mode == "fts" or not state.pending_vectors:
        return None
    return (
        f"{state.pending_vectors:,} of {state.chunks:,} chunks have no vectors yet: "
        "make them with: byheart doctor --fix"
    )


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no {name} in this space", "look for it with: byheart search QUERY")
