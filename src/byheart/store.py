"""Offer all verbs in `MemoryStore`; each checks its arguments and calls the folder that does it."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

from byheart.contracts import Embedder, Storage
from byheart.conversation.context import LARGEST_TOP_K, Prompter, PromptRequest, Reminder
from byheart.conversation.sessions import Sessions
from byheart.conversation.turns import Recorder, check_logged, check_turn
from byheart.embedding.reembedding import Reembedder
from byheart.embedding.vectorizer import Asked, Reopen, Vectorizer
from byheart.errors import (
    Do,
    EmbedderUnavailable,
    EmbeddingError,
    Hint,
    InvalidInput,
    NotFound,
    Placeholder,
    StoreDamaged,
    StoreError,
    StoreFull,
    join_hints,
)
from byheart.memory.batches import Batcher, Progress
from byheart.memory.forgetting import Forgetter
from byheart.memory.references import find_passage, find_text, identify, locate
from byheart.memory.saving import Saver, check_saved
from byheart.memory.updating import Changer
from byheart.model import (
    FUSIONS,
    GRANULARITIES,
    MODES,
    ApiKey,
    Backup,
    Bench,
    ChunkHit,
    ChunkWindow,
    ContextAnswer,
    CreatedApiKey,
    Dedupe,
    Entity,
    EntityPage,
    Exported,
    Filter,
    Finding,
    Forgotten,
    HistoryEntry,
    Imported,
    Indexed,
    IndexProgress,
    IndexState,
    Memory,
    MemoryPage,
    Merged,
    Mode,
    Promoted,
    RecallAnswer,
    Reembedding,
    RestoredSession,
    ResumedSession,
    SaveResult,
    SearchAnswer,
    Session,
    SessionStats,
    SessionSummary,
    Stats,
    Status,
    Transcript,
    TransferProgress,
    Workspace,
    WrittenFile,
)
from byheart.model import checks as check
from byheart.model.fields import SAVE_FIELDS
from byheart.model.filters import filter_fields, make_filter
from byheart.model.ids import parse_chunk_id, parse_text_id
from byheart.model.requests import ChangedFields, ContextFilters, FilterFields
from byheart.search import RecallRequest, SearchRequest, Weights, find, recall
from byheart.settings import Settings
from byheart.system import clock
from byheart.transfer.documents import write_document
from byheart.upkeep import doctor, duplicates
from byheart.upkeep.api_keys import ApiKeyManager
from byheart.upkeep.usage_stats import Observer

if TYPE_CHECKING:
    from byheart.transfer.importing import Importer, OnError
    from byheart.workspace.indexing import Indexer

# The number of waiting chunks that are embedded and stored at a time.
_MADE_UP_PER_BATCH = 256
# The time that closing a store waits for a watch to end.
_LAST_LOOK_SECONDS = 10.0
# The number of similar memories that a save names.
_MOST_SIMILAR = 5

Text = str | None
Moment = datetime | str | None


class MemoryStore:
    """Save texts and get the right passages back. Safe to use from several threads."""

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder,
        settings: Settings,
        reopen: Reopen | None = None,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._vectorizer = Vectorizer(storage, embedder, settings.overlap_tokens, reopen)
        self._observer = Observer(
            storage.ledger,
            collecting=settings.collect_stats,
            slow_query_ms=settings.slow_query_ms,
            embedder=embedder,
        )
        self._vectorizer.on_embedded = self._observer.embedded
        storage.report_work(self._observer.indexed)
        self._saver = Saver(storage, self._vectorizer, settings)
        self._batcher = Batcher(storage, self._saver, self._observer, settings)
        self._changer = Changer(storage, self._saver, self._vectorizer, settings)
        self._recorder = Recorder(storage, self._saver, self._changer.update, settings)
        self._sessions = Sessions(storage, self._saver)
        self._prompter = Prompter(storage, self._vectorizer, settings)
        self._forgetter = Forgetter(
            storage, self._find_again, self._observer.clear_queries, settings.space
        )
        self._api_keys = ApiKeyManager(storage.api_keys)
        self._watches: dict[threading.Event, threading.Event] = {}
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
        origin: Text = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> SaveResult:
        """Save one text; the same text again in its space, session and kind changes nothing.

        A long text is stored, and found by its words, before its vectors are made. `on_progress` is
        called with their number; after an interruption, saving the text again makes the rest.
        """
        given = {name: value for name, value in locals().items() if name in SAVE_FIELDS}
        request = check_saved(given, self._settings)
        show = check.check_callback("on_progress", on_progress)
        [result] = self._saver.save([request], Progress().while_embedding(show))
        self._observer.saved(request.space, result.status)
        # The memory is already saved: an error in older memories must not look like its failure.
        with contextlib.suppress(StoreError):
            if result.status == "created" and not result.pending_vectors:
                result = self._with_similar(result, space)
            self._saver.prune()
        return result

    def _with_similar(self, result: SaveResult, space: Text) -> SaveResult:
        """Add the stored memories that say almost the same to the result."""
        if not self._settings.notice_similar:
            return result
        least = self._settings.similar_threshold
        with self._storage.searching() as reader:
            similar = reader.resembling(result.memory_id, self._space(space), least, _MOST_SIMILAR)
        return replace(result, similar=tuple(similar))

    def save_many(
        self,
        items: Iterable[Mapping[str, Any]],
        on_progress: Callable[[Progress], None] | None = None,
        check_first: bool = False,
    ) -> list[SaveResult]:
        """Save many texts, each with the fields of `save`, in batches that are kept one by one.

        A bad item stops the import: the items before it are saved, and saving the same items again
        continues from there without repeating any. With `check_first`, a bad item leaves nothing
        saved; all items are then held in memory.
        """
        batches = self._batcher.check(items, check_saved, check_first)
        show = check.check_callback("on_progress", on_progress)
        return self._batcher.keep(batches, self._saver.save, show)

    def embed_pending(
        self,
        on_progress: Callable[[int], None] | None = None,
        at_once: int = _MADE_UP_PER_BATCH,
    ) -> int:
        """Make every vector that is still missing; each batch is kept, so it can be interrupted.

        Texts that the embedder refused are skipped; `doctor(fix=True)` tries them again and lists
        the refused ones.
        """
        show = check.check_callback("on_progress", on_progress)
        count = check.check_int("at_once", at_once, 1, check.LARGEST_LIMIT)
        made, reason = self._saver.make_up_all(count, on_made=show)
        if reason is not None:
            raise EmbedderUnavailable(f"vectors cannot be made now: {reason}")
        self._storage.refresh()
        return made

    def count_pending(self) -> int:
        """Count the chunks that wait for their vectors, in all spaces."""
        return self._storage.count_pending()

    def _embed_waiting(self, show: Callable[[int, int], None]) -> str | None:
        """Make missing vectors as far as possible; return the reason if some are still missing."""
        waiting = self._storage.count_pending()
        try:
            if waiting:
                self.embed_pending(lambda made: show(made, waiting))
        except (EmbeddingError, StoreFull) as error:
            return error.message
        return None

    # --- Conversing ---------------------------------------------------------------------------

    def log(
        self,
        session_id: str,
        role: str,
        content: str,
        kind: str = "message",
        client_id: Text = None,
        agent_id: Text = None,
        session_iter: int | str | None = None,
        task_code: Text = None,
        title: Text = None,
        path: Text = None,
        tags: Iterable[str] | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: Moment = None,
        space: Text = None,
        origin: Text = None,
    ) -> SaveResult:
        """Record a turn of a session: what somebody said, what a tool put out, a file.

        The same words again are another turn; the same `client_id` again is the same turn.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        turn = check_logged(given, self._settings)
        [result] = self._recorder.keep([turn])
        self._observer.saved(turn.space, result.status)
        return result

    def log_many(
        self,
        items: Iterable[Mapping[str, Any]],
        on_progress: Callable[[Progress], None] | None = None,
        check_first: bool = False,
    ) -> list[SaveResult]:
        """Record many turns, each with the fields of `log`, in batches that are kept one by one.

        A bad item stops the import: the items before it are kept, or with `check_first` none. Turns
        with a `client_id` can be given again.
        """
        show = check.check_callback("on_progress", on_progress)
        batches = self._batcher.check(items, check_logged, check_first)
        kept = self._recorder.until_other_words(batches)
        sound = list(kept) if check_first else kept
        return self._batcher.keep(sound, self._recorder.keep, show)

    def transcript(
        self,
        session_id: str,
        limit: int = 100,
        offset: int = 0,
        latest: bool = False,
        role: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        space: Text = None,
    ) -> Transcript:
        """Give what was said in a session, oldest first; with `latest`, a page from the end."""
        where = Filter(
            self._space(space),
            session_id=check.check_label("session_id", session_id),
            include_global=False,
            kind=check.check_kinds(kind),
        )
        return self._recorder.transcript(
            where,
            check.check_roles(role),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            check.check_int("offset", offset, 0, check.LARGEST_OFFSET),
            latest=check.check_bool("latest", latest),
        )

    def summarize(
        self, session_id: str, text: Text = None, who: str = "manual", space: Text = None
    ) -> SessionSummary:
        """Set the running summary of a session; without a text, make it from what was said.

        A given summary stays until it is set again; one that was made grows with the session.
        """
        longest = self._settings.max_content_bytes
        return self._recorder.summarize(
            check.check_label("session_id", session_id),
            check.check_optional_text("text", text, longest),
            self._space(space),
            check.check_label("who", who),
        )

    def pin(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Have a memory stand first in every context that may see it, until `unpin`."""
        return self._pin(memory_id, who, space, pinned=True)

    def unpin(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Let a memory come into contexts like any other again."""
        return self._pin(memory_id, who, space, pinned=False)

    def _pin(self, memory_id: str, who: str, space: Text, *, pinned: bool) -> Memory:
        name = check.check_label("memory_id", memory_id)
        self._storage.pin(name, self._space(space), check.check_label("who", who), pinned=pinned)
        return self._read_whole(name, space)

    def context(
        self,
        session_id: str,
        query: Text = None,
        max_tokens: int = 2000,
        recent: int = 10,
        top_k: int = 8,
        include_global: bool = True,
        include_task: Text = None,
        mode: str = "hybrid",
        **filters: Unpack[ContextFilters],
    ) -> ContextAnswer:
        """Put together what goes into the prompt, within a token budget, with a receipt.

        The order is: identity files, the running summary and pinned memories; then memories that
        answer the query (by default the last user message); then the recent messages. The filters
        apply to the retrieved memories; with `include_task`, memories of other sessions with that
        task code are retrieved too.
        """
        started = time.perf_counter()
        given = {**filters, "session_id": session_id, "include_global": include_global}
        check.check_names(filters, tuple(ContextFilters.__annotations__), "filter")
        check.check_label("session_id", session_id)
        where = make_filter(given, self.space)
        task = check.check_optional_label("include_task", include_task)
        request = PromptRequest(
            where=where,
            also=None if task is None else replace(where, session_id=None, task_code=task),
            query=None if query is None else check.check_query(query) or None,
            mode=check.check_choice("mode", mode, MODES),
            max_tokens=check.check_int("max_tokens", max_tokens, 1, check.MOST_TOKENS),
            recent=check.check_int("recent", recent, 0, check.LARGEST_LIMIT),
            top_k=check.check_int("top_k", top_k, 0, LARGEST_TOP_K),
        )
        return self._prompted(request, started)

    def remind(
        self,
        session_id: str,
        query: str,
        max_tokens: int = 1000,
        top_k: int = 6,
        include_task: Text = None,
        mode: str = "hybrid",
        since: datetime | str | None = None,
        min_similarity: float = 0.3,
        max_chars: int = 10_000,
        **filters: Unpack[ContextFilters],
    ) -> ContextAnswer:
        """Put together what a session should know, though nobody asked for it.

        Unlike `context`, it gives only memories near the query (`min_similarity` as a cosine, or
        half of its words). It leaves out earlier turns that ask the same query, and everything that
        this session was given since the moment `since`, or ever.
        """
        started = time.perf_counter()
        check.check_names(filters, tuple(ContextFilters.__annotations__), "filter")
        check.check_label("session_id", session_id)
        where = make_filter({**filters, "session_id": session_id}, self.space)
        task = check.check_optional_label("include_task", include_task)
        self._storage.settle_emitted()
        request = PromptRequest(
            where=where,
            also=None if task is None else replace(where, session_id=None, task_code=task),
            query=check.check_query(query),
            mode=check.check_choice("mode", mode, MODES),
            max_tokens=check.check_int("max_tokens", max_tokens, 1, check.MOST_TOKENS),
            recent=0,
            top_k=check.check_int("top_k", top_k, 0, LARGEST_TOP_K),
            reminder=Reminder(
                since=check.check_moment("since", since),
                least_similarity=check.check_number("min_similarity", min_similarity, 0, 1),
                max_chars=check.check_int("max_chars", max_chars, 1, check.MOST_TOKENS),
            ),
        )
        return self._prompted(request, started)

    def _prompted(self, request: PromptRequest, started: float) -> ContextAnswer:
        answer, state = self._prompter.context(request)
        elapsed_ms = (time.perf_counter() - started) * 1000
        self._observer.searched(request.where.space, "context", answer.query, elapsed_ms)
        degraded = self._degraded(answer.degraded, answer.mode, state)
        return replace(answer, degraded=degraded, elapsed_ms=round(elapsed_ms, 3))

    # --- Changing -----------------------------------------------------------------------------

    def update(
        self,
        memory_id: str,
        expected_version: int | None = None,
        who: str = "manual",
        space: Text = None,
        **fields: Unpack[ChangedFields],
    ) -> SaveResult:
        """Change the fields given and leave the rest; the text that was stays in the history.

        With `expected_version`, the change is refused if another change was made since.
        """
        if expected_version is not None:
            check.check_int("expected_version", expected_version, 1, check.LARGEST_VERSION)
        name = check.check_label("memory_id", memory_id)
        author = check.check_label("who", who)
        result = self._changer.update(name, self._space(space), fields, expected_version, author)
        self._observer.saved(self._space(space), result.status)
        return result

    def history(self, memory_id: str, space: Text = None) -> tuple[HistoryEntry, ...]:
        """Tell what happened to a memory, oldest first: who, when, from and to."""
        name = check.check_label("memory_id", memory_id)
        with self._storage.reading() as reader:
            entries = reader.history(name, self._space(space))
        if not entries:
            raise _not_found(name)
        return tuple(entries)

    def supersede(
        self,
        memory_id: str,
        by: Text = None,
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Memory:
        """Say that another memory holds instead of this one; without `by`, that it holds again."""
        name = check.check_label("memory_id", memory_id)
        self._storage.supersede(
            name,
            check.check_optional_label("by", by),
            self._space(space),
            check.check_label("who", who),
            check.check_optional_text("reason", reason, check.LONGEST_SUMMARY),
        )
        return self._read_whole(name, space)

    def forget(
        self,
        memory_id: str | Sequence[str] | None = None,
        reason: Text = None,
        hard: bool = False,
        dry_run: bool | None = None,
        older_than: float | str | None = None,
        who: str = "manual",
        **filters: Unpack[FilterFields],
    ) -> Forgotten:
        """Hide memories everywhere, until `restore`; with `hard`, take every trace of them out.

        By id, memories are forgotten at once. By filter, the call is a dry run that counts, unless
        `dry_run=False`.
        """
        return self._forgetter.forget(
            check.check_ids("memory_id", memory_id),
            filters,
            older_than,
            hard=check.check_bool("hard", hard),
            dry_run=None if dry_run is None else check.check_bool("dry_run", dry_run),
            who=check.check_label("who", who),
            reason=check.check_optional_text("reason", reason, check.LONGEST_SUMMARY),
        )

    def restore(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Show a memory again that was forgotten, unless it was forgotten for good."""
        name = check.check_label("memory_id", memory_id)
        self._storage.restore(name, self._space(space), check.check_label("who", who))
        return self._read_whole(name, space)

    def cleanup(
        self,
        days_old: float = 90,
        dry_run: bool = True,
        hard: bool = False,
        who: str = "cleanup",
        **filters: Unpack[FilterFields],
    ) -> Forgotten:
        """Forget what was neither changed nor recalled for so many days, and what has expired."""
        return self._forgetter.cleanup(
            days_old,
            filters,
            hard=check.check_bool("hard", hard),
            dry_run=check.check_bool("dry_run", dry_run),
            who=check.check_label("who", who),
        )

    def dedupe(
        self,
        threshold: float = 0.95,
        limit: int = 20,
        apply: bool = False,
        who: str = "dedupe",
        **filters: Unpack[FilterFields],
    ) -> Dedupe:
        """Propose which memories of the same kind and session to merge; with `apply`, merge them.

        Pairs whose names, numbers or negations differ are left out, however near they are.
        """
        where = self._filter(filters)
        if where.as_of is not None:
            raise InvalidInput("as_of is not allowed: what was cannot be merged")
        return duplicates.dedupe(
            self._storage,
            replace(where, superseded=False),
            check.check_number("threshold", threshold, check.LEAST_THRESHOLD, 1),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            apply=check.check_bool("apply", apply),
            who=check.check_label("who", who),
        )

    def merge(
        self,
        keep: str,
        others: str | Sequence[str],
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Merged:
        """Keep one memory for several: it gets their tags, entities and accesses, they are hidden.

        `restore` brings back each of the others.
        """
        name = check.check_label("keep", keep)
        ids = check.check_labels("others", [others] if isinstance(others, str) else others)
        if not ids or name in ids:
            raise InvalidInput(
                "others are missing" if not ids else f"{name} cannot be merged into itself",
                "name the memory to keep, then those to be merged into it",
            )
        return self._storage.merge(
            name,
            ids,
            self._space(space),
            check.check_label("who", who),
            check.check_optional_text("reason", reason, check.LONGEST_SUMMARY),
        )

    # --- Entities -----------------------------------------------------------------------------

    def entities(
        self, prefix: Text = None, limit: int = 100, offset: int = 0, space: Text = None
    ) -> EntityPage:
        """List the entities that memories name, the most used first."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        begins = check.check_optional_label("prefix", prefix)
        with self._storage.reading() as reader:
            found, total = reader.entities(self._space(space), begins, limit, offset)
        return EntityPage(tuple(found), total, offset + len(found) < total)

    def rename_entity(self, name: str, new_name: str, space: Text = None) -> Entity:
        """Give an entity another name; the old spelling goes on meaning it."""
        return self._storage.rename_entity(
            check.check_label("name", name),
            check.check_label("new_name", new_name),
            self._space(space),
        )

    def merge_entities(self, names: str | Sequence[str], into: str, space: Text = None) -> Entity:
        """Make one entity of several; the old spellings go on meaning it."""
        given = check.check_labels("names", [names] if isinstance(names, str) else names)
        if not given:
            raise InvalidInput("names are missing", "name the entities to be merged")
        target = check.check_label("into", into)
        return self._storage.merge_entities(given, target, self._space(space))

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
        fusion: str = "evidence",
        source: Text = None,
        topK: int | None = None,  # noqa: N803 - the name callers of other systems use
        space: Text = None,
        origin: str | Sequence[str] | None = None,
    ) -> SearchAnswer:
        """Find the passages, sections or memories that answer a query, best first.

        `source` is another name of `mode`, `topK` of `limit`. `similarity_threshold` is accepted
        and drops nothing, because the cosine of a good answer differs from query to query.
        """
        started = time.perf_counter()
        given = {name: value for name, value in locals().items() if name != "self"}
        # Check also values that are overruled by another name, or not used.
        check.check_choice("mode", mode, MODES)
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        if similarity_threshold is not None:
            check.check_number("similarity_threshold", similarity_threshold, -1, 1)
        request = self._request(
            given, limit if topK is None else topK, mode if source is None else source
        )
        with self._asking(request) as (request, asked):
            hits, more, judgement = find(request, asked.reader, asked.vector, asked.unrelated)
            state = asked.reader.index.state(
                request.where.space,
                request.where.session_id,
                include_global=request.where.include_global,
            )
        if request.query:
            given_out = [hit.chunk_id if isinstance(hit, ChunkHit) else hit.text_id for hit in hits]
            self._storage.note_emitted(given_out, request.where.space, request.where.session_id)
        elapsed_ms = (time.perf_counter() - started) * 1000
        looked = f"{request.mode if request.query else 'listing'}/{request.granularity}"
        self._observer.searched(request.where.space, looked, request.query, elapsed_ms)
        return SearchAnswer(
            query=request.query,
            mode=request.mode,
            granularity=request.granularity,
            results=tuple(hits),
            total_results=len(hits),
            has_more=more,
            # A listing needs no vectors.
            degraded=self._degraded(
                asked.degraded, request.mode if request.query else "fts", state
            ),
            index=state,
            elapsed_ms=round(elapsed_ms, 3),
            verdict=judgement.verdict,
            confidence=judgement.confidence,
            remark=asked.remark,
            grounds=judgement.grounds if request.explain else None,
        )

    def recall(
        self,
        query: str,
        max_tokens: int = 1000,
        limit: int = 20,
        offset: int = 0,
        mode: str = "hybrid",
        explain: bool = False,
        **filters: Unpack[FilterFields],
    ) -> RecallAnswer:
        """Bring the memories that matter most for a query, within a token budget.

        They are weighed by relevance, importance, recency and frequency; the filters are those of
        `search`. Memories returned in full count as accessed, unless `as_of` is given.
        """
        started = time.perf_counter()
        question = SearchRequest(
            query=check.check_query(query),
            where=make_filter(filters, self.space),
            limit=check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            offset=check.check_int("offset", offset, 0, check.LARGEST_OFFSET),
            mode=check.check_choice("mode", mode, MODES),
            explain=check.check_bool("explain", explain),
        )
        if not question.query:
            raise InvalidInput("the query is empty", "say what is to be recalled")
        check.check_int("max_tokens", max_tokens, 1, check.MOST_TOKENS)
        request = RecallRequest(question, max_tokens, Weights(*self._settings.recall_weights))
        # Load the token counter before the view is opened.
        tokens = self._vectorizer.tokens()
        tokens.token_starts(question.query)
        with self._asking(question) as (question, asked):
            request = replace(request, question=question)
            now = clock.now()
            answer = recall(request, asked.reader, asked.vector, tokens, now, asked.unrelated)
            state = asked.reader.index.state(
                question.where.space,
                question.where.session_id,
                include_global=question.where.include_global,
            )
        if question.where.as_of is None and answer.details:
            given = [each.id for each in answer.details]
            self._storage.count_accesses(given, question.where.space)
            self._storage.note_emitted(given, question.where.space, question.where.session_id)
        elapsed_ms = (time.perf_counter() - started) * 1000
        self._observer.searched(question.where.space, "recall", question.query, elapsed_ms)
        degraded = self._degraded(asked.degraded, question.mode, state)
        remark = join_hints("; ", (asked.remark, answer.remark))
        return replace(answer, degraded=degraded, remark=remark)

    @contextlib.contextmanager
    def _asking(
        self, request: SearchRequest, *, remember: bool = True
    ) -> Iterator[tuple[SearchRequest, Asked]]:
        """Open the store with the vector of a question, or for a search by keywords without one."""
        wants_vector = request.mode != "fts" and bool(request.query)
        question = request.query if wants_vector else None
        with self._vectorizer.asking(question, remember=remember) as asked:
            if wants_vector and asked.vector is None:
                request = replace(request, mode="fts")
            yield request, asked

    def _request(self, given: Mapping[str, Any], limit: object, mode: object) -> SearchRequest:
        granularity = check.check_choice("granularity", given["granularity"], GRANULARITIES)
        text = check.check_query(given["query"])
        if not text and granularity != "coarse":
            raise InvalidInput(
                "the query is empty",
                Hint("ask for something, or list memories with: ", Do("list")),
            )
        return SearchRequest(
            query=text,
            where=self._filter(given),
            limit=check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            offset=check.check_int("offset", given["offset"], 0, check.LARGEST_OFFSET),
            mode=_raw_mode(mode) if given["raw"] else check.check_choice("mode", mode, MODES),
            fusion=check.check_choice("fusion", given["fusion"], FUSIONS),
            granularity=granularity,
            raw=check.check_bool("raw", given["raw"]),
            explain=check.check_bool("explain", given["explain"]),
            snippet_chars=self._settings.snippet_chars,
        )

    def _filter(self, given: Mapping[str, Any]) -> Filter:
        return make_filter(filter_fields(given), self.space)

    def _find_again(self, text: str, space: str) -> list[str]:
        """Search for a removed text in every mode, as if it were still stored.

        No user asked this query: it is not counted, and its text is not kept as a slow query.
        """
        found: list[str] = []
        where = Filter(space, include_expired=True)
        for mode in MODES:
            with self._asking(SearchRequest(text, where, mode=mode)) as (request, asked):
                hits = find(request, asked.reader, asked.vector).hits
            found += (hit.memory_id for hit in hits)
        return found

    def _space(self, space: object) -> str:
        return self.space if space is None else check.check_label("space", space)

    # --- Reading ------------------------------------------------------------------------------

    def note_shown(
        self, memory_id: str | Sequence[str], session_id: Text = None, space: Text = None
    ) -> None:
        """Note memories that you put into a prompt, so that a reply that repeats them is known.

        `context`, `recall`, `search` and `resume` note the memories that they return.
        """
        names = check.check_ids("memory_id", memory_id)
        for name in names:
            if "#" in name:
                parse_chunk_id(name)
        session = check.check_optional_label("session_id", session_id)
        self._storage.note_emitted(names, self._space(space), session)

    def get(self, memory_id: str, space: Text = None) -> Memory:
        """Fetch one memory whole, by its id, the id of one of its chunks, or a file's path."""
        memory = self._read_whole(memory_id, space)
        if memory.damaged:
            raise _damaged(memory.memory_id)
        return memory

    def _read_whole(self, memory_id: str, space: Text) -> Memory:
        name = check.check_name("memory_id", memory_id)
        with self._storage.reading() as reader:
            located = locate(reader, name, self._space(space))
            if located is not None:
                name = located.memory_id
                if located.line is not None:
                    find_passage(reader.chunks_of(name, self._space(space)), located)
            owner, index = parse_chunk_id(name) if "#" in name else (name, 0)
            memory = reader.memory(owner, self._space(space))
            current = parse_text_id(owner)[0]
            forgotten_at = reader.forgotten_at(current, self._space(space))
        if forgotten_at is not None:
            raise NotFound(
                f"{current} was forgotten on {forgotten_at:%Y-%m-%d}",
                Hint("bring it back with: ", Do("restore", current)),
            )
        if memory is None or index >= max(1, memory.chunks):  # an empty turn has no chunks
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
        check.check_bool("include_metadata", include_metadata)
        check.check_bool("overwrite", overwrite)
        path = check.check_path("output_path", output_path)
        return write_document(self.get(memory_id, space), path, include_metadata, overwrite)

    def sessions_of(self, memory_ids: Sequence[str], space: Text = None) -> dict[str, str | None]:
        """Name the session of each memory, text, chunk or file; leave out unknown names."""
        names = check.check_ids("memory_ids", memory_ids)
        with self._storage.reading() as reader:
            texts = {name: find_text(reader, name, self._space(space)) for name in names}
            found = reader.sessions_of(list(texts.values()), self._space(space))
        return {name: found[text] for name, text in texts.items() if text in found}

    def identify(
        self, memory_id: str, sessions: Collection[str | None], space: Text = None
    ) -> str | None:
        """Resolve a name or path to the id of its memory, if the memory is in the given sessions.

        Reading by that id reads the same memory, even if another file takes the path meanwhile.
        """
        name = check.check_name("memory_id", memory_id)
        wanted = check.check_sessions("sessions", sessions)
        with self._storage.reading() as reader:
            return identify(reader, name, self._space(space), wanted)

    def expand(self, chunk_id: str, around: int = 2, space: Text = None) -> ChunkWindow:
        """Show a chunk, or the one at `PATH:LINE`, with its neighbours, as one stretch of text."""
        check.check_int("around", around, 0, check.LARGEST_LIMIT)
        name = check.check_name("chunk_id", chunk_id)
        with self._storage.reading() as reader:
            located = locate(reader, name, self._space(space))
            if located is None and "#" not in name and ":" in name:
                raise NotFound(
                    f"no file {name} is in this space",
                    Hint("look with: ", Do("list", kind="file")),
                )
            if located is not None:
                memory_id = located.memory_id
                index = find_passage(reader.chunks_of(memory_id, self._space(space)), located)
                chunk_id = f"{memory_id}#{index}"
            else:
                memory_id, index = parse_chunk_id(name)
            part = range(index - around, index + around + 1)
            found = reader.chunks_of(memory_id, self._space(space), part)
        near = tuple(each.chunk for each in found)
        if all(chunk.index != index for chunk in near):
            raise _not_found(chunk_id)
        if any(each.memory.damaged for each in found):
            raise _damaged(memory_id)
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
        forgotten: bool = False,
        space: Text = None,
        origin: str | Sequence[str] | None = None,
    ) -> MemoryPage:
        """List memories, the latest first; with `forgotten`, those to restore.

        Within a session, the latest iteration comes first.
        """
        where = self._filter({name: value for name, value in locals().items() if name != "self"})
        where = replace(where, forgotten=check.check_bool("forgotten", forgotten))
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        with self._storage.reading() as reader:
            memories, total = reader.memories(
                where, limit, offset, by_iteration=where.session_id is not None
            )
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

    def session_stats(self, session_id: Text = None, space: Text = None) -> SessionStats:
        """Count what a session holds, or all sessions together."""
        name = check.check_optional_label("session_id", session_id)
        return self._sessions.stats(name, self._space(space))

    def resume(
        self,
        session_id: str,
        task_code: Text = None,
        agent_id: Text = None,
        limit: int = 5,
        space: Text = None,
    ) -> ResumedSession:
        """Gather what a session left to go on with: summary, context, prompts, reports, work.

        With a task, memories of other tasks are left out.
        """
        return self._sessions.resume(
            check.check_label("session_id", session_id),
            check.check_optional_label("task_code", task_code),
            check.check_optional_label("agent_id", agent_id),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            self._space(space),
        )

    def promote(
        self,
        session_id: Text = None,
        memory_id: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        dry_run: bool = False,
        who: str = "manual",
        space: Text = None,
    ) -> Promoted:
        """Copy a session's memories, or those named, to what is global.

        By default, only lasting memories are copied: no turns, summaries or work in progress.
        """
        return self._sessions.promote(
            check.check_optional_label("session_id", session_id),
            check.check_ids("memory_id", memory_id),
            check.check_kinds(kind),
            self._space(space),
            check.check_label("who", who),
            dry_run=check.check_bool("dry_run", dry_run),
        )

    def forget_session(
        self,
        session_id: str,
        hard: bool = False,
        dry_run: bool = True,
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Forgotten:
        """Hide a session with everything in it, until `restore_session`; `hard` is for good.

        The call is a dry run that counts, unless `dry_run=False`.
        """
        name = check.check_label("session_id", session_id)
        done = self.forget(
            reason=reason, hard=hard, dry_run=dry_run, who=who, session_id=name, space=space
        )
        if not done.dry_run:
            self._storage.forget_emitted(self._space(space), name)
        return done

    def restore_session(
        self, session_id: str, who: str = "manual", space: Text = None
    ) -> RestoredSession:
        """Show again what was forgotten last of a session, all that went at one time."""
        name, where = check.check_label("session_id", session_id), self._space(space)
        restored = self._storage.restore_session(name, where, check.check_label("who", who))
        return RestoredSession(name, tuple(restored), len(restored))

    # --- Moving -------------------------------------------------------------------------------

    def export(
        self,
        path_or_file: str | Path | BinaryIO,
        vectors: bool = False,
        format: str = "jsonl",
        all_spaces: bool = False,
        overwrite: bool = False,
        on_progress: Callable[[TransferProgress], None] | None = None,
        space: Text = None,
    ) -> Exported:
        """Write a space, or all of them, to a JSONL file, or to a folder of Markdown for people."""
        # Imported here, because saving and searching do not need the export.
        from byheart.transfer.exporting import FORMATS, export

        check.check_callback("on_progress", on_progress)
        self._refuse_itself(path_or_file)
        chosen = None if check.check_bool("all_spaces", all_spaces) else self._space(space)
        if chosen is None and space is not None:
            raise InvalidInput("space and all_spaces were both given", "give one of them")
        with self._storage.dumping(chosen, vectors=check.check_bool("vectors", vectors)) as dump:
            return export(
                dump,
                path_or_file,
                format=check.check_choice("format", format, FORMATS),
                vectors=vectors,
                all_spaces=all_spaces,
                overwrite=check.check_bool("overwrite", overwrite),
                on_progress=on_progress,
            )

    def import_(
        self,
        path_or_file: str | Path | BinaryIO,
        on_error: str = "stop",
        force: bool = False,
        format: Text = None,
        embed: bool = True,
        dry_run: bool = False,
        on_progress: Callable[[TransferProgress], None] | None = None,
    ) -> Imported:
        """Take in an export, lines with the fields of `save`, Markdown, or files of other programs.

        `format` is detected from the content: see docs/importing.md. A `dry_run` only counts.
        An unreadable item stops the import or is skipped and listed, as `on_error` says. After an
        interruption, importing again continues. Texts that were forgotten for good are left out,
        unless `force` is set.
        """
        # Imported here, because saving and searching do not need the import.
        from byheart.transfer.importing import IMPORT_FORMATS, ON_ERROR

        check.check_callback("on_progress", on_progress)
        self._refuse_itself(path_or_file)
        importer = self._importer(
            force=check.check_bool("force", force),
            on_error=check.check_choice("on_error", on_error, ON_ERROR),
            on_progress=on_progress,
            dry_run=check.check_bool("dry_run", dry_run),
        )
        chosen = None if format is None else check.check_choice("format", format, IMPORT_FORMATS)
        check.check_bool("embed", embed)
        result = importer.run(path_or_file, chosen)
        if dry_run:
            return result
        self._observe(result)

        def show(made: int, waiting: int) -> None:
            if on_progress is not None:
                on_progress(TransferProgress(importer.progress.memories, made, waiting, made))

        reason = self._embed_waiting(show) if embed else None
        return replace(result, pending_vectors=self._storage.count_pending(), degraded=reason)

    def follow(self, path: str | Path, format: str = "claude-code") -> Imported:
        """Import the lines that were added to a transcript since it was last followed.

        Unreadable lines are skipped and listed. `embed_pending` makes the vectors later.
        """
        from byheart.transfer.importing import GROWING

        chosen = check.check_choice("format", format, GROWING)
        self._refuse_itself(path)
        importer = self._importer(on_error="skip")
        result = importer.go_on(check.check_path("path", path).absolute(), chosen)
        self._observe(result)
        return replace(result, pending_vectors=self._storage.count_pending())

    def _importer(
        self,
        *,
        on_error: OnError,
        force: bool = False,
        on_progress: Callable[[TransferProgress], None] | None = None,
        dry_run: bool = False,
    ) -> Importer:
        from byheart.transfer.importing import Importer

        return Importer(
            self._storage,
            self._saver,
            self._changer.update,
            self._settings,
            check_turn=check_turn,
            keep_turns=self._recorder.keep,
            force=force,
            on_error=on_error,
            on_progress=on_progress,
            dry_run=dry_run,
        )

    def _observe(self, imported: Imported) -> None:
        self._observer.saved(self.space, "created", imported.imported)
        self._observer.saved(self.space, "unchanged", imported.unchanged)
        self._observer.saved(self.space, "updated", imported.updated)

    def backup(self, path: str | Path, overwrite: bool = False) -> Backup:
        """Copy the whole store to one file, as it is at this moment, while it is in use."""
        from byheart.transfer.whole_files import refuse_existing

        target = check.check_path("path", path).resolve()
        check.check_text("path", str(target), longest=1 << 16)  # SQLite names files in UTF-8
        refuse_existing(target, check.check_bool("overwrite", overwrite))
        self._refuse_itself(target)
        self._storage.back_up(target)
        return Backup(str(target), target.stat().st_size)

    def _refuse_itself(self, path_or_file: str | Path | BinaryIO) -> None:
        """Refuse a path that is the store's own file under any name.

        Writing would replace the store, and opening the file beside SQLite would drop its locks.
        """
        if isinstance(path_or_file, io.TextIOBase):
            raise InvalidInput("a stream of text was given", "open the file in binary mode")
        if not hasattr(path_or_file, "read") and not hasattr(path_or_file, "write"):
            path, store = check.check_path("path", path_or_file), Path(self._storage.location)
            if path.exists() and store.exists() and path.samefile(store):
                raise InvalidInput(f"{path} is the store itself", "choose another name")

    # --- Workspaces ---------------------------------------------------------------------------

    def index(
        self,
        path: str | Path,
        prune: bool = False,
        embed: bool = True,
        on_progress: Callable[[IndexProgress], None] | None = None,
        space: Text = None,
    ) -> Indexed:
        """Turn the files of a folder into memories; the next time, read only changed files.

        A path within a workspace means that part of it. The memories of missing files are removed;
        if all files are missing, only with `prune`.
        """
        started = time.perf_counter()
        check.check_callback("on_progress", on_progress)
        indexer = self._indexer()
        place = indexer.find(path, self._space(space))
        result = indexer.index(place, check.check_bool("prune", prune), on_progress)
        self._observer.saved(place.space, "created", result.files_indexed)
        self._storage.refresh()

        def show(made: int, waiting: int) -> None:
            if on_progress is not None:
                files = result.files_indexed
                on_progress(IndexProgress(files, files, result.chunks, made, waiting))

        reason = self._embed_waiting(show) if check.check_bool("embed", embed) else None
        return replace(
            result,
            pending_vectors=self._storage.count_pending(),
            degraded=reason,
            elapsed_ms=(time.perf_counter() - started) * 1000,
        )

    def watch(
        self,
        path: str | Path,
        stop: threading.Event | None = None,
        on_indexed: Callable[[Indexed], None] | None = None,
        space: Text = None,
        on_turn: Callable[[str | None], None] | None = None,
    ) -> None:
        """Index a folder and keep it up to date until `stop` is set; only one process does so.

        `on_turn` is called with the name of the watching process while this process stands by, and
        with `None` when this process begins to watch.
        """
        # Imported here, because watching needs a library that few processes use.
        from byheart.workspace.watcher import Watcher

        check.check_callback("on_indexed", on_indexed)
        check.check_callback("on_turn", on_turn)
        indexer = self._indexer()
        place = replace(indexer.find(path, self._space(space)), below="")
        watcher = Watcher(self._storage, indexer, self._saver, place, on_indexed, on_turn)
        stop = threading.Event() if stop is None else stop
        self._watches[stop] = ended = threading.Event()
        try:
            watcher.run(stop)
        finally:
            ended.set()
            del self._watches[stop]

    def _indexer(self) -> Indexer:
        # Imported here, because saving and searching do not need the readers of files.
        from byheart.workspace.indexing import Indexer

        return Indexer(self._storage, self._saver, self._vectorizer, self._settings)

    def workspaces(self, space: Text = None) -> tuple[Workspace, ...]:
        """List the folders whose files are memories, and the process that watches each."""
        return tuple(self._storage.workspaces.roots(self._space(space)))

    def drop_workspace(self, path: str | Path, space: Text = None) -> int:
        """Remove a workspace; forget its memories, which can be restored, and count them."""
        place = self._indexer().find(path, self._space(space), add=False)
        if place.below:
            raise InvalidInput(
                f"{path} is only a part of the workspace {place.root}", f"name {place.root}"
            )
        return self._storage.workspaces.drop(place.workspace_no)

    # --- API keys -----------------------------------------------------------------------------

    def create_token(
        self,
        name: str,
        access: str = "write",
        session_id: Text = None,
        ttl_days: float | None = None,
        space: Text = None,
    ) -> CreatedApiKey:
        """Create an API key for network access to one space; its secret is shown only this once."""
        return self._api_keys.create(name, access, self._space(space), session_id, ttl_days)

    def tokens(self, space: Text = None) -> tuple[ApiKey, ...]:
        """List the API keys of all spaces, or of one, oldest first, including expired ones."""
        chosen = check.check_optional_label("space", space)
        return tuple(self._storage.api_keys.list(chosen))

    def revoke_token(self, token: str) -> ApiKey:
        """Revoke an API key by its id, name or secret; every process refuses it from now on."""
        return self._api_keys.revoke(token)

    def check_token(self, secret: str) -> ApiKey | None:
        """Find the API key of a secret; give `None` if it is unknown, revoked or expired."""
        return self._api_keys.check(secret)

    # --- Upkeep -------------------------------------------------------------------------------

    def status(self, space: Text = None) -> Status:
        """Describe the store: how much it holds, and what it cannot do at the moment."""
        status = self._storage.status(self._space(space))
        return replace(
            status,
            degraded=self._degraded(self._vectorizer.unavailable(), "hybrid", status.index),
            wanted_model=self._vectorizer.wanted_name(),
            remark=self._vectorizer.remark(),
            workspaces=self.workspaces(space),
        )

    def _degraded(self, unavailable: str | None, mode: Mode, state: IndexState) -> str | None:
        """Name the reason why an answer may be incomplete, if there is one."""
        read_only = None if self._storage.writable else "the store can only be read"
        reasons = (self._storage.trouble(), read_only, unavailable or _incomplete(mode, state))
        return join_hints("; ", reasons)

    def stats(self, space: Text = None, reset: bool = False) -> Stats:
        """Tell what a space holds and what was done, in all processes; `reset` then starts anew."""
        name = self._space(space)
        check.check_bool("reset", reset)
        stats = self._observer.stats(self._storage.location, name, self._storage.inventory(name))
        if reset:
            self._observer.reset(name)
        return stats

    def doctor(
        self, fix: bool = False, rebuild: bool = False, optimize: bool = False
    ) -> tuple[Finding, ...]:
        """Check the store and what it needs; mend what can be derived when asked to."""
        check.check_bool("fix", fix)
        if check.check_bool("rebuild", rebuild):
            self._storage.rebuild()
        if check.check_bool("optimize", optimize):
            self._storage.optimize()
        return doctor.examine(
            self._storage,
            self._vectorizer.unavailable,
            self._vectorizer.remark,
            self._mend(fix),
            self._saver.refused,
            partial(self._examine_model, fix),
        )

    def _examine_model(self, fix: bool) -> Finding | None:
        # Imported here, because saving and searching do not need to download models.
        from byheart.embedding.model_library import examine_model
        from byheart.embedding.model_sources import ModelSources

        settings = self._settings
        if settings.embedding_provider not in ("auto", "onnx"):
            return None
        sources = ModelSources(settings.model_sources, offline=settings.offline)
        named = (settings.embedding_model, settings.model_path, settings.cache_dir)
        finding = examine_model(*named, sources, fix=fix)
        if finding.fixed:
            self._vectorizer.forget_failures()
        return finding

    def _mend(self, fix: bool) -> Callable[[], int] | None:
        return self._embed_refused_too if fix else None

    def _embed_refused_too(self) -> int:
        self._saver.ask_again()
        return self.embed_pending()

    def bench(self, questions: int = 50, k: int = 10, seed: int = 0, space: Text = None) -> Bench:
        """Ask the store questions made of its own passages, and say whether anything is wrong.

        The same seed makes the same questions while the store does not change. The questions are
        not counted, and the memories they find do not count as used. The figures are kept, and
        compared the next time.
        """
        # Imported here, because saving and searching do not need the benchmark.
        from byheart.upkeep.bench import MOST_QUESTIONS, Bencher

        ask = partial(self._asking, remember=False)
        keeps = self._settings.collect_stats
        return Bencher(self._storage, self._vectorizer, ask, keeps).run(
            self._space(space),
            check.check_int("questions", questions, 1, MOST_QUESTIONS),
            check.check_int("k", k, 1, check.LARGEST_LIMIT),
            check.check_int("seed", seed, 0, check.LARGEST_SEED),
        )

    def reembed(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        rollback: bool = False,
        keep_old: bool = True,
    ) -> Reembedding:
        """Make vectors of the model that the settings name beside the old ones, then switch.

        Searches and saves use the old model until then. After an interruption, the next call
        continues. `rollback` returns to the previous model, as long as its vectors are kept.
        """
        check.check_bool("keep_old", keep_old)
        check.check_callback("on_progress", on_progress)
        reembedder = Reembedder(self._storage, self._vectorizer)
        if check.check_bool("rollback", rollback):
            return reembedder.roll_back(keep_old=keep_old)
        return reembedder.reembed(on_progress, keep_old=keep_old)

    def uses_earlier_model(self) -> bool:
        """Say whether the store is searched by another model than the settings name."""
        return self._vectorizer.remark() is not None

    def prepare(self) -> None:
        """Load the model and the index, so that the first question does not wait for them."""
        with self._vectorizer.asking("prepare"):
            pass

    def unload(self, idle_seconds: float = 0.0) -> None:
        """Release the model's memory until it is needed again, unless it was used lately."""
        self._vectorizer.unload(idle_seconds)

    def close(self) -> None:
        """Release files and memory, and stop all watches."""
        for stop, ended in list(self._watches.items()):
            stop.set()
            ended.wait(_LAST_LOOK_SECONDS)
        self._observer.flush()
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
    return Hint(
        f"{state.pending_vectors:,} of {state.chunks:,} chunks have no vectors yet: "
        "make them with: ",
        Do("doctor", fix=True),
    )


def _damaged(name: str) -> StoreDamaged:
    return StoreDamaged(
        f"the text of {name} is not the one that was saved: the store's file has changed",
        "put a backup in the store's place; or look at what is left with a search, forget it, and "
        "save the text again",
    )


def _not_found(name: str) -> NotFound:
    hint = Hint("look for it with: ", Do("search", Placeholder("QUERY")))
    return NotFound(f"there is no {name} in this space", hint)
