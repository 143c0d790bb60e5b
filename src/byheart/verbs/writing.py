"""Save texts and record turns, one or many."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from byheart.contracts import Reader
from byheart.conversation.turns import check_logged
from byheart.errors import StoreError
from byheart.memory import duplicates
from byheart.memory.batches import Progress
from byheart.memory.save_requests import check_saved
from byheart.model import SaveResult
from byheart.model import checks as check
from byheart.verbs.engine import Engine

Show = Callable[[Progress], None] | None

# The number of similar memories that a save names, and of those that may contradict it.
_MOST_SIMILAR, _MOST_COMPARED = 5, 16
# Sentences about one subject are at least this similar: port 8080 and port 8081 have .9.
_SAME_SUBJECT = 0.6


def save(engine: Engine, given: Mapping[str, Any], on_progress: Show) -> SaveResult:
    """Save one text, and name the memories that say almost the same."""
    request = check_saved(given, engine.settings)
    show = check.check_callback("on_progress", on_progress)
    [result] = engine.saver.save([request], Progress().while_embedding(show))
    engine.observer.saved(request.space, result.status)
    # The memory is already saved: an error in older memories must not look like its failure.
    with contextlib.suppress(StoreError):
        is_compared = result.status == "created" and not result.pending_vectors
        is_compared = is_compared and engine.settings.notice_similar
        opened = _comparing(engine, result.memory_id, request.space) if is_compared else None
        with opened or engine.storage.reading(request.space) as reader:
            if is_compared:
                result = _with_similar(engine, reader, result, request.content, request.space)
            must_prune = engine.saver.must_prune(reader)
        if must_prune:
            engine.saver.prune()
    return result


def _comparing(engine: Engine, memory_id: str, space: str) -> AbstractContextManager[Reader]:
    """Open a space to compare a memory, and ask at once for all that follows."""

    def expect(reader: Reader) -> None:
        reader.prefetch(lambda: reader.states([memory_id], space))
        engine.saver.prefetch_prune(reader)

    return engine.storage.searching(space, expect)


def _with_similar(
    engine: Engine, reader: Reader, result: SaveResult, content: str, space: str
) -> SaveResult:
    """Add the stored memories that say almost the same, and those that contradict the text."""
    least = engine.settings.similar_threshold
    near = duplicates.find_similar(
        reader, result.memory_id, space, min(least, _SAME_SUBJECT), _MOST_COMPARED
    )
    similar = [each for each in near if each.similarity >= least][:_MOST_SIMILAR]
    conflicts = duplicates.find_contradictions(content, near)
    return replace(result, similar=tuple(similar), conflicts=tuple(conflicts))


def save_many(
    engine: Engine, items: Iterable[Mapping[str, Any]], on_progress: Show, check_first: bool
) -> list[SaveResult]:
    """Save many texts in batches."""
    batches = engine.batcher.check(items, check_saved, check_first)
    show = check.check_callback("on_progress", on_progress)
    return engine.batcher.keep(batches, engine.saver.save, show)


def log(engine: Engine, given: Mapping[str, Any]) -> SaveResult:
    """Record a turn of a session."""
    turn = check_logged(given, engine.settings)
    [result] = engine.recorder.keep([turn])
    engine.observer.saved(turn.space, result.status)
    return result


def log_many(
    engine: Engine, items: Iterable[Mapping[str, Any]], on_progress: Show, check_first: bool
) -> list[SaveResult]:
    """Record many turns in batches."""
    show = check.check_callback("on_progress", on_progress)
    batches = engine.batcher.check(items, check_logged, check_first)
    kept = engine.recorder.until_other_words(batches)
    sound = list(kept) if check_first else kept
    return engine.batcher.keep(sound, engine.recorder.keep, show)
