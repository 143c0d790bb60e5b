"""Define the verbs about folders whose files are memories: `store.workspaces`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from byheart.embedding import stored_vectors
from byheart.errors import InvalidInput
from byheart.model import Indexed, IndexProgress, Workspace
from byheart.model import checks as check
from byheart.system.forks import RefusedInChild
from byheart.verbs.engine import Engine

if TYPE_CHECKING:
    from byheart.workspace.indexing import Indexer

Text = str | None


class WorkspaceVerbs(RefusedInChild):
    """List, watch and drop workspaces; `store.index` adds one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self, space: Text = None) -> tuple[Workspace, ...]:
        """List the folders whose files are memories, and the process that watches each."""
        where = self._engine.space(space)
        with self._engine.storage.reading(where) as reader:
            return tuple(reader.workspaces.roots(where))

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
        engine, indexer = self._engine, _make_indexer(self._engine)
        place = replace(indexer.find(path, engine.space(space)), below="")
        watcher = Watcher(engine.storage, indexer, engine.saver, place, on_indexed, on_turn)
        stop = threading.Event() if stop is None else stop
        engine.watches[stop] = ended = threading.Event()
        try:
            watcher.run(stop)
        finally:
            ended.set()
            del engine.watches[stop]

    def drop(self, path: str | Path, space: Text = None) -> int:
        """Remove a workspace; forget its memories, which can be restored, and count them."""
        indexer = _make_indexer(self._engine)
        place = indexer.find(path, self._engine.space(space), add=False)
        if place.below:
            raise InvalidInput(
                f"{path} is only a part of the workspace {place.root}", f"name {place.root}"
            )
        return indexer.drop(place)


def index(
    engine: Engine,
    path: str | Path,
    prune: bool,
    embed: bool,
    on_progress: Callable[[IndexProgress], None] | None,
    space: Text,
) -> Indexed:
    """Turn the changed files of a folder into memories, then make their vectors."""
    started = time.perf_counter()
    check.check_callback("on_progress", on_progress)
    indexer = _make_indexer(engine)
    place = indexer.find(path, engine.space(space))
    result = indexer.index(place, check.check_bool("prune", prune), on_progress)
    engine.observer.saved(place.space, "created", result.files_indexed)
    engine.storage.refresh(place.space)

    def show(made: int, waiting: int) -> None:
        if on_progress is not None:
            files = result.files_indexed
            on_progress(IndexProgress(files, files, result.chunks, made, waiting))

    reason = engine.embed_waiting(show) if check.check_bool("embed", embed) else None
    return replace(
        result,
        pending_vectors=stored_vectors.count_waiting(engine.storage),
        degraded=reason,
        elapsed_ms=(time.perf_counter() - started) * 1000,
    )


def _make_indexer(engine: Engine) -> Indexer:
    # Imported here, because saving and searching do not need the readers of files.
    from byheart.workspace.indexing import Indexer

    return Indexer(engine.storage, engine.saver, engine.vectorizer, engine.settings)
