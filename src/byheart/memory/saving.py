"""Save memories: check → known already? → chunk → extract → embed → write, all or nothing.

A text that takes long to embed is written first, and found by its words meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from itertools import chain
from typing import Any

from byheart.contracts import (
    DedupKey,
    Draft,
    Models,
    PendingChunk,
    Reader,
    Refused,
    Storage,
    TokenCounter,
    Window,
)
from byheart.embedding import stored_vectors
from byheart.embedding.vectorizer import (
    Made,
    Passage,
    Vectorizer,
    by_chunk,
    passages,
    previous_text,
)
from byheart.errors import InvalidInput, StoreError, TooManyChunks
from byheart.extraction import extract_entities, score_importance, summarize
from byheart.language.detection import UNDETERMINED, detect_language
from byheart.memory import expiry, transactions, versions
from byheart.memory.retention import retention_days
from byheart.model import Chunk, Memory, Origin, SaveResult, usual_origin
from byheart.model import checks as check
from byheart.model.fields import BY_NAME, LOG_FIELDS, NOTICED, SAVE_FIELDS
from byheart.model.ids import new_memory_id
from byheart.settings import Settings
from byheart.system import clock

# A text of up to so many chunks is embedded before it is written, which takes seconds. The vectors
# of a longer text are made afterwards, in batches of a few seconds; each finished batch is kept.
_EMBEDDED_FIRST, _EMBEDDED_AT_A_TIME = 128, 64
# How many waiting chunks a save embeds besides its own, once the provider is available again.
_MADE_UP_PER_SAVE = 8
# How many expired memories a save erases.
_PRUNED_PER_SAVE = 16


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """Hold the checked fields of a save; `None` stands for a field that was not given."""

    content: str
    content_hash: str
    space: str
    at: datetime
    kind: str = "note"
    title: str | None = None
    summary: str | None = None
    source: str = "manual"
    session_id: str | None = None
    agent_id: str | None = None
    session_iter: int | None = None
    task_code: str | None = None
    path: str | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] | None = None
    language: str | None = None
    importance: float | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # A memory that comes back from an export keeps its id and its age.
    memory_id: str | None = None
    created_at: datetime | None = None
    # The time that decides its place in the session, if that is not `created_at`.
    placed_at: datetime | None = None
    role: str | None = None
    client_id: str | None = None
    origin: Origin | None = None
    # Text that was extracted from a file no longer has the format that its path names.
    format: str | None = None
    who: str | None = None
    # The spans of the text that only repeat what a prompt contained.
    echoes: tuple[tuple[int, int], ...] = ()
    # How many secrets of each kind were found in it, and whether they were replaced.
    secrets_found: Mapping[str, int] = field(default_factory=dict)
    secrets_redacted: bool = False

    @property
    def key(self) -> DedupKey:
        """Say what makes it the same memory as another."""
        return DedupKey(
            self.space,
            self.session_id,
            self.kind,
            self.content_hash,
            self.role is not None,
            self.client_id,
        )

    @property
    def own_words(self) -> str:
        """Give the text without what it only repeats."""
        parts, at = [], 0
        for start, end in self.echoes:
            parts.append(self.content[at:start])
            at = end
        return "".join((*parts, self.content[at:]))

    @property
    def whose(self) -> Origin:
        """Say whose words it holds."""
        return self.origin or usual_origin(
            self.kind, self.role, self.path, self.agent_id, self.client_id
        )


# The fields that are checked by themselves; the others need the settings or one another.
_CHECKED_ALONE = tuple(
    field
    for field in map(BY_NAME.__getitem__, SAVE_FIELDS)
    if field.check is not None and field.name not in ("expires_at", "space")
)
# The fields that a memory has as the request says; the others are worked out when it is saved.
_TAKEN_OVER = tuple(
    name
    for name in dict.fromkeys((*SAVE_FIELDS, *LOG_FIELDS))
    if BY_NAME[name].owner == "memory"
    and name not in (*NOTICED, "created_at", "expires_at", "origin")
)


def check_request(
    given: Mapping[str, Any], settings: Settings, *, blank: bool = False
) -> SaveRequest:
    """Accept the fields of `save`, or refuse them before anything is written."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"an item must be an object with the fields of save, not {type(given).__name__}",
            'give {"content": "…"}',
        )
    check.check_names(given, SAVE_FIELDS, "field")
    at = clock.now()
    content = check.check_text(
        "content", given.get("content"), longest=settings.max_content_bytes, blank=blank
    )
    said = {
        field.name: field.check(field.name, given.get(field.name, field.default))
        for field in _CHECKED_ALONE
        if field.check is not None
    }
    space = settings.space if given.get("space") is None else given["space"]
    return SaveRequest(
        content=content,
        content_hash=sha256(content.encode()).hexdigest(),
        expires_at=check.check_expiry(given.get("ttl_days"), given.get("expires_at"), at),
        space=check.check_label("space", space),
        at=at,
        **said,
    )


