"""Name verbs of a store with what they need, and describe the rows of a space."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from byheart.storage.postgres.address import Address
from byheart.store import MemoryStore

TEXTS = (
    "Ada Lovelace wrote the first program for the engine.",
    "The engine stands in the museum of London.",
    "Charles drew the plans of the engine on paper.",
)
_LINES = [json.dumps({"content": f"Imported text number {n} about rivers."}) for n in range(3)]

Ids = list[str]


@dataclass(frozen=True)
class Case:
    """A verb: how to prepare its space, and how to call it.

    `atomic` means that it changes all of its rows or none, `single` that nothing follows after that
    in another transaction.
    """

    name: str
    call: Callable[[MemoryStore, str, Ids, Path], Any]
    prepare: Callable[[MemoryStore, str], Ids]
    atomic: bool = True
    single: bool = True


def nothing(_store: MemoryStore, _space: str) -> Ids:
    return []


def texts(store: MemoryStore, space: str) -> Ids:
    items = [{"content": f"{text} In {space}.", "space": space} for text in TEXTS]
    return [each.memory_id for each in store.save_many(items)]


def forgotten(store: MemoryStore, space: str) -> Ids:
    ids = texts(store, space)
    store.forget(ids[0], space=space)
    return ids


def turns(store: MemoryStore, space: str) -> Ids:
    texts(store, space)
    items = [
        {"session_id": "s", "role": "user", "content": f"Where is engine {n}?", "space": space}
        for n in range(2)
    ]
    return [each.memory_id for each in store.log_many(items)]


def import_(store: MemoryStore, space: str, _ids: Ids, _folder: Path) -> None:
    lines = [json.dumps({**json.loads(line), "space": space}) for line in _LINES]
    store.import_(io.BytesIO("\n".join(lines).encode()))


def index(store: MemoryStore, space: str, _ids: Ids, folder: Path) -> None:
    root = folder / "files"
    root.mkdir(exist_ok=True)
    for number in range(3):
        (root / f"{number}.md").write_text(f"# File {number}\n\nWords of file {number}.\n")
    store.index(root, space=space)


def _save_many(store: MemoryStore, space: str, _ids: Ids, _folder: Path) -> None:
    store.save_many([{"content": f"One of many, number {n}.", "space": space} for n in range(4)])


def _log_many(store: MemoryStore, space: str, _ids: Ids, _folder: Path) -> None:
    given = {"session_id": "s", "role": "user", "space": space}
    store.log_many([{**given, "content": f"Turn {n}.", "client_id": f"c{n}"} for n in range(3)])


WRITES = [
    Case("save in a new space", lambda s, p, _i, _f: s.save("A new text.", space=p), nothing),
    Case("save", lambda s, p, _i, _f: s.save("A new text.", tags=["a"], space=p), texts),
    Case("save_many", _save_many, texts, single=False),
    Case("update", lambda s, p, i, _f: s.update(i[0], content="Other words.", space=p), texts),
    Case("update tags", lambda s, p, i, _f: s.update(i[0], tags=["b", "c"], space=p), texts),
    Case("forget", lambda s, p, i, _f: s.forget(i[:2], space=p), texts),
    # Traces are searched for when the rows are gone; many texts are looked at once more at the end.
    Case(
        "forget hard",
        lambda s, p, i, _f: s.forget(i[0], hard=True, space=p),
        texts,
        single=False,
    ),
    Case("restore", lambda s, p, i, _f: s.restore(i[0], space=p), forgotten),
    Case("pin", lambda s, p, i, _f: s.pin(i[0], space=p), texts),
    Case("supersede", lambda s, p, i, _f: s.supersede(i[0], by=i[1], space=p), texts),
    Case("merge", lambda s, p, i, _f: s.admin.merge(i[0], i[1:], space=p), texts),
    Case("log", lambda s, p, _i, _f: s.log("s", "user", "A turn.", client_id="x", space=p), turns),
    Case("log_many", _log_many, turns, single=False),
    Case(
        "sessions.forget",
        lambda s, p, _i, _f: s.sessions.forget("s", dry_run=False, space=p),
        turns,
    ),
    Case("index", index, nothing, atomic=False),
    Case("import_", import_, texts, atomic=False),
]
READS = [
    Case("search", lambda s, p, _i, _f: s.search("engine", space=p), texts),
    Case("search raw", lambda s, p, _i, _f: s.search("eng*", raw=True, space=p), texts),
    Case("recall", lambda s, p, _i, _f: s.recall("engine", space=p), texts),
    Case("context", lambda s, p, _i, _f: s.context("s", "engine", space=p), turns),
    Case("get", lambda s, p, i, _f: s.get(i[0], space=p), texts),
    Case("history", lambda s, p, i, _f: s.history(i[0], space=p), texts),
    Case("list", lambda s, p, _i, _f: s.list(space=p), texts),
    Case("status", lambda s, p, _i, _f: s.status(space=p), texts),
    Case("stats", lambda s, p, _i, _f: s.admin.stats(space=p), texts),
    Case("export", lambda s, p, _i, _f: s.export(io.BytesIO(), vectors=True, space=p), texts),
    Case("transcript", lambda s, p, _i, _f: s.sessions.transcript("s", space=p), turns),
]

# Identity, time and use of a memory differ from one space to the next.
_MEMORIES = """
    SELECT (to_jsonb(m) - '{part,memory_no,memory_id,space,created_at,updated_at,since_at,
        accessed_at,access_count,content_hash,summary,title,metadata,path,derived}'::text[])
        || jsonb_build_object(
            'forgotten_at', forgotten_at IS NOT NULL, 'replaced_at', replaced_at IS NOT NULL,
            'pinned_at', pinned_at IS NOT NULL, 'superseded_at', superseded_at IS NOT NULL,
            'superseded_by', superseded_by IS NOT NULL, 'version_of', version_of IS NOT NULL,
            'valid_until', valid_until IS NOT NULL, 'untrusted_at', untrusted_at IS NOT NULL),
        (SELECT string_agg(replace(content, $1, ''), '|' ORDER BY chunk_index)
            FROM chunks c WHERE c.memory_no = m.memory_no),
        (SELECT string_agg(tag, '|' ORDER BY tag) FROM tags t WHERE t.memory_no = m.memory_no),
        (SELECT string_agg(operation, '|' ORDER BY history_no)
            FROM history h WHERE h.memory_no = m.memory_no),
        (SELECT count(*) FROM memory_entities e WHERE e.memory_no = m.memory_no),
        (SELECT count(*) FROM chunks JOIN vectors USING (chunk_no) WHERE memory_no = m.memory_no),
        (SELECT count(*) FROM chunks JOIN chunk_words USING (chunk_no)
            WHERE memory_no = m.memory_no)
    FROM memories m WHERE space = $1"""
_COUNTED = ("tombstones", "workspaces", "bookmarks", "entities", "entity_aliases")


def describe(address: Address, space: str) -> list[str]:
    """Describe all rows of a space, without anything that differs between equal spaces."""
    with psycopg.connect(address.conninfo, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(f"SET search_path = {address.schema}".encode())
        rows = connection.execute(_MEMORIES, (space,)).fetchall()
        counts = [
            (table, *row)
            for table in _COUNTED
            for row in connection.execute(
                f"SELECT count(*) FROM {table} WHERE space = $1".encode(), (space,)
            ).fetchall()
        ]
    return sorted(json.dumps(each, sort_keys=True) for each in [*rows, *counts])
