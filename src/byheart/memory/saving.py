"""Save memories: check → known already? → chunk → extract → embed → write, all or nothing.

A text that takes long to embed is written first, and found by its words meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

from byheart.contracts import (
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
    Known,
    Layout,
    Made,
    Passage,
    Vectorizer,
    by_chunk,
    passages,
    previous_text,
)
from byheart.errors import StoreError
from byheart.memory import expiry, transactions, versions
from byheart.memory.deriving import Derived, Redacted, cut, derive
from byheart.memory.helper_pool import HelperPool, open_pool
from byheart.memory.long_run import LongRuns
from byheart.memory.retention import retention_days
from byheart.memory.save_requests import TAKEN_OVER, SaveRequest, tell_secrets
from byheart.model import Chunk, EmbeddedShare, Memory, SaveResult
from byheart.model.ids import new_memory_id
from byheart.settings import Settings

# A text of up to so many chunks is embedded before it is written, which takes seconds. The vectors
# of a longer text are made afterwards, in batches of a few seconds; each finished batch is kept.
_EMBEDDED_FIRST, _EMBEDDED_AT_A_TIME = 128, 64
# How many waiting chunks a save embeds besides its own, once the provider is available again.
_MADE_UP_PER_SAVE = 8
_LEFT_TO_WORKERS = "the setting embed_on_save leaves vectors to workers"
# How long workers leave a text alone that the embedder refused.
_REFUSED_SECONDS = 3600.0
# How many expired memories a save erases.
_PRUNED_PER_SAVE = 16


# Called with the results, the number of missing vectors made so far, and their total number.
OnEmbedded = Callable[[Sequence[SaveResult], int, int], None]


class _Ahead(NamedTuple):
    """Hold a request whose text was cut before the store was asked about it."""

    text: Derived
    layout: Layout

    @property
    def sought(self) -> transactions.Sought:
        """Name the vectors that the store may have."""
        return transactions.Sought(self.layout.model, list(self.layout.hashes.values()))


class Saver:
    """Turn requests into memories."""

    def __init__(self, storage: Storage, vectorizer: Vectorizer, settings: Settings) -> None:
        self._storage = storage
        self._vectorizer = vectorizer
        self._settings = settings
        # Refused chunks by their numbers: they are not embedded again with every save.
        self._refused: dict[int, Refused] = {}
        self._making_up = threading.Lock()
        self._runs = LongRuns(settings)

    def save(
        self, requests: Sequence[SaveRequest], on_embedded: OnEmbedded | None = None
    ) -> list[SaveResult]:
        """Save a batch in one transaction; make missing vectors of texts that are known."""
        space = transactions.one_space(request.space for request in requests)
        ahead = self._look_ahead(requests)
        prepared = transactions.prepare(
            self._storage, [request.key for request in requests], ahead and ahead.sought
        )
        known = prepared.known
        for request in requests:
            key = request.key
            if key in known and versions.names_other_text(key, known[key]):
                raise versions.other_text_error(key, known[key])
        fresh = [request for request in requests if request.key not in known]
        tokens = cache(partial(self._vectorizer.tokens, prepared.models))
        found = None
        if ahead is not None and fresh and tokens() is ahead.layout.embedder:
            texts, found = [ahead.text], Known(ahead.layout, prepared.vectors)
        else:
            texts = self._derive_all(fresh, tokens)
        wanted = [passages(each.chunks, each.request.title) for each in texts]
        made = self.embed(*wanted, models=prepared.models, space=space, known=found)
        windows = iter(made.windows)
        drafts = [self.draft(each, by_chunk(each.chunks, windows)) for each in texts]
        written = transactions.write(self._storage, drafts, made.model) if drafts else []
        waiting = list(chain.from_iterable(wanted))
        reason = self.note_refused(written, waiting, made, space)
        results = iter(written)
        saved = [known[each.key] if each.key in known else next(results) for each in requests]
        make_others = bool(waiting and prepared.waiting)
        complete = self.complete(saved, make_others, reason, space, on_embedded)
        return list(map(tell_secrets, requests, complete))

    def _look_ahead(self, requests: Sequence[SaveRequest]) -> _Ahead | None:
        """Split a text before the store is asked about it, which saves a round trip.

        If the store has switched to another model meanwhile, the text is split again.
        """
        if not (self._storage.is_remote and self._settings.embed_on_save and len(requests) == 1):
            return None
        text = derive(requests[0], self._settings, self._vectorizer.likely_tokens)
        wanted = passages(text.chunks, text.request.title)
        layout = self._vectorizer.lay_out(wanted) if 0 < len(wanted) <= _EMBEDDED_FIRST else None
        return None if layout is None else _Ahead(text, layout)

    def long_run(self) -> AbstractContextManager[None]:
        """Let helper processes derive texts for the saves of this thread, once that pays."""
        return self._runs.begin()

    def _derive_all(
        self, requests: Sequence[SaveRequest], give_tokens: Callable[[], TokenCounter]
    ) -> list[Derived]:
        """Cut texts into chunks and derive their fields."""
        run = self._runs.current
        if run is not None:
            return run.derive(requests, give_tokens)
        return [derive(each, self._settings, give_tokens) for each in requests]

    def embed(
        self,
        *wanted: Sequence[Passage],
        models: Models | None,
        space: str | None,
        known: Known | None = None,
    ) -> Made:
        """Embed the texts that are to be written, except for very long ones."""
        if not self._settings.embed_on_save:
            return Made([() for part in wanted for _ in part], None, None)
        short = [each for part in wanted if len(part) <= _EMBEDDED_FIRST for each in part]
        # A short turn gets no vectors, so it does not wait for the model.
        made = Made([], None, None)
        if short:
            made = self._vectorizer.windows(short, models, space, known)
        windows = iter(made.windows)
        return made._replace(
            windows=[
                next(windows) if len(part) <= _EMBEDDED_FIRST else ()
                for part in wanted
                for _ in part
            ]
        )

    def note_refused(
        self,
        written: Sequence[SaveResult],
        wanted: Sequence[Passage],
        made: Made,
        space: str | None,
    ) -> str | None:
        """Remember the chunks that the embedder refused; return why it made no vectors, if so."""
        if made.model is None or made.reason is None:
            return made.reason
        refused = {each for each, part in zip(wanted, made.windows, strict=True) if _lacks(part)}
        lacking = [each.memory_id for each in written if each.pending_vectors]
        with contextlib.suppress(StoreError):  # the texts are saved, and may be tried again
            for each in (
                stored_vectors.waiting(self._storage, len(wanted), lacking, space=space)
                if lacking
                else ()
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
        space: str | None,
        on_embedded: OnEmbedded | None = None,
    ) -> list[SaveResult]:
        """Make the vectors that memories lack, unless there is a reason why that cannot be done.

        If all are made, and with `make_others`, make a few that other memories lack. A save that
        needed no vectors does not ask for this, because it would wait for the model.
        """
        if not self._settings.embed_on_save:
            reason = _LEFT_TO_WORKERS
        lacking = list(dict.fromkeys(each.memory_id for each in saved if each.pending_vectors))
        if lacking and reason is None:
            reason = self._make_up_of(lacking, saved, space, on_embedded)
            try:
                left = self._count_left(lacking, space)
                saved = [
                    replace(each, pending_vectors=left.get(each.memory_id, 0)) for each in saved
                ]
            except StoreError as error:
                reason = reason or error.message
        if make_others and not any(each.pending_vectors for each in saved):
            with contextlib.suppress(StoreError):
                self.make_up_meanwhile(_MADE_UP_PER_SAVE, space)
        return [replace(each, degraded=reason) if each.pending_vectors else each for each in saved]

    def _make_up_of(
        self,
        lacking: Sequence[str],
        saved: Sequence[SaveResult],
        space: str | None,
        on_embedded: OnEmbedded | None,
    ) -> str | None:
        """Make the vectors that memories lack; return why some were not made."""
        # A text that was given twice is one memory.
        total = sum({each.memory_id: each.pending_vectors for each in saved}.values())

        def show(made: int) -> None:
            if on_embedded is not None:
                on_embedded(saved, made, max(made, total))

        try:
            show(0)
            _, reason = self.make_up_all(_EMBEDDED_AT_A_TIME, lacking, show, space)
        except StoreError as error:
            # The texts are saved: missing vectors must not look like a failed save.
            reason = error.message  # its hint is about a command that failed
        refusals = (each.reason for each in self.refused() if each.memory_id in lacking)
        return reason or next(refusals, None)

    def _count_left(self, lacking: Sequence[str], space: str | None) -> dict[str, int]:
        with self._storage.reading(space) as reader:
            if not reader.models.count_lacking(None, lacking):  # the usual case, in one query
                return {}
            return {each: reader.models.count_lacking(None, [each]) for each in lacking}

    def chunk(
        self, request: SaveRequest, give_tokens: Callable[[], TokenCounter] | None = None
    ) -> tuple[list[Chunk], str]:
        """Split a text according to its format, and name the format."""
        return cut(request, self._settings, give_tokens or self._vectorizer.tokens)

    def derive(self, request: SaveRequest, redacted: Redacted) -> Derived:
        """Cut a text into chunks and derive its fields."""
        return derive(request, self._settings, self._vectorizer.tokens, redacted)

    def helpers(self) -> AbstractContextManager[HelperPool | None]:
        """Start processes that derive texts as `derive` does."""
        return open_pool(self._settings, self._vectorizer.tokens())

    def draft(self, text: Derived, windows: Sequence[tuple[Window, ...]]) -> Draft:
        """Make everything that is written for a text: the memory, its chunks and windows."""
        request, noticed = text.request, text.noticed
        memory = Memory(
            memory_id=request.memory_id or new_memory_id(),
            content_hash=request.content_hash,
            format=text.format,
            chunks=len(text.chunks),
            created_at=request.created_at or request.at,
            updated_at=request.at,
            expires_at=self._expiry(request, noticed["importance"]),
            origin=request.whose,
            untrusted_at=None if self._trusts(request) else request.at,
            **{name: getattr(request, name) for name in TAKEN_OVER},
            **noticed,
        )
        who = request.who or request.agent_id or request.source
        placed_at = request.placed_at or request.created_at
        return Draft(memory, tuple(text.chunks), tuple(windows), text.derived, who, placed_at)

    def _trusts(self, request: SaveRequest) -> bool:
        if request.trusted is not None:
            return request.trusted
        return request.whose not in self._settings.untrusted_origins

    def _expiry(self, request: SaveRequest, importance: float) -> datetime | None:
        if request.expires_at is not None or not self._settings.retention_policy:
            return request.expires_at
        days = retention_days(importance)
        return None if days is None else request.at + timedelta(days=days)

    def make_up_meanwhile(self, limit: int, space: str | None = None) -> tuple[int, str | None]:
        """Make a few vectors that are missing, unless another thread or a worker does.

        With `space`, a store that keeps spaces apart looks for them only near that space.
        Count them, and say why none were made.
        """
        if not self._settings.embed_on_save or not self._making_up.acquire(blocking=False):
            return 0, None
        try:
            return self._make_up(self._waiting(limit, space=space))
        finally:
            self._making_up.release()

    def make_share(self, limit: int, lease_seconds: float) -> EmbeddedShare:
        """Claim some of the chunks that wait for vectors, in all spaces, and make their vectors.

        Another process may claim them after `lease_seconds`, or at once if this one fails.
        """
        share = self._storage.claim(limit, lease_seconds, list(self._refused))
        numbers = [each.chunk_no for each in share]
        made, reason = 0, None
        try:
            made, reason = self._make_up(share)
        finally:
            refused = [number for number in numbers if number in self._refused]
            with contextlib.suppress(StoreError):  # the claims end by themselves
                if numbers and not made:
                    self._storage.hold(numbers, 0)
                if refused:
                    self._storage.hold(refused, _REFUSED_SECONDS)
        return EmbeddedShare(len(share), made, len(refused), reason)

    def _make_up(self, pending: Sequence[PendingChunk]) -> tuple[int, str | None]:
        """Make vectors for waiting chunks; count the chunks, or return why none were made.

        Only one thread of a process does this at a time, so that no vector is made twice. A refused
        chunk does not delay the others.
        """
        if not pending:
            return 0, None
        space = transactions.one_space(each.space for each in pending)
        wanted = [_passage(each) for each in pending]
        windows, model, reason = self._vectorizer.windows(wanted, space=space)
        if model is None:
            return 0, reason
        for each, part in zip(pending, windows, strict=True):
            if reason is not None and _lacks(part):
                self._refuse(each, reason)
        made = zip(pending, windows, strict=True)
        return stored_vectors.add_waiting(self._storage, model, made), None

    def _waiting(
        self, limit: int, of: Sequence[str] = (), space: str | None = None
    ) -> list[PendingChunk]:
        return stored_vectors.waiting(self._storage, limit, of, list(self._refused), space)

    def make_up_all(
        self,
        at_once: int,
        of: Sequence[str] = (),
        on_made: Callable[[int], None] | None = None,
        space: str | None = None,
    ) -> tuple[int, str | None]:
        """Make all missing vectors in batches, and keep each batch; return why some were not made.

        End when a batch makes no progress.
        """
        made = 0
        last: list[PendingChunk] = []
        while (first := self._waiting(1, of, space)) and first != last:
            with self._making_up:
                count, reason = self._make_up(self._waiting(at_once, of, space))
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
        """Forget refusals, so that the chunks are tried again, perhaps with another embedder."""
        self._refused.clear()

    def prefetch_prune(self, reader: Reader) -> None:
        """Ask ahead for what `must_prune` reads."""
        expiry.prefetch_due(reader, expiry.EXPIRED)

    def must_prune(self, reader: Reader) -> bool:
        """Say whether `prune` has something to do."""
        self.prefetch_prune(reader)
        return expiry.is_due(reader.expiry, expiry.EXPIRED, self._grace)

    def prune(self) -> None:
        """Erase a few memories that expired long enough ago: a little with every save."""
        expiry.prune(self._storage, expiry.EXPIRED, self._grace, _PRUNED_PER_SAVE)

    @property
    def _grace(self) -> timedelta:
        return timedelta(days=self._settings.prune_after_days)


def _passage(pending: PendingChunk) -> Passage:
    before = previous_text(pending.chunk, pending.before)
    return Passage(pending.chunk, before, pending.title)


def _lacks(windows: Sequence[Window]) -> bool:
    return any(window.vector is None for window in windows)