_TEXTS = ("content", "title", "summary")


def look_for_secrets(
    request: SaveRequest, settings: Settings, names: Sequence[str] = _TEXTS
) -> SaveRequest:
    """Note the secrets of what is saved on purpose; replace them if the settings say so.

    `names` are the fields to look at: an update leaves alone what it was not given.
    """
    # Imported here: only what saves needs the patterns.
    from byheart.extraction.secrets import redact

    texts = {name: getattr(request, name) for name in _TEXTS}
    found: Counter[str] = Counter()
    for name in _TEXTS:
        if name in names and texts[name]:
            redacted = redact(texts[name])
            texts[name] = redacted.text
            found.update(redacted.found)
    if not found:
        return request
    request = replace(request, secrets_found=dict(found))
    if settings.redact_secrets != "all":
        return request
    return replace(
        request,
        content=texts["content"],
        content_hash=sha256(texts["content"].encode()).hexdigest(),
        title=texts["title"],
        summary=texts["summary"],
        secrets_redacted=True,
    )


def check_saved(given: Mapping[str, Any], settings: Settings) -> SaveRequest:
    """Accept the fields of `save`, and look for secrets in them."""
    return look_for_secrets(check_request(given, settings), settings)


def tell_secrets(request: SaveRequest, result: SaveResult) -> SaveResult:
    """Add to a result what was found in its text."""
    if not request.secrets_found:
        return result
    return replace(
        result,
        secrets_found=request.secrets_found,
        secrets_redacted=request.secrets_redacted,
    )


# Told what was written, how many of its missing vectors are made, and how many there are to make.
OnEmbedded = Callable[[Sequence[SaveResult], int, int], None]


