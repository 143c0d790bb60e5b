"""Offer the verbs that people use daily in `MemoryStore`, and the others in its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Unpack

from byheart.contracts import Embedder, Reranker, Storage
from byheart.embedding.vectorizer import Reopen
from byheart.memory.batches import Progress
from byheart.model import (
    ChunkWindow,
    ContextAnswer,
    Exported,
    FeedbackResult,
    Forgotten,
    HistoryEntry,
    Imported,
    Indexed,
    IndexProgress,
    Memory,
    MemoryPage,
    RecallAnswer,
    SaveResult,
    SearchAnswer,
    Status,
    TransferProgress,
    WrittenFile,
)
from byheart.model.memories import (
    ChangedFields,
    ContextFilters,
    FilterFields,
    LoggedFields,
    SavedFields,
)
from byheart.settings import Settings
from byheart.system.forks import RefusedInChild, allow_in_child, refuse_in_child
from byheart.verbs import asking, changing, moving, reading, workspaces, writing
from byheart.verbs.admin import AdminVerbs
from byheart.verbs.api_keys import ApiKeyVerbs
from byheart.verbs.engine import Engine
from byheart.verbs.entities import EntityVerbs
from byheart.verbs.logins import LoginVerbs
from byheart.verbs.receipts import ReceiptVerbs
from byheart.verbs.review import ReviewVerbs
from byheart.verbs.sessions import SessionVerbs
from byheart.verbs.views import ViewVerbs
from byheart.verbs.workspaces import WorkspaceVerbs

Text = str | None


class MemoryStore(RefusedInChild):
    """Save texts and get the right passages back. Safe to use from several threads."""

    sessions: SessionVerbs
    workspaces: WorkspaceVerbs
    entities: EntityVerbs
    api_keys: ApiKeyVerbs
    logins: LoginVerbs
    views: ViewVerbs
    review: ReviewVerbs
    receipts: ReceiptVerbs
    admin: AdminVerbs

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder,
        settings: Settings,
        reopen: Reopen | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._engine = engine = Engine(storage, embedder, settings, reopen, reranker)
        self._storage = storage
        self.settings = settings
        self.space = settings.space
        self.sessions = SessionVerbs(engine)
        self.workspaces = WorkspaceVerbs(engine)
        self.entities = EntityVerbs(engine)
        self.api_keys = ApiKeyVerbs(engine)
        self.logins = LoginVerbs(engine)
        self.views = ViewVerbs(engine)
        self.review = ReviewVerbs(engine)
        self.receipts = ReceiptVerbs(engine)
        self.admin = AdminVerbs(engine)
        for each in self._refused():
            refuse_in_child(each, storage.location)

    @property
    def location(self) -> str:
        """Name the file or the database of the store, without secrets."""
        return self._storage.location

    def _refused(self) -> tuple[RefusedInChild, ...]:
        """Return every object that callers may have: the store and its groups."""
        groups = (self.sessions, self.workspaces, self.entities, self.api_keys, self.logins)
        return (self, *groups, self.review, self.views, self.receipts, self.admin)

    def save(
        self,
        content: str,
        kind: str = "note",
        on_progress: Callable[[Progress], None] | None = None,
        **fields: Unpack[SavedFields],
    ) -> SaveResult:
        """Save one text; the same text again in its space, session and kind changes nothing.

        A long text is stored, and found by its words, before its vectors are made. `on_progress` is
        called with their number; after an interruption, saving the text again makes the rest.
        """
        given = {"content": content, "kind": kind, **fields}
        return writing.save(self._engine, given, on_progress)

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
        return writing.save_many(self._engine, items, on_progress, check_first)

    def log(
        self,
        session_id: str,
        role: str,
        content: str,
        kind: str = "message",
        **fields: Unpack[LoggedFields],
    ) -> SaveResult:
        """Record a turn of a session: a message, the output of a tool, a file.

        The same words again are another turn; the same `client_id` again is the same turn.
        """
        turn = {"session_id": session_id, "role": role, "content": content, "kind": kind}
        return writing.log(self._engine, {**turn, **fields})

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
        return writing.log_many(self._engine, items, on_progress, check_first)

    def search(
        self,
        query: Text = None,
        limit: int = 10,
        mode: str = "hybrid",
        granularity: str = "fine",
        offset: int = 0,
        raw: bool = False,
        explain: bool = False,
        similarity_threshold: float | None = None,
        fusion: str = "evidence",
        vector: Sequence[float] | None = None,
        times: bool = True,
        source: Text = None,
        topK: int | None = None,  # noqa: N803 - the name callers of other systems use
        **filters: Unpack[FilterFields],
    ) -> SearchAnswer:
        """Find the passages, sections or memories that answer a query, best first.

        `vector` is the query's vector, if the caller has made one with the model of the store.
        `source` is another name of `mode`, `topK` of `limit`. `similarity_threshold` is accepted
        and drops nothing, because the cosine of a good answer differs from query to query. With
        `times`, memories are preferred from a time that the query names, such as "last week".
        """
        return asking.search(self._engine, _arguments(locals()))

    def recall(
        self,
        query: str,
        max_tokens: int | None = None,
        limit: int = 20,
        offset: int = 0,
        mode: str = "hybrid",
        raw: bool = False,
        explain: bool = False,
        times: bool = True,
        **filters: Unpack[FilterFields],
    ) -> RecallAnswer:
        """Return the memories that matter most for a query, within a token budget.

        They are weighed by relevance, importance, recency and frequency; the filters are those of
        `search`. Memories returned in full count as accessed, unless `as_of` is given.
        A setting has the budget if none is given.
        """
        return asking.recall(self._engine, locals(), filters)

    def context(
        self,
        session_id: str,
        query: Text = None,
        max_tokens: int | None = None,
        recent: int | None = None,
        top_k: int | None = None,
        include_global: bool = True,
        include_task: Text = None,
        mode: str = "hybrid",
        preview: bool = False,
        **filters: Unpack[ContextFilters],
    ) -> ContextAnswer:
        """Put together what goes into the prompt, within a token budget, with a receipt.

        The order is: identity files, the running summary and pinned memories; then memories that
        answer the query (by default the last user message); then the recent messages. The filters
        apply to the retrieved memories; with `include_task`, memories of other sessions with that
        task code are retrieved too. A `preview` leaves no trace: nothing counts as given, and no
        receipt is stored. Settings have the budget, `recent` and `top_k` that are not given.
        """
        return asking.context(self._engine, locals(), filters)

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
        """Put together memories that a session should know, without being asked.

        Unlike `context`, it gives only memories near the query (`min_similarity` as a cosine, or
        half of its words). It leaves out earlier turns that ask the same query, and everything that
        this session was given since the moment `since`, or ever.
        """
        return asking.remind(self._engine, locals(), filters)

    def get(self, memory_id: str, space: Text = None) -> Memory:
        """Fetch one memory whole, by its id, the id of one of its chunks, or a file's path."""
        return reading.get(self._engine, memory_id, space)

    def reconstruct(self, memory_id: str, space: Text = None) -> str:
        """Return a memory's text, byte for byte as it was saved."""
        return self.get(memory_id, space).content

    def expand(self, chunk_id: str, around: int = 2, space: Text = None) -> ChunkWindow:
        """Show a chunk, or the one at `PATH:LINE`, with its neighbours, as one stretch of text."""
        return reading.expand(self._engine, chunk_id, around, space)

    def history(self, memory_id: str, space: Text = None) -> tuple[HistoryEntry, ...]:
        """List the changes of a memory, oldest first: who, when, from and to."""
        return reading.history(self._engine, memory_id, space)

    def write_to_file(
        self,
        memory_id: str,
        output_path: str | Path,
        include_metadata: bool = True,
        overwrite: bool = False,
        space: Text = None,
    ) -> WrittenFile:
        """Write a memory to a file, by default with front matter that describes it."""
        return reading.write_to_file(
            self._engine, memory_id, output_path, include_metadata, overwrite, space
        )

    def update(
        self,
        memory_id: str,
        expected_version: int | None = None,
        who: str = "manual",
        space: Text = None,
        **fields: Unpack[ChangedFields],
    ) -> SaveResult:
        """Change the given fields of a memory; an earlier text stays in the history.

        With `expected_version`, the change is refused if another change was made since.
        """
        return changing.update(self._engine, memory_id, space, fields, expected_version, who)

    def supersede(
        self,
        memory_id: str,
        by: Text = None,
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Memory:
        """Mark a memory as superseded by another one; without `by`, make it valid again."""
        return changing.supersede(self._engine, memory_id, by, reason, who, space)

    def feedback(
        self, memory_id: str, query: str, outcome: str, space: Text = None
    ) -> FeedbackResult:
        """Say what came of a memory found for a question: it was `used`, `ignored` or `wrong`.

        It moves the memory up or down for questions like this one, within fixed bounds, and counts
        less as time passes (setting `feedback_half_life_days`).
        """
        return changing.feedback(self._engine, memory_id, query, outcome, space)

    def pin(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Include a memory at the top of every context that may see it, until `unpin`."""
        return changing.pin(self._engine, memory_id, who, space, pinned=True)

    def unpin(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Stop including a memory at the top of every context."""
        return changing.pin(self._engine, memory_id, who, space, pinned=False)

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
        """Hide memories everywhere, until `restore`; with `hard`, erase every trace of them.

        By id, memories are forgotten at once. By filter, the call is a dry run that counts, unless
        `dry_run=False`.
        """
        return changing.forget(self._engine, locals(), filters)

    def restore(self, memory_id: str, who: str = "manual", space: Text = None) -> Memory:
        """Bring back a forgotten memory, unless it was erased."""
        return changing.restore(self._engine, memory_id, who, space)

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
        return workspaces.index(self._engine, path, prune, embed, on_progress, space)

    def export(
        self,
        path_or_file: str | Path | BinaryIO,
        vectors: bool = False,
        format: str = "jsonl",
        all_spaces: bool = False,
        overwrite: bool = False,
        on_progress: Callable[[TransferProgress], None] | None = None,
        space: Text = None,
        memory_id: str | Iterable[str] | None = None,
    ) -> Exported:
        """Write memories to a JSONL file, or to a folder of Markdown for people.

        They are those of a space, of all spaces, or the ones that `memory_id` names, with all that
        belongs to them: earlier texts, history and pins.
        """
        part = moving.Part(space, all_spaces, memory_id)
        return moving.export(
            self._engine, path_or_file, part, vectors, format, overwrite, on_progress
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
        return moving.import_file(
            self._engine, path_or_file, on_error, force, format, embed, dry_run, on_progress
        )

    def status(self, space: Text = None) -> Status:
        """Describe the store: how much it contains, and which functions are unavailable."""
        status = self._storage.status(self._engine.space(space))
        vectorizer = self._engine.vectorizer
        return replace(
            status,
            degraded=self._engine.degraded(vectorizer.unavailable(), "hybrid", status.index),
            wanted_model=vectorizer.wanted_name(),
            remark=vectorizer.remark(),
            workspaces=self.workspaces.list(space),
        )

    def close(self) -> None:
        """Release files and memory, and stop all watches."""
        if not self._inherited:  # the parent process closes it
            self._engine.close()
            for each in self._refused():
                allow_in_child(each)

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The last verb: above it, `list` means the type.
    def list(
        self,
        limit: int = 20,
        offset: int = 0,
        forgotten: bool = False,
        after: Text = None,
        **filters: Unpack[FilterFields],
    ) -> MemoryPage:
        """List memories, the latest first; with `forgotten`, those to restore.

        Within a session, the latest iteration comes first. `after` is the id of the last memory of
        the page before: a page behind it costs the same wherever it is.
        """
        return reading.list_memories(self._engine, _arguments(locals()))


def _arguments(names: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the arguments of a verb out of its local names."""
    return {name: value for name, value in names.items() if name != "self"}
