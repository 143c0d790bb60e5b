"""Export, import, export: the same bytes, whatever the store went through."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import ByheartError, EmbedderUnavailable
from byheart.memory import notes
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from byheart.transfer.jsonl import _COLUMNS, _SELDOM
from tests.empty_store import make_empty

TEXTS = st.sampled_from(
    [
        "apple pie with cinnamon",
        "Windows lines\r\nend like this.\r\n\r\n# Not a heading?\r\n\r\nText.",
        "# Fruit\n\nPears.\n\n## Stone > fruit\n\nPlums and cherries.\n\n# Fruit\n\nAgain.\n",
        "記憶 and \u2028 line separators \x85 \x00 \x7f, 🍐 emoji",
        "\ufeffwith a byte order mark",
        "# Long\n\n" + "\n\n".join(f"Cherry {n}. {'Words follow. ' * 60}" for n in range(4)),
        "def f():\n    return 1\n",
        "Anna met Bob and `getUserName` in #berlin.",
    ]
) | st.text(min_size=1, max_size=60).filter(
    lambda text: text.strip() and not any(0xD800 <= ord(char) < 0xE000 for char in text)
)
LABELS = st.sampled_from(["a", "Ä", "two words", "記", "#hash", "Straße", "STRASSE", "x@y"])
MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["é", "\u2028", "\x00", '"\\']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LABELS, inner, max_size=3),
    max_leaves=5,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "title": LABELS,
    "summary": LABELS,
    "source": LABELS,
    "agent_id": LABELS,
    "session_iter": st.integers(0, 10**8),
    "task_code": LABELS,
    "path": LABELS,
    "tags": st.lists(LABELS, max_size=4),
    "entities": st.lists(LABELS, max_size=4),
    "importance": st.floats(0, 10),
    "expires_at": MOMENTS,
    "metadata": st.dictionaries(LABELS, JSON, max_size=3),
}
SAVES = st.fixed_dictionaries(
    {"content": TEXTS},
    optional={
        **FIELDS,
        "kind": st.sampled_from(["note", "fact"]),
        "session_id": st.sampled_from(["s1", "s2"]),
        "space": st.sampled_from(["default", "other"]),
    },
)
UPDATES = st.fixed_dictionaries({}, optional={"content": TEXTS, **FIELDS})
NUMBERS = st.integers(0, 7)
STEPS = st.lists(
    st.tuples(st.just("save"), SAVES)
    | st.tuples(st.just("update"), NUMBERS, UPDATES)
    | st.tuples(st.just("forget"), NUMBERS)
    | st.tuples(st.just("erase"), NUMBERS)
    | st.tuples(st.just("restore"), NUMBERS)
    | st.tuples(st.just("supersede"), NUMBERS, NUMBERS)
    | st.tuples(st.just("access"), NUMBERS)
    | st.tuples(st.just("rename"), LABELS, LABELS)
    | st.tuples(st.just("lose provider"), st.booleans()),
    min_size=3,
    max_size=14,
)


class MoodyEmbedder(HashEmbedder):
    down = False

    def embed(self, texts: Any) -> Any:
        if self.down:
            raise EmbedderUnavailable("down")
        return super().embed(texts)


class Life:
    """A store and the ids of what was saved in it."""

    def __init__(self, store: MemoryStore, storage: SqliteStorage, embedder: MoodyEmbedder) -> None:
        self.store, self.storage, self.embedder = store, storage, embedder
        self.known: list[tuple[str, str]] = []

    def take(self, step: tuple[Any, ...]) -> None:
        verb, *rest = step
        if verb == "save":
            space = rest[0].get("space", "default")
            self.known.append((self.store.save(**rest[0]).memory_id, space))
        elif verb == "lose provider":
            self.embedder.down = rest[0]
        elif verb == "rename":
            self.store.entities.rename(*rest)
        elif self.known:
            memory_id, space = self.known[rest[0] % len(self.known)]
            actions: dict[str, Callable[[], object]] = {
                "update": lambda: self.store.update(memory_id, space=space, **rest[1]),
                "forget": lambda: self.store.forget(memory_id, space=space),
                "erase": lambda: self.store.forget(memory_id, hard=True, space=space),
                "restore": lambda: self.store.restore(memory_id, space=space),
                "supersede": lambda: self.store.supersede(
                    memory_id, self.known[rest[1] % len(self.known)][0], space=space
                ),
                "access": lambda: self.storage.note(notes.accesses([memory_id], space)),
            }
            actions[verb]()


def open_at(path: Path, embedder: HashEmbedder) -> tuple[MemoryStore, SqliteStorage]:
    make_empty(path)
    storage = SqliteStorage(path)
    chosen = load_settings(
        {"chunk_tokens": 40, "prune_after_days": 10_000, "embedding_provider": "hash"},
        environ={},
        config_path=path.parent / "none",
    )
    return MemoryStore(storage, embedder, chosen), storage


def exported(store: MemoryStore, *, vectors: bool) -> bytes:
    out = io.BytesIO()
    store.export(out, vectors=vectors, all_spaces=True)
    return out.getvalue()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_an_export_imported_and_exported_again_is_the_same_to_the_byte(
    steps: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        embedder = MoodyEmbedder(16)
        store, storage = open_at(Path(folder) / "first.db", embedder)
        life = Life(store, storage, embedder)
        for step in steps:
            with suppress(ByheartError):  # what cannot be done is not done
                life.take(step)
        embedder.down = False
        for vectors in (False, True):
            before = exported(store, vectors=vectors)
            second, _ = open_at(Path(folder) / f"second-{vectors}.db", HashEmbedder(16))
            result = second.import_(io.BytesIO(before), embed=False)
            assert (result.unchanged, result.refused, result.skipped) == (0, 0, ())
            assert exported(second, vectors=vectors) == before
            again = second.import_(io.BytesIO(before), embed=False)
            assert (again.imported, again.unchanged) == (0, result.imported)
            assert exported(second, vectors=vectors) == before
            second.admin.embed_pending()
            assert [each for each in second.admin.doctor() if not each.ok] == []
            second.close()
        store.close()


def test_spaces_in_which_texts_were_saved_in_turn_are_exported_the_same_again(
    tmp_path: Path,
) -> None:
    first, _ = open_at(tmp_path / "first.db", HashEmbedder(16))
    second, _ = open_at(tmp_path / "second.db", HashEmbedder(16))
    for number, space in enumerate(("work", "home", "work", "home")):
        first.save(f"text {number} of Anna {number}", space=space, entities=[f"Anna {number}"])
    before = exported(first, vectors=False)
    second.import_(io.BytesIO(before), embed=False)
    assert exported(second, vectors=False) == before


def test_every_column_of_a_memory_is_in_the_export(store: MemoryStore, path: Path) -> None:
    store.save("text")
    elsewhere = {"memory_no", "memory_id", "space", "content_hash", "version_of"}
    elsewhere.add("lapsed_at")  # in a time that only this store counts
    columns = {row[1] for row in apsw.Connection(str(path)).execute("PRAGMA table_info(memories)")}
    assert columns - elsewhere == {*_COLUMNS, *_SELDOM} - {"tags", "entities"}


def test_the_file_has_no_internal_numbers_no_paths_and_no_time_of_its_own(
    store: MemoryStore, path: Path
) -> None:
    store.save("text")
    first = exported(store, vectors=True)
    assert exported(store, vectors=True) == first
    assert b"_no" not in first
    assert str(path.parent).encode() not in first


def test_what_was_imported_is_found_as_before(
    store: MemoryStore, open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    saved = store.save("# Tea\n\nAnna drinks tea.\n\n# Coffee\n\nBob drinks coffee.\n")
    store.update(saved.memory_id, content="# Tea\n\nAnna drinks juice.\n\n# Coffee\n\nBob does.\n")
    before = datetime.now(UTC)
    store.export(tmp_path / "all.jsonl", vectors=True)
    other = open_store(tmp_path / "other.db")
    other.import_(tmp_path / "all.jsonl")
    for query in ({"query": "juice"}, {"query": "tea", "as_of": before - timedelta(days=-1)}):
        ours, theirs = store.search(**query), other.search(**query)
        assert [each.chunk_id for each in theirs.results] == [
            each.chunk_id for each in ours.results
        ]
    assert other.history(saved.memory_id) == store.history(saved.memory_id)
    assert other.get(saved.memory_id) == store.get(saved.memory_id)


@pytest.mark.slow
def test_a_large_memory_goes_through_whole(
    store: MemoryStore, open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    text = "".join(f"## Part {n}\n\n{'Words of it. ' * 50}\n\n" for n in range(500))
    saved = store.save(text)
    store.export(tmp_path / "all.jsonl")
    other = open_store(tmp_path / "other.db")
    assert other.import_(tmp_path / "all.jsonl").imported == 1
    assert other.get(saved.memory_id).content == text
