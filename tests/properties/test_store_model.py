"""The store against a plain dictionary: whatever is done in whatever order, both agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import EmbedderUnavailable, NotFound
from byheart.memory.erasing import erase
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

TEXTS = [
    "apple pie with cinnamon",
    "The apple falls not far from the tree.",
    "# Fruit\n\nPears and apples.\n\n## Stone fruit\n\nPlums and cherries.\n",
    "getUserName returns 記憶 and more",
    "pear",
    "# Long\n\n" + "\n\n".join(f"Cherry number {n}. {'Words follow. ' * 40}" for n in range(4)),
]
SPACES, SESSIONS, KINDS = ("default", "other"), (None, "s1", "s2"), ("note", "fact")
QUERIES = ("apple user 記憶", "cherry plum words follow number")

# Every row that belongs to nothing, in any table.
_MISSING = "SELECT count(*) FROM {} WHERE {} NOT IN (SELECT {} FROM {})"
ORPHANS = {
    **{
        f"{table}: {column} in {home}.{key}": _MISSING.format(table, column, key, home)
        for table, column, key, home in (
            ("chunks", "memory_no", "memory_no", "memories"),
            ("memories", "memory_no", "memory_no", "chunks"),
            ("chunk_words", "rowid", "chunk_no", "chunks"),
            ("chunks", "chunk_no", "rowid", "chunk_words"),
            ("vectors", "chunk_no", "chunk_no", "chunks"),
            ("pending_vectors", "chunk_no", "chunk_no", "chunks"),
            ("tags", "memory_no", "memory_no", "memories"),
            ("entities", "entity_no", "entity_no", "memory_entities"),
            ("memory_entities", "memory_no", "memory_no", "memories"),
            ("memory_entities", "entity_no", "entity_no", "entities"),
            ("history", "memory_no", "memory_no", "memories"),
            ("memories", "memory_no", "memory_no", "history"),
        )
    },
    "both": "SELECT count(*) FROM pending_vectors JOIN vectors USING (chunk_no)",
    "neither": (
        "SELECT count(*) FROM chunks WHERE chunk_no NOT IN (SELECT chunk_no FROM vectors) "
        "AND chunk_no NOT IN (SELECT chunk_no FROM pending_vectors)"
    ),
}


class SwitchableEmbedder(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(32)
        self.down = False

    def embed(self, texts: Any) -> Any:
        if self.down:
            raise EmbedderUnavailable("down")
        return super().embed(texts)

    def embed_query(self, text: str) -> Any:
        return HashEmbedder.embed(self, [text])[0]  # questions are answered even while it is down


Key = tuple[str, str | None, str, str]


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="byheart-model-"))
        self.path = self.folder / "memory.db"
        self.embedder = SwitchableEmbedder()
        self.settings = load_settings(
            {"chunk_tokens": 64, "embedding_provider": "hash"},
            environ={},
            config_path=self.folder / "none",
        )
        self.model: dict[Key, dict[str, Any]] = {}
        self.pending: set[str] = set()
        self.steps = 0

    @property
    def is_checked(self) -> bool:
        """Say whether the costly invariants are checked after this step: after every fourth one."""
        return hasattr(self, "stores") and self.steps % 4 == 0

    @invariant()
    def steps_are_counted(self) -> None:
        self.steps += 1

    def open(self) -> MemoryStore:
        return MemoryStore(SqliteStorage(self.path), self.embedder, self.settings)

    @initialize()
    def start(self) -> None:
        # Two stores on one file stand for two processes: each has its own index.
        self.stores = [self.open(), self.open()]

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- What can happen ---

    def expect_saved(self, item: dict[str, Any], result: Any) -> None:
        key = (item["space"], item["session_id"], item["kind"], item["content"])
        if key in self.model:
            assert (result.status, result.memory_id) == ("unchanged", self.model[key]["memory_id"])
        else:
            assert result.status == "created"
            self.model[key] = {**item, "memory_id": result.memory_id, "chunks": result.chunks}
            # While the embedder is away, a text that was embedded before needs none.
            assert self.embedder.down or not result.pending_vectors
        self.pending = self.waiting()
        assert (result.memory_id in self.pending) == bool(result.pending_vectors)

    def waiting(self, wholly: bool = False) -> set[str]:
        """Name the memories that wait for vectors of some, or of all, of their chunks."""
        connection = apsw.Connection(str(self.path))
        rows = connection.execute(
            "SELECT memory_id FROM memories JOIN chunks USING (memory_no) "
            "LEFT JOIN pending_vectors p USING (chunk_no) GROUP BY memory_id "
            f"HAVING count(p.chunk_no) {'= count(*)' if wholly else '> 0'}"
        ).fetchall()
        connection.close()
        return {str(row[0]) for row in rows}

    items = st.fixed_dictionaries(
        {
            "content": st.sampled_from(TEXTS),
            "space": st.sampled_from(SPACES),
            "session_id": st.sampled_from(SESSIONS),
            "kind": st.sampled_from(KINDS),
            "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "entities": st.lists(st.sampled_from(["Ann", "ann", "Bob"]), max_size=2),
        }
    )
    which = st.integers(0, 1)

    @rule(item=items, which=which)
    def save(self, item: dict[str, Any], which: int) -> None:
        self.expect_saved(item, self.stores[which].save(**item))

    @rule(batch=st.lists(items, max_size=6), which=which)
    def save_many(self, batch: list[dict[str, Any]], which: int) -> None:
        for item, result in zip(batch, self.stores[which].save_many(batch), strict=True):
            self.expect_saved(item, result)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), which=which)
    def remove(self, data: st.DataObject, which: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.model, key=str)))
        memory_id = self.model.pop(key)["memory_id"]
        self.pending.discard(memory_id)
        ids = [memory_id, "mem_unheard_of"]
        removal = erase(self.stores[which]._storage, ids, key[0], tombstones=False)
        assert removal.memories == 1

    @rule(which=which)
    def switch_the_embedder(self, which: int) -> None:
        self.embedder.down = not self.embedder.down

    @rule(which=which)
    def embed_pending(self, which: int) -> None:
        if not self.embedder.down:
            self.stores[which].admin.embed_pending()
            self.pending.clear()
        elif self.pending:
            with pytest.raises(EmbedderUnavailable):
                self.stores[which].admin.embed_pending()

    @rule(which=which)
    def reopen(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = self.open()

    @rule(which=which)
    def rebuild(self, which: int) -> None:
        self.stores[which]._storage.rebuild()

    @rule(which=which)
    def optimize(self, which: int) -> None:
        self.stores[which]._storage.optimize()

    # --- What must always be true ---

    @invariant()
    def lists_and_texts_are_those_of_the_model(self) -> None:
        for store in getattr(self, "stores", ()):
            for space in SPACES:
                expected = {m["memory_id"]: m for m in self.model.values() if m["space"] == space}
                listed = {m.memory_id: m for m in store.list(limit=1000, space=space).memories}
                assert set(listed) == set(expected)
                for memory_id, fields in expected.items():
                    memory = listed[memory_id]
                    assert memory == store.get(memory_id, space=space)
                    for name in ("content", "kind", "session_id", "chunks"):
                        assert getattr(memory, name) == fields[name]
                    assert set(memory.tags) == set(fields["tags"])
                    keys = {name.casefold() for name in fields["entities"]}
                    assert {name.casefold() for name in memory.entities} == keys
                    for other in set(SPACES) - {space}:
                        with pytest.raises(NotFound):
                            store.get(memory_id, space=other)

    @invariant()
    def searches_find_what_the_model_holds(self) -> None:
        for store in getattr(self, "stores", ()):
            for space, session in (("default", None), ("default", "s1"), ("other", None)):
                inside = [
                    memory
                    for memory in self.model.values()
                    if memory["space"] == space
                    and (session is None or memory["session_id"] in (None, session))
                ]
                ask = {"space": space, "session_id": session, "limit": 1000}
                for word, stem in (("apple", "apple"), ("cherry", "cherr"), ("user", "user")):
                    found = store.search(word, mode="fts", granularity="coarse", **ask).results
                    assert {hit.memory_id for hit in found} == {
                        m["memory_id"] for m in inside if stem in m["content"].casefold()
                    }
                answer = store.search("apple", mode="vector", granularity="coarse", **ask)
                # A memory of many chunks may have some of its vectors already.
                embedded = {m["memory_id"] for m in inside} - self.waiting(wholly=True)
                assert {hit.memory_id for hit in answer.results} == embedded
                visible = {m["memory_id"] for m in inside}
                assert (answer.degraded is None) == (not visible & self.pending)
                tagged = store.search("apple", mode="fts", granularity="coarse", tags=["a"], **ask)
                assert {hit.memory_id for hit in tagged.results} == {
                    m["memory_id"]
                    for m in inside
                    if "a" in m["tags"] and "apple" in m["content"].casefold()
                }

    @invariant()
    def no_table_holds_an_orphan_and_the_keyword_index_is_sound(self) -> None:
        if not self.is_checked:
            return
        connection = apsw.Connection(str(self.path))
        for name, query in ORPHANS.items():
            assert connection.execute(query).get == 0, name
        connection.execute("INSERT INTO chunk_words (chunk_words) VALUES ('integrity-check')")
        connection.close()

    @invariant()
    def the_doctor_finds_nothing_but_waiting_vectors(self) -> None:
        for store in self.stores if self.is_checked else ():
            wrong = {finding.check for finding in store.admin.doctor() if not finding.ok}
            assert wrong == ({"vectors complete"} if self.pending else set())

    @invariant()
    def an_index_that_was_caught_up_answers_like_one_that_was_just_built(self) -> None:
        if not self.is_checked:
            return
        hidden = self.folder / "hidden"
        index = self.path.with_name("memory.db-index")
        if index.exists():
            index.rename(hidden)
        fresh = self.open()
        expected = self.answers(fresh)
        fresh._storage._backend.database.close()
        if hidden.exists():
            hidden.rename(index)
        for store in self.stores:
            assert self.answers(store) == expected

    def answers(self, store: MemoryStore) -> list[Any]:
        return [
            [
                (hit.memory_id, hit.score, hit.similarity)
                for hit in store.search(query, mode=mode, space=space, limit=100).results
            ]
            for query in QUERIES
            for mode in ("fts", "vector", "hybrid")
            for space in SPACES
        ]


StoreMachine.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking would take many minutes
    print_blob=True,
)


@pytest.mark.slow
class TestStoreAgainstADictionary(StoreMachine.TestCase):  # type: ignore[name-defined,misc]
    """Run the machine."""
