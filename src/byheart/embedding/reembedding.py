"""Make vectors of another model beside the old ones, and switch to it when all are made.

record the model → embed the chunks that lack its vectors, in batches → switch → drop old vectors

Saves and searches use the old model in the meantime. Each batch is stored, so an interrupted run
continues from there. Chunks that the new model refuses keep waiting for vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from byheart.contracts import Model, PendingChunk, Storage
from byheart.embedding import stored_vectors
from byheart.embedding.vectorizer import Maker, Passage, Vectorizer, previous_text
from byheart.errors import Conflict, Do, EmbedderUnavailable, EmbeddingError, Hint, join_hints
from byheart.model import Reembedding

OnProgress = Callable[[int, int], None]

_BATCH_CHUNKS = 128
_FIX, _DROP = Do("admin.doctor", fix=True), Do("admin.doctor", optimize=True)
# After this many switches prevented by a concurrent save, switch first and embed its chunks later.
_MOST_ATTEMPTS = 20


class Reembedder:
    """Move a store from one model to another."""

    def __init__(self, storage: Storage, vectorizer: Vectorizer) -> None:
        self._storage = storage
        self._vectorizer = vectorizer

    def reembed(self, on_progress: OnProgress | None, *, keep_old: bool) -> Reembedding:
        """Make all vectors of the configured model, then switch searches to it."""
        before = stored_vectors.read(self._storage).in_use()
        maker = self._vectorizer.wanted_maker()
        stored_vectors.begin(self._storage, maker.model)
        if before == maker.model:
            waiting = stored_vectors.count_waiting(self._storage)
            return self._report(before, before, maker, False, waiting, keep_old)
        try:
            waiting = _Run(self._storage, maker, on_progress).switch()
        except EmbeddingError as error:
            lacking, total = stored_vectors.count_lacking(self._storage, maker.model)
            raise EmbedderUnavailable(
                Hint(
                    error.message,
                    f": {total - lacking:,} of {total:,} chunks have vectors of "
                    f"{maker.model.name}, and the store is searched as before",
                ),
                Hint(
                    error.hint, "; then " if error.hint else "", "go on with: ", Do("admin.reembed")
                ),
            ) from error
        self._storage.refresh()
        return self._report(before, maker.model, maker, True, waiting, keep_old)

    def roll_back(self, *, keep_old: bool) -> Reembedding:
        """Switch searches back to the model used before the last switch, at once."""
        models = stored_vectors.read(self._storage)
        before, previous = models.in_use(), models.find(models.previous)
        if previous is None:
            raise Conflict(
                "there is no earlier model to go back to: the store never switched, or the earlier "
                "vectors were dropped",
                Hint(
                    "name the model in the settings, and make its vectors with: ",
                    Do("admin.reembed"),
                ),
            )
        waiting = stored_vectors.switch(self._storage, previous, None)
        self._storage.refresh()
        return self._report(before, previous, None, True, waiting or 0, keep_old)

    def _report(
        self,
        before: Model | None,
        now: Model,
        maker: Maker | None,
        switched: bool,
        waiting: int,
        keep_old: bool,
    ) -> Reembedding:
        dropped = 0 if keep_old else stored_vectors.drop_unused(self._storage, next_too=True)
        old = stored_vectors.count_unused(self._storage)
        _, chunks = stored_vectors.count_lacking(self._storage, now)
        wanted = self._vectorizer.wanted_name()
        told = [
            f"the store is searched by {now.name}" + ("" if switched else " already"),
            _tell_waiting(waiting, None if maker is None else maker.refusal) if waiting else "",
            f"the settings still name {wanted}: change them, or reembed switches again"
            if wanted != now.name
            else "",
            f"{dropped:,} vectors of other models were dropped" if dropped else "",
            Hint(f"{old:,} vectors of other models are kept: drop them with: ", _DROP)
            if old
            else "",
        ]
        return Reembedding(
            model_from=None if before is None else before.name,
            model_to=now.name,
            switched=switched,
            chunks=chunks,
            made=0 if maker is None else maker.made,
            reused=0 if maker is None else maker.reused,
            pending_vectors=waiting,
            old_vectors=old,
            message=join_hints("; ", told) or "",
        )


def _tell_waiting(waiting: int, refusal: str | None) -> str:
    if refusal is None:
        return Hint(f"{waiting:,} chunks wait for vectors: make them with: ", _FIX)
    return Hint(
        f"{waiting:,} chunks are found by keyword only, since the embedder refuses them: ",
        refusal,
        " (ask again, and see which they are, with: ",
        _FIX,
        ")",
    )


class _Run:
    """Run one pass over a store: make the missing vectors, then switch."""

    def __init__(self, storage: Storage, maker: Maker, on_progress: OnProgress | None) -> None:
        self._storage = storage
        self._maker = maker
        self._on_progress = on_progress
        lacking, self._total = stored_vectors.count_lacking(self._storage, maker.model)
        self._done = self._total - lacking
        self._last = 0

    def switch(self) -> int:
        """Make the missing vectors and switch; return how many chunks still have no vectors."""
        attempt = fruitless = 0
        waiting = None
        while waiting is None:
            fruitless = 0 if self._fill() else fruitless + 1
            most = self._most_lacking(attempt, fruitless)
            waiting = stored_vectors.switch(self._storage, self._maker.model, most)
            if waiting is None and fruitless:
                self._start_over(fruitless)
            attempt += 1
        return max(waiting - self._fill(), 0) if waiting else 0

    def _most_lacking(self, attempt: int, fruitless: int) -> int | None:
        """Return how many chunks may lack vectors at the switch; None allows any number."""
        if fruitless > 1 and self._maker.refusal is not None:
            lacking, total = stored_vectors.count_lacking(self._storage, self._maker.model)
            if lacking < total:  # do not switch to a model that refuses every text
                return None
        # Do not wait forever for a process that saves without a pause.
        return 0 if attempt < _MOST_ATTEMPTS else _BATCH_CHUNKS

    def _start_over(self, fruitless: int) -> None:
        """Check every chunk again, because vectors made before may have been dropped meanwhile."""
        if fruitless > 1:
            told = f"the embedder {self._maker.model.name} makes no vectors of some chunks"
            raise EmbeddingError(join_hints(": ", (told, self._maker.refusal)) or told)
        self._last = 0

    def _fill(self) -> int:
        """Make the vectors of all chunks after the last processed one, and count the vectors."""
        made = 0
        self._show()
        while batch := self._next_batch():
            wanted = [
                Passage(each.chunk, previous_text(each.chunk, each.before), each.title)
                for each in batch
            ]
            windows = self._maker.windows(self._maker.look_up(wanted, None))
            by_chunk = zip(batch, windows, strict=True)
            made += stored_vectors.add_beside(self._storage, self._maker.model, by_chunk)
            self._last = batch[-1].chunk_no
            self._done += len(batch)
            self._show()
        return made

    def _next_batch(self) -> list[PendingChunk]:
        with self._storage.reading() as reader:
            return reader.models.lacking(self._maker.model, _BATCH_CHUNKS, self._last)

    def _show(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._total, self._done))
