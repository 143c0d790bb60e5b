"""Every verb of a store, called once with ordinary input: what fuzz targets ask of it."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from byheart.store import MemoryStore

Ask = Callable[[MemoryStore], Any]


def _export_markdown(store: MemoryStore) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return store.export(Path(folder) / "vault", format="markdown")


def _back_up(store: MemoryStore) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return store.admin.backup(Path(folder) / "copy.db")


def _import(store: MemoryStore) -> Any:
    out = io.BytesIO()
    store.export(out)
    out.seek(0)
    return store.import_(out)


def reading(memory_id: str) -> Iterator[tuple[str, Ask]]:
    """Name the verbs that change nothing."""
    yield "status", lambda s: s.status()
    yield "stats", lambda s: s.admin.stats()
    yield "search", lambda s: s.search("topic", limit=100)
    yield "search fts", lambda s: s.search("topic", mode="fts", limit=100, explain=True)
    yield "search vector", lambda s: s.search("topic", mode="vector", limit=100)
    yield "search raw", lambda s: s.search("topic", raw=True)
    yield "search medium", lambda s: s.search("topic", granularity="medium", limit=50)
    yield "search coarse", lambda s: s.search("topic", granularity="coarse", limit=50)
    yield "search listing", lambda s: s.search("", granularity="coarse", limit=50)
    yield "search tags", lambda s: s.search("topic", tags=["all"], limit=100)
    yield "search as_of", lambda s: s.search("topic", as_of="yesterday")
    yield "recall", lambda s: s.recall("topic", max_tokens=4000)
    yield "context", lambda s: s.context("chat", "topic")
    yield "get", lambda s: s.get(memory_id)
    yield "get path", lambda s: s.get("nowhere/at/all.py")
    yield "expand", lambda s: s.expand(f"{memory_id}#0")
    yield "history", lambda s: s.history(memory_id)
    yield "list", lambda s: s.list(limit=100)
    yield "sessions", lambda s: s.sessions.list()
    yield "session_stats", lambda s: s.sessions.stats()
    yield "entities", lambda s: s.entities.list()
    yield "dedupe", lambda s: s.admin.dedupe()
    yield "workspaces", lambda s: s.workspaces.list()
    yield "export", lambda s: s.export(io.BytesIO())
    yield "export markdown", _export_markdown
    yield "backup", _back_up
    yield "transcript", lambda s: s.sessions.transcript("chat")
    yield "resume", lambda s: s.sessions.resume("chat")
    yield "remind", lambda s: s.remind("chat", "topic")
    yield "tokens", lambda s: s.api_keys.list()
    yield "check_token", lambda s: s.api_keys.check("bh_nobody")
    yield "reconstruct", lambda s: s.reconstruct(memory_id)
    yield "sessions_of", lambda s: s.sessions.of([memory_id])
    yield "bench", lambda s: s.admin.bench(questions=5)
    yield "cleanup", lambda s: s.admin.cleanup(dry_run=True)
    yield "doctor", lambda s: s.admin.doctor()


def writing(memory_id: str) -> Iterator[tuple[str, Ask]]:
    """Name the verbs that change something."""
    yield "save", lambda s: s.save("one more topic to remember")
    yield "save_many", lambda s: s.save_many([{"content": "a topic"}, {"content": "its twin"}])
    yield "log", lambda s: s.log("chat", "user", "and what about that topic?")
    yield "update title", lambda s: s.update(memory_id, title="Another")
    yield "update", lambda s: s.update(memory_id, content="the topic is another")
    yield "pin", lambda s: s.pin(memory_id)
    yield "summarize", lambda s: s.sessions.summarize("chat", "they spoke about a topic")
    yield "promote", lambda s: s.sessions.promote("chat", memory_id=memory_id)
    yield "rename_entity", lambda s: s.entities.rename("Entity 1", "Entity One")
    yield "create_token", lambda s: s.api_keys.create("somebody")
    yield "forget_session", lambda s: s.sessions.forget("chat")
    yield "forget", lambda s: s.forget(memory_id)
    yield "restore", lambda s: s.restore(memory_id)
    yield "forget hard", lambda s: s.forget(memory_id, hard=True)
    yield "import", _import
    yield "embed_pending", lambda s: s.admin.embed_pending()
    yield "optimize", lambda s: s.admin.doctor(optimize=True)
    yield "fix", lambda s: s.admin.doctor(fix=True)
    yield "rebuild", lambda s: s.admin.doctor(rebuild=True)
