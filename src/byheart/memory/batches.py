"""Check, save and count any number of items, one batch at a time.

Each batch is saved before the next is read, so that an interrupted run loses only seconds of work.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from byheart.contracts import Storage
from byheart.errors import ByheartError, Hint, StoreError, TooManyChunks
from byheart.memory import transactions
from byheart.memory.save_requests import SaveRequest
from byheart.memory.saving import OnEmbedded, Saver
from byheart.model import SaveResult
from byheart.model import checks as check
from byheart.settings import Settings
from byheart.startup.dataclass_types import dataclass
from byheart.upkeep.usage_stats import Observer

# The limits of a first batch, which is chunked, embedded and committed together: large enough for
# full batches of the embedder.
_BATCH_MEMORIES, _BATCH_CHARS = 64, 200_000
# Batches grow while they take less than half a second, as with vectors that are ready, up to this
# many times: fewer commits, and an interrupted import still loses only seconds of work.
_QUICK_SECONDS, _LONG_SECONDS, _MOST_TIMES = 0.5, 2.0, 16
# A long import updates the search index after this many new chunks.
_REFRESH_EVERY_CHUNKS = 20_000

CheckItem = Callable[[Mapping[str, Any], Settings], SaveRequest]


Keep = Callable[[Sequence[SaveRequest], OnEmbedded | None], list[SaveResult]]
OnProgress = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Progress:
    """Report the progress of a long run: the items saved so far.

    While the vectors of a long text are made, `vectors` counts the chunks that have theirs.
    """

    memories: int = 0
    chunks: int = 0
    unchanged: int = 0
    vectors: int = 0
    vectors_total: int = 0

    def plus(self, saved: Sequence[SaveResult]) -> Progress:
        """Add further saved items to the counts."""
        return Progress(
            self.memories + len(saved),
            self.chunks + sum(each.chunks for each in saved),
            self.unchanged + sum(each.status == "unchanged" for each in saved),
        )

    def while_embedding(self, on_progress: OnProgress | None) -> OnEmbedded | None:
        """Return a callback that reports the progress of vectors while the next items are saved."""
        if on_progress is None:
            return None
        return lambda saved, made, total: on_progress(
            replace(self.plus(saved), vectors=made, vectors_total=total)
        )


class _Limits:
    """Limit batches by the time that the last ones took."""

    def __init__(self, *, grow: bool) -> None:
        self._times = 1
        self._most = _MOST_TIMES if grow else 1

    def are_reached(self, memories: int, chars: int) -> bool:
        """Say whether a batch is large enough."""
        return memories >= _BATCH_MEMORIES * self._times or chars >= _BATCH_CHARS * self._times

    def follow(self, seconds: float) -> None:
        """Let the next batch be larger after a quick one, and smaller after a long one."""
        if seconds < _QUICK_SECONDS:
            self._times = min(2 * self._times, self._most)
        elif seconds > _LONG_SECONDS:
            self._times = max(self._times // 2, 1)


class Batcher:
    """Save many texts in batches, with any function that checks and any that saves them."""

    def __init__(
        self, storage: Storage, saver: Saver, observer: Observer, settings: Settings
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._observer = observer
        self._settings = settings

    def check(
        self, items: Iterable[Mapping[str, Any]], check_item: CheckItem, check_first: bool
    ) -> Iterable[list[SaveRequest]]:
        """Check items and group them into batches; with `check_first`, check all items first."""
        check.check_bool("check_first", check_first)
        if check_first:  # before any batch is saved, so nothing shows how long one takes
            return list(self._checked(items, check_item, _Limits(grow=False)))
        return self._checked(items, check_item, _Limits(grow=True))

    def _checked(
        self, items: Iterable[Mapping[str, Any]], check_item: CheckItem, limits: _Limits
    ) -> Iterator[list[SaveRequest]]:
        batch: list[SaveRequest] = []
        chars = 0
        for number, item in enumerate(check.check_items(items)):
            try:
                batch.append(check_item(item, self._settings))
            except ByheartError as error:
                yield batch
                error.message = Hint(f"item {number}: ", error.message)
                raise
            chars += len(batch[-1].content)
            if limits.are_reached(len(batch), chars):
                # The caller saves the batch before it asks for the next one.
                started = time.perf_counter()
                yield batch
                limits.follow(time.perf_counter() - started)
                batch, chars = [], 0
        yield batch

    def keep(
        self,
        batches: Iterable[Sequence[SaveRequest]],
        keep: Keep,
        on_progress: OnProgress | None,
    ) -> list[SaveResult]:
        """Save one batch after another, and report the progress after each."""
        with self._saver.long_run():
            return self._keep(batches, keep, on_progress)

    def _keep(
        self,
        batches: Iterable[Sequence[SaveRequest]],
        keep: Keep,
        on_progress: OnProgress | None,
    ) -> list[SaveResult]:
        results: list[SaveResult] = []
        progress, unrefreshed = Progress(), 0
        spaces: set[str] = set()
        for batch in batches:
            try:
                saved = keep(batch, progress.while_embedding(on_progress))
            except TooManyChunks as error:
                # As with any invalid item, save the items before it.
                at = [each.content_hash for each in batch].index(error.content_hash)
                self._keep([batch[:at]], keep, on_progress)
                error.message = Hint(f"item {len(results) + at}: ", error.message)
                raise
            for request, result in zip(batch, saved, strict=True):
                self._observer.saved(request.space, result.status)
            results += saved
            spaces.update(request.space for request in batch)
            progress = progress.plus(saved)
            unrefreshed += sum(each.chunks for each in saved if each.status == "created")
            if unrefreshed >= _REFRESH_EVERY_CHUNKS:
                self._storage.refresh(*spaces)
                spaces.clear()
                unrefreshed = 0
            with contextlib.suppress(StoreError):
                space = transactions.one_space(request.space for request in batch)
                with self._storage.reading(space) as reader:
                    is_due = self._saver.must_prune(reader)
                if is_due:
                    self._saver.prune()
            if on_progress is not None:
                on_progress(progress)
        if spaces:
            self._storage.refresh(*spaces)
        return results
