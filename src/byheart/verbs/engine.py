"""Hold the parts that all verbs share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from byheart.contracts import Embedder, Reranker, Storage, Unloadable, Vectors
from byheart.conversation.context import Prompter
from byheart.conversation.turns import Recorder
from byheart.embedding import stored_vectors
from byheart.embedding.vectorizer import Asked, Reopen, Vectorizer
from byheart.errors import Do, EmbedderUnavailable, EmbeddingError, Hint, StoreFull, join_hints
from byheart.memory.batches import Batcher
from byheart.memory.forgetting import Forgetter
from byheart.memory.saving import Saver
from byheart.memory.updating import Changer
from byheart.model import MODES, Filter, IndexState, Mode
from byheart.model import checks as check
from byheart.model.filters import make_filter
from byheart.search import Reranking, SearchRequest, find
from byheart.settings import Settings
from byheart.upkeep.usage_stats import Observer

# The number of waiting chunks that are embedded and stored at a time.
CHUNKS_PER_BATCH = 256
# The time that closing a store waits for a watch to end.
_LAST_LOOK_SECONDS = 10.0


class Engine:
    """Build the parts of a store, and do what several verbs need."""

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder,
        settings: Settings,
        reopen: Reopen | None,
        reranker: Reranker | None,
    ) -> None:
        self.reranking = None if reranker is None else Reranking(reranker, settings.rerank_passages)
        self.storage = storage
        self.settings = settings
        self.vectorizer = Vectorizer(storage, embedder, settings.overlap_tokens, reopen)
        self.observer = Observer(
            storage.ledger,
            collecting=settings.collect_stats,
            slow_query_ms=settings.slow_query_ms,
            embedder=embedder,
        )
        self.vectorizer.on_embedded = self.observer.embedded
        storage.report_work(self.observer.indexed)
        self.saver = Saver(storage, self.vectorizer, settings)
        self.batcher = Batcher(storage, self.saver, self.observer, settings)
        self.changer = Changer(storage, self.saver, self.vectorizer, settings)
        self.recorder = Recorder(
            storage,
            self.saver,
            self.changer.update,
            self.vectorizer.embed_question,
            settings,
        )
        self.prompter = Prompter(storage, self.vectorizer, settings)
        self.forgetter = Forgetter(
            storage, self._find_again, self.observer.clear_queries, settings.space
        )
        # The events that stop each running watch, and that tell its end.
        self.watches: dict[threading.Event, threading.Event] = {}

    def space(self, space: object) -> str:
        """Return the given space, or the one of the settings."""
        return self.settings.space if space is None else check.check_label("space", space)

    def filter(self, given: Mapping[str, Any]) -> Filter:
        """Make a filter of the fields given."""
        return make_filter(given, self.settings.space)

    def degraded(self, unavailable: str | None, mode: Mode, state: IndexState) -> str | None:
        """Name the reason why an answer may be incomplete, if there is one."""
        read_only = None if self.storage.writable else "the store can only be read"
        reasons = (self.storage.trouble(), read_only, unavailable or _incomplete(mode, state))
        return join_hints("; ", reasons)

    @contextlib.contextmanager
    def asking(
        self, request: SearchRequest, *, remember: bool = True, vector: Vectors | None = None
    ) -> Iterator[tuple[SearchRequest, Asked]]:
        """Open the store with the vector of a question, or for a search by keywords without one.

        A caller who has the vector already can give it.
        """
        wants_vector = request.mode != "fts" and bool(request.query)
        question, space = request.query if wants_vector else None, request.where.space
        if vector is None:
            opened = self.vectorizer.asking(question, space, remember=remember)
        else:
            opened = self.vectorizer.asking_with(vector, space)
        with opened as asked:
            if wants_vector and asked.vector is None:
                request = replace(request, mode="fts")
            yield request, asked

    def unload(self, idle_seconds: float) -> None:
        """Release the memory of idle models until they are needed again."""
        self.vectorizer.unload(idle_seconds)
        reranker = None if self.reranking is None else self.reranking.reranker
        if isinstance(reranker, Unloadable):
            reranker.unload(idle_seconds)

    def _find_again(self, text: str, space: str) -> list[str]:
        """Search for a removed text in every mode, as if it were still stored.

        No user asked this query: it is not counted, and its text is not kept as a slow query.
        """
        found: list[str] = []
        where = Filter(space, include_expired=True)
        for mode in MODES:
            with self.asking(SearchRequest(text, where, mode=mode)) as (request, asked):
                hits = find(request, asked.reader, asked.vector).hits
            found += (hit.memory_id for hit in hits)
        return found

    def embed_pending(
        self, on_made: Callable[[int], None] | None = None, at_once: int = CHUNKS_PER_BATCH
    ) -> int:
        """Make every vector that is missing, in batches; return their number."""
        made, reason = self.saver.make_up_all(at_once, on_made=on_made)
        if reason is not None:
            raise EmbedderUnavailable(Hint("vectors cannot be made now: ", reason))
        self.storage.refresh()
        return made

    def embed_waiting(self, show: Callable[[int, int], None]) -> str | None:
        """Make missing vectors as far as possible; return the reason if some are still missing."""
        if not self.settings.embed_on_save:
            return None
        waiting = stored_vectors.count_waiting(self.storage)
        try:
            if waiting:
                self.embed_pending(lambda made: show(made, waiting))
        except (EmbeddingError, StoreFull) as error:
            return error.message
        return None

    def close(self) -> None:
        """Stop all watches, write the statistics, and close the storage."""
        for stop, ended in list(self.watches.items()):
            stop.set()
            ended.wait(_LAST_LOOK_SECONDS)
        self.observer.flush()
        self.storage.close()


def _incomplete(mode: Mode, state: IndexState) -> str | None:
    if mode == "fts" or not state.pending_vectors:
        return None
    return Hint(
        f"{state.pending_vectors:,} of {state.chunks:,} chunks have no vectors yet: "
        "make them with: ",
        Do("admin.doctor", fix=True),
    )