class Saver:
    """Turn requests into memories."""

    def __init__(self, storage: Storage, vectorizer: Vectorizer, settings: Settings) -> None:
        self._storage = storage
        self._vectorizer = vectorizer
        self._settings = settings
        # By the number of the chunk: what was refused once is not asked for with every save.
        self._refused: dict[int, Refused] = {}
        self._making_up = threading.Lock()

    def save(
        self, requests: Sequence[SaveRequest], on_embedded: OnEmbedded | None = None
    ) -> list[SaveResult]:
        """Save a batch in one transaction; what is there already gets the vectors it lacks."""
        prepared = transactions.prepare(self._storage, [request.key for request in requests])
        known = prepared.known
        for request in requests:
            key = request.key
            if key in known and versions.names_other_text(key, known[key]):
                raise versions.other_text_error(key, known[key])
        fresh = [request for request in requests if request.key not in known]
        tokens = cache(partial(self._vectorizer.tokens, prepared.models))
        chunked = [(request, *self.chunk(request, tokens)) for request in fresh]
        wanted = [passages(chunks, request.title) for request, chunks, _ in chunked]
        made = self.embed(*wanted, models=prepared.models)
        windows = iter(made.windows)
        drafts = [
            self.draft(request, chunks, by_chunk(chunks, windows), format_)
            for request, chunks, format_ in chunked
        ]
        written = transactions.write(self._storage, drafts, made.model) if drafts else []
        waiting = list(chain.from_iterable(wanted))
        reason = self.note_refused(written, waiting, made)
        results = iter(written)
        saved = [known[each.key] if each.key in known else next(results) for each in requests]
        make_others = bool(waiting and prepared.waiting)
        complete = self.complete(saved, make_others, reason, on_embedded)
        return list(map(tell_secrets, requests, complete))

    def embed(self, *wanted: Sequence[Passage], models: Models | None) -> Made:
        """Embed the texts that are to be written, except for those that would take long."""
        short = [each for part in wanted if len(part) <= _EMBEDDED_FIRST for each in part]
        # A short turn gets no vectors, so it does not wait for the model.
        made = self._vectorizer.windows(short, models) if short else Made([], None, None)
        windows = iter(made.windows)
        return made._replace(
            windows=[
                next(windows) if len(part) <= _EMBEDDED_FIRST else ()
                for part in wanted
                for _ in part
            ]
        )

    def note_refused(
        self, written: Sequence[SaveResult], wanted: Sequence[Passage], made: Made
    ) -> str | None:
        """Remember what was refused of what was written; say why nothing can be made, if so."""
        if made.model is None or made.reason is None:
            return made.reason
        refused = {each for each, part in zip(wanted, made.windows, strict=True) if _lacks(part)}
        lacking = [each.memory_id for each in written if each.pending_vectors]
        with contextlib.suppress(StoreError):  # it is safe by now: asking once more does no harm
            for each in (
                stored_vectors.waiting(self._storage, len(wanted), lacking) if lacking else ()
            ):
                if _passage(each) in refused:
                    self._refuse(each, made.reason)
        return None

    def _refuse(self, pending: PendingChunk, reason: str) -> None:
        refused = Refused(pending.memory_id, pending.chunk.index, reason)
        self._refused[pending.chunk_no] = refused

    def complete(
        self,
        saved: Sequence[SaveResult],
        make_others: bool,
        reason: str | None,
        on_embedded: OnEmbedded | None = None,
    ) -> list[SaveResult]:
        """Make the vectors that memories lack, unless there is a reason why that cannot be done.

        If all are made, and with `make_others`, make a few that other memories lack. A save that
        needed no vectors does not ask for this, because it would wait for the model.
        """
        lacking = list(dict.fromkeys(each.memory_id for each in saved if each.pending_vectors))
        if lacking and reason is None:
            reason = self._make_up_of(lacking, saved, on_embedded)
            try:
                left = self._count_left(lacking)
                saved = [
                    replace(each, pending_vectors=left.get(each.memory_id, 0)) for each in saved
                ]
            except StoreError as error:
                reason = reason or str(error)
        if make_others and not any(each.pending_vectors for each in saved):
            with contextlib.suppress(StoreError):
                self.make_up_meanwhile(_MADE_UP_PER_SAVE)
        return [replace(each, degraded=reason) if each.pending_vectors else each for each in saved]

    def _make_up_of(
        self, lacking: Sequence[str], saved: Sequence[SaveResult], on_embedded: OnEmbedded | None
    ) -> str | None:
        """Make what memories lack, and say why it did not go further."""
        # A text that was given twice is one memory.
        total = sum({each.memory_id: each.pending_vectors for each in saved}.values())

        def show(made: int) -> None:
            if on_embedded is not None:
                on_embedded(saved, made, max(made, total))

        try:
            show(0)
            _, reason = self.make_up_all(_EMBEDDED_AT_A_TIME, lacking, show)
        except StoreError as error:
            # They are safe by now: trouble with their vectors must not look like theirs.
            reason = str(error)
        refusals = (each.reason for each in self.refused() if each.memory_id in lacking)
        return reason or next(refusals, None)

    def _count_left(self, lacking: Sequence[str]) -> dict[str, int]:
        with self._storage.reading() as reader:
            if not reader.models.count_lacking(None, lacking):  # as a rule: one query is enough
                return {}
            return {each: reader.models.count_lacking(None, [each]) for each in lacking}

    def chunk(
        self, request: SaveRequest, give_tokens: Callable[[], TokenCounter] | None = None
    ) -> tuple[list[Chunk], str]:
        """Cut a text as its format asks for, and name that format."""
        # Imported here, so that a process that only searches does not wait for the parsers.
        from byheart.chunking import guess_format, is_short, keep_aside, set_apart, split

        if request.role is not None and is_short(request.content, self._settings.min_turn_words):
            return list(keep_aside(request.content)), "text"
        format_ = request.format or guess_format(request.content, request.path)
        tokens = (give_tokens or self._vectorizer.tokens)()
        try:
            chunks = split(
                request.content,
                format=format_,
                tokens=tokens,
                target_tokens=self._settings.chunk_tokens,
                max_chunks=self._settings.max_chunks,
            )
        except TooManyChunks as error:
            error.content_hash = request.content_hash
            raise
        if request.echoes:
            chunks = set_apart(chunks, request.echoes, tokens, self._settings.min_turn_words)
        return chunks, format_

    def draft(
        self,
        request: SaveRequest,
        chunks: Sequence[Chunk],
        windows: Sequence[tuple[Window, ...]],
        format_: str,
    ) -> Draft:
        """Say everything there is to write of a text that was cut."""
        noticed, derived = notice(replace(request, content=request.own_words))
        memory = Memory(
            memory_id=request.memory_id or new_memory_id(),
            content_hash=request.content_hash,
            format=format_,
            chunks=len(chunks),
            created_at=request.created_at or request.at,
            updated_at=request.at,
            expires_at=self._expiry(request, noticed["importance"]),
            origin=request.whose,
            **{name: getattr(request, name) for name in _TAKEN_OVER},
            **noticed,
        )
        who = request.who or request.agent_id or request.source
        placed_at = request.placed_at or request.created_at
        return Draft(memory, tuple(chunks), tuple(windows), derived, who, placed_at)

    def _expiry(self, request: SaveRequest, importance: float) -> datetime | None:
        if request.expires_at is not None or not self._settings.retention_policy:
            return request.expires_at
        days = retention_days(importance)
        return None if days is None else request.at + timedelta(days=days)

    def make_up_meanwhile(self, limit: int) -> tuple[int, str | None]:
        """Make a few vectors that are missing, unless another thread does: nobody waits for it.

        Count them, and say why none were made.
        """
        if not self._making_up.acquire(blocking=False):
            return 0, None
        try:
            return self._make_up(limit)
        finally:
            self._making_up.release()

    def _make_up(self, limit: int, of: Sequence[str] = ()) -> tuple[int, str | None]:
        """Make the vectors of chunks that wait for them, of some memories or of all.

        Only one thread does at a time, or two would make the same. A chunk that is refused holds
        up no other.
        """
        pending = self._waiting(limit, of)
        if not pending:
            return 0, None
        windows, model, reason = self._vectorizer.windows([_passage(each) for each in pending])
        if model is None:
            return 0, reason
        for each, part in zip(pending, windows, strict=True):
            if reason is not None and _lacks(part):
                self._refuse(each, reason)
        made = {each.chunk_no: part for each, part in zip(pending, windows, strict=True)}
        return stored_vectors.add_waiting(self._storage, model, made), None

    def _waiting(self, limit: int, of: Sequence[str]) -> list[PendingChunk]:
        return stored_vectors.waiting(self._storage, limit, of, list(self._refused))

    def make_up_all(
        self, at_once: int, of: Sequence[str] = (), on_made: Callable[[int], None] | None = None
    ) -> tuple[int, str | None]:
        """Make every vector that is missing, batch by batch, each kept; say why it went no further.

        No progress means that nothing can be made, unless another process was faster.
        """
        made = 0
        last: list[PendingChunk] = []
        while (first := self._waiting(1, of)) and first != last:
            with self._making_up:
                count, reason = self._make_up(at_once, of)
            if reason is not None:
                return made, reason
            made, last = made + count, first
            if on_made is not None:
                on_made(made)
        return made, None

    def refused(self) -> list[Refused]:
        """List the passages that the embedder refused, as far as this process knows."""
        return list(self._refused.values())

    def ask_again(self) -> None:
        """Have what was refused asked for again: the embedder may be another by now."""
        self._refused.clear()

    def must_prune(self, reader: Reader) -> bool:
        """Say whether `prune` has something to do."""
        return expiry.is_due(reader.expiry, "expired", self._grace)

    def prune(self) -> None:
        """Erase a few memories that expired long enough ago: a little with every save."""
        expiry.prune(self._storage, "expired", self._grace, _PRUNED_PER_SAVE)

    @property
    def _grace(self) -> timedelta:
        return timedelta(days=self._settings.prune_after_days)


def _passage(pending: PendingChunk) -> Passage:
    before = previous_text(pending.chunk, pending.before)
    return Passage(pending.chunk, before, pending.title)


def _lacks(windows: Sequence[Window]) -> bool:
    return any(window.vector is None for window in windows)


def notice(request: SaveRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Keep what was said about a text, derive what was not, and say which is which."""
    noticed: dict[str, Any] = {name: getattr(request, name) for name in NOTICED}
    if request.language == UNDETERMINED:
        noticed["language"] = None  # the caller does not know it
    derived = tuple(name for name, value in noticed.items() if value is None)
    if request.summary is None:
        noticed["summary"] = summarize(request.content)
    if request.entities is None:
        noticed["entities"] = extract_entities(request.content)
    if noticed["language"] is None:
        noticed["language"] = detect_language(request.content)
    if request.importance is None:
        noticed["importance"] = score_importance(
            request.content,
            kind=request.kind,
            entities=noticed["entities"],
            # That a turn was logged says nothing about it.
            has_source=request.source != "manual" and request.role is None,
            has_metadata=bool(request.metadata),
        )
    return noticed, derived
