"""Memories living in two processes against a plain model: whatever is done, all three agree."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from byheart.errors import Conflict, InvalidInput, NotFound, VersionConflict
from byheart.store import MemoryStore
from tests.postgres_stores import postgres_store_url
from tests.properties.other_process import OtherProcess, open_here

LONG = "\n\n".join(f"Part {n} of the common story. {'It goes on. ' * 30}" for n in range(4))
TEXTS = [*(f"A common text about topic{n}." for n in range(12)), f"# Story\n\n{LONG}", LONG + "!"]
SESSIONS, KINDS = (None, "s1"), ("note", "fact")
MODES = ("fts", "vector", "hybrid")


@dataclass
class Life:
    """What the model knows of a memory."""

    content: str
    session_id: str | None
    kind: str
    importance: float
    title: str | None = None
    tags: frozenset[str] = frozenset()
    version: int = 1
    forgotten: bool = False
    superseded_by: str | None = None
    operations: list[str] = field(default_factory=lambda: ["create"])
    texts: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.session_id, self.kind, self.content

    def text_at(self, moment: datetime) -> str | None:
        return next((text for since, text in reversed(self.texts) if since <= moment), None)


def now() -> datetime:
    """Give a moment that is after everything before it and before everything after it."""
    time.sleep(0.001)
    moment = datetime.now(UTC)
    time.sleep(0.001)
    return moment


# One other process for all examples; not on the machine, whose attributes hypothesis looks through.
others: list[OtherProcess] = []


class LifeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="byheart-life-"))
        self.lives: dict[str, Life] = {}
        self.gone: list[tuple[str, str]] = []
        self.moments: list[datetime] = []

    address: str | None = None  # of a PostgreSQL database; by default the store is a file

    def open(self, model: str = "hash-32") -> MemoryStore:
        return open_here(self.folder / "memory.db", model, self.address)

    @initialize()
    def start(self) -> None:
        self.here = self.open()
        # Another machine has another cache folder.
        folder = self.folder / "other" if self.address else self.folder
        others[0].open(folder / "memory.db", self.address)
        self.stores: list[Any] = [self.here, others[0]]

    def teardown(self) -> None:
        if hasattr(self, "here"):
            wrong = [finding for finding in self.here.admin.doctor() if not finding.ok]
            assert not wrong
            others[0].close()
            self.here.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- What can happen ---

    which = st.integers(0, 1)
    texts = st.sampled_from(TEXTS)

    def live(self, forgotten: bool = False) -> list[str]:
        return sorted(name for name, life in self.lives.items() if life.forgotten == forgotten)

    def holder(self, key: tuple[Any, ...]) -> str | None:
        return next((each for each in self.live() if self.lives[each].key == key), None)

    def pick(self, data: st.DataObject, forgotten: bool = False) -> str:
        return data.draw(st.sampled_from(self.live(forgotten)))

    @rule(
        which=which, content=texts, session=st.sampled_from(SESSIONS), kind=st.sampled_from(KINDS)
    )
    def save(self, which: int, content: str, session: str | None, kind: str) -> None:
        before = now()
        result = self.stores[which].save(content, kind=kind, session_id=session, importance=5)
        held = self.holder((session, kind, content))
        assert result.status == ("created" if held is None else "unchanged")
        if held is not None:
            assert result.memory_id == held
            return
        life = Life(content, session, kind, 5.0, texts=[(before, content)])
        self.lives[result.memory_id] = life
        self.moments.append(now())

    @precondition(lambda self: self.live())
    @rule(
        which=which,
        data=st.data(),
        fields=st.fixed_dictionaries(
            {},
            optional={
                "content": texts,
                "title": st.sampled_from([None, "Title One", "Title Two"]),
                "tags": st.sampled_from([["a"], ["a", "b"], []]),
                "importance": st.sampled_from([1.0, 9.0]),
                "kind": st.sampled_from(KINDS),
            },
        ),
    )
    def update(self, which: int, data: st.DataObject, fields: dict[str, Any]) -> None:
        memory_id = self.pick(data)
        life = self.lives[memory_id]
        if not fields:
            with pytest.raises(InvalidInput):
                self.stores[which].update(memory_id)
            return
        content, kind = fields.get("content", life.content), fields.get("kind", life.kind)
        if self.holder((life.session_id, kind, content)) not in (None, memory_id):
            with pytest.raises(Conflict):
                self.stores[which].update(memory_id, **fields)
            return
        before = now()
        changes = {
            name
            for name, value in fields.items()
            if (frozenset(value) if name == "tags" else value) != getattr(life, name)
        }
        result = self.stores[which].update(memory_id, expected_version=life.version, **fields)
        assert result.status == ("updated" if changes else "unchanged")
        for name, value in fields.items():
            setattr(life, name, frozenset(value) if name == "tags" else value)
        if changes:
            life.version += 1
            life.operations.append("update")
        if "content" in changes:
            life.texts.append((before, content))
            self.moments.append(now())
        assert result.version == life.version

    @precondition(lambda self: any(self.lives[each].version > 1 for each in self.live()))
    @rule(which=which, data=st.data())
    def update_what_somebody_else_changed(self, which: int, data: st.DataObject) -> None:
        changed = [each for each in self.live() if self.lives[each].version > 1]
        memory_id = data.draw(st.sampled_from(changed))
        with pytest.raises(VersionConflict):
            self.stores[which].update(memory_id, expected_version=1, title="Overwritten unseen")

    @precondition(lambda self: len(self.live()) > 1)
    @rule(which=which, data=st.data())
    def supersede(self, which: int, data: st.DataObject) -> None:
        old, new = self.pick(data), self.pick(data)
        at: str | None = new
        while at is not None and at != old:
            at = self.lives[at].superseded_by if at in self.lives else None
        if at == old:
            with pytest.raises(Conflict):
                self.stores[which].supersede(old, new)
            return
        self.stores[which].supersede(old, new)
        if self.lives[old].superseded_by != new:
            self.lives[old].superseded_by = new
            self.changed(old, "supersede")

    @precondition(lambda self: self.live())
    @rule(which=which, data=st.data())
    def hold_again(self, which: int, data: st.DataObject) -> None:
        memory_id = self.pick(data)
        self.stores[which].supersede(memory_id)
        if self.lives[memory_id].superseded_by is not None:
            self.lives[memory_id].superseded_by = None
            self.changed(memory_id, "supersede")

    def changed(self, memory_id: str, operation: str) -> None:
        self.lives[memory_id].version += 1
        self.lives[memory_id].operations.append(operation)

    @precondition(lambda self: self.live())
    @rule(which=which, data=st.data())
    def forget(self, which: int, data: st.DataObject) -> None:
        memory_id = self.pick(data)
        assert self.stores[which].forget(memory_id, reason="model").count == 1
        assert self.stores[1 - which].forget(memory_id).count == 0
        self.lives[memory_id].forgotten = True
        self.lives[memory_id].operations.append("forget")

    @precondition(lambda self: self.live())
    @rule(which=which, kind=st.sampled_from(KINDS), session=st.sampled_from(SESSIONS))
    def forget_by_filter(self, which: int, kind: str, session: str | None) -> None:
        meant = [
            each
            for each in self.live()
            if self.lives[each].kind == kind and session in (None, self.lives[each].session_id)
        ]
        asked = {"kind": kind, **({"session_id": session} if session else {})}
        counted = self.stores[which].forget(**asked)
        assert (set(counted.memory_ids), counted.dry_run) == (set(meant), True)
        done = self.stores[1 - which].forget(dry_run=False, **asked)
        assert set(done.memory_ids) == set(meant)
        for each in meant:
            self.lives[each].forgotten = True
            self.lives[each].operations.append("forget")

    @precondition(lambda self: self.live(forgotten=True))
    @rule(which=which, data=st.data())
    def restore(self, which: int, data: st.DataObject) -> None:
        memory_id = self.pick(data, forgotten=True)
        life = self.lives[memory_id]
        if self.holder(life.key) is not None:
            with pytest.raises(Conflict):
                self.stores[which].restore(memory_id)
            return
        self.stores[which].restore(memory_id)
        life.forgotten = False
        life.operations.append("restore")

    @precondition(lambda self: self.lives)
    @rule(which=which, data=st.data())
    def forget_for_good(self, which: int, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from(sorted(self.lives)))
        done = self.stores[which].forget(memory_id, hard=True)
        life = self.lives.pop(memory_id)
        assert (done.count, done.still_found) == (1, ())
        assert done.removal.texts == len(life.texts)
        self.gone.append((memory_id, life.content))

    @precondition(lambda self: len(self.live()) > 1)
    @rule(which=which, data=st.data())
    def merge(self, which: int, data: st.DataObject) -> None:
        keep, other = self.pick(data), self.pick(data)
        if keep == other or self.lives[keep].superseded_by is not None:
            with pytest.raises((Conflict, InvalidInput)):
                self.stores[which].admin.merge(keep, [other])
            return
        self.stores[which].admin.merge(keep, [other])
        for name, life in self.lives.items():
            if life.superseded_by == other:
                life.superseded_by = keep
                self.changed(name, "supersede")
        self.lives[keep].tags |= self.lives[other].tags
        self.changed(keep, "update")
        self.lives[other].forgotten = True
        self.lives[other].operations.append("forget")

    @rule(which=which, names=st.permutations(["topic1", "Topics", "Common"]))
    def rename_and_merge_entities(self, which: int, names: list[str]) -> None:
        known = {each.name for each in self.stores[1 - which].entities.list(limit=1000).entities}
        for verb, given in (
            ("rename", (names[0], names[1])),
            ("merge", ([names[0]], names[2])),
        ):
            with contextlib.suppress(NotFound, Conflict, InvalidInput):
                getattr(self.stores[which].entities, verb)(*given)
        after = {each.name for each in self.stores[1 - which].entities.list(limit=1000).entities}
        assert len(after) <= len(known)

    @precondition(lambda self: self.live())
    @rule(which=which)
    def export_and_import(self, which: int) -> None:
        first, second = self.folder / "first.jsonl", self.folder / "second.jsonl"
        self.stores[which].export(first, vectors=True, overwrite=True)
        copy = self.folder / "copy.db"
        with open_here(copy) as store:
            assert store.import_(first).imported == len(self.lives)
            store.export(second, vectors=True, overwrite=True)
        assert first.read_bytes() == second.read_bytes()
        for each in self.folder.glob("copy.db*"):
            each.unlink()

    @precondition(lambda self: self.live())
    @rule(which=which)
    def recall(self, which: int) -> None:
        answer = self.stores[which].recall("common text", max_tokens=300, limit=5)
        assert answer.tokens_used <= 300
        assert {each.id for each in answer.index} <= set(self.live())

    @precondition(lambda self: self.live())
    @rule(which=which)
    def reembed_and_roll_back(self, which: int) -> None:
        with self.open("hash-64") as third:
            assert third.admin.reembed().switched
            answer = self.stores[which].search("common", 1000, "vector", "coarse")
            assert (answer.index.model, answer.degraded) == ("hash-64", None)
            assert {hit.memory_id for hit in answer.results} == set(self.live())
            assert third.admin.reembed(rollback=True).switched
        self.stores[which].admin.embed_pending()

    @rule(which=which)
    def look_around(self, which: int) -> None:
        store = self.stores[which]
        assert store.admin.stats().memories == len(self.live())
        assert set(store.admin.cleanup(0).memory_ids) == set(self.live())
        for proposal in store.admin.dedupe().proposals:
            assert {proposal.keep, *(each.memory_id for each in proposal.others)} <= set(
                self.live()
            )
        copy = self.folder / "backup.db"
        store.admin.backup(copy, overwrite=True)
        with self.open_backup(copy) as copied:
            assert (
                sorted(each.memory_id for each in copied.list(limit=1000).memories) == self.live()
            )
        for each in self.folder.glob("backup.db*"):
            each.unlink()

    def open_backup(self, copy: Path) -> MemoryStore:
        return open_here(copy)

    @rule(which=which)
    def rebuild(self, which: int) -> None:
        self.stores[which].admin.doctor(rebuild=True)

    @rule()
    def reopen(self) -> None:
        self.here.close()
        self.here = self.stores[0] = self.open()

    # --- What must always be true ---

    @invariant()
    def every_memory_is_as_the_model_says(self) -> None:
        for store in getattr(self, "stores", ()):
            listed = {each.memory_id: each for each in store.list(limit=1000).memories}
            assert sorted(listed) == self.live()
            for name, memory in listed.items():
                life = self.lives[name]
                for same in ("content", "session_id", "kind", "title", "version", "importance"):
                    assert getattr(memory, same) == getattr(life, same), same
                assert set(memory.tags) == life.tags
                assert memory.superseded_by == life.superseded_by
            hidden = {each.memory_id for each in store.list(limit=1000, forgotten=True).memories}
            assert sorted(hidden) == self.live(forgotten=True)

    @invariant()
    def every_history_is_as_the_model_says(self) -> None:
        for name, life in self.lives.items():
            entries = self.stores[len(name) % 2].history(name)
            assert [entry.operation for entry in entries] == life.operations
            texts = [e.changes["content"]["to"] for e in entries if "content" in e.changes]
            assert texts == [text for _, text in life.texts[1:]]

    @invariant()
    def searches_find_exactly_the_current_texts(self) -> None:
        expected = {(each, self.lives[each].content) for each in self.live()}
        for store in getattr(self, "stores", ()):
            for mode in MODES:
                found = store.search("common", 1000, mode, "coarse").results
                assert {(hit.memory_id, hit.content) for hit in found} == expected, mode
                superseded = [hit.superseded_by is not None for hit in found]
                assert superseded == sorted(superseded)

    @invariant()
    def a_search_as_of_then_finds_the_texts_of_then(self) -> None:
        for moment in self.moments[:: max(1, len(self.moments) // 3)]:
            expected = {
                (each, text)
                for each in self.live()
                if (text := self.lives[each].text_at(moment)) is not None
            }
            for store, mode in zip(self.stores, ("fts", "vector"), strict=True):
                found = store.search("common", 1000, mode, "coarse", as_of=moment).results
                assert {(hit.memory_id, hit.content) for hit in found} == expected, (mode, moment)

    @invariant()
    def what_was_forgotten_for_good_is_not_there(self) -> None:
        for memory_id, _ in self.gone:
            with pytest.raises(NotFound):
                self.stores[0].history(memory_id)


class PostgresLifeMachine(LifeMachine):
    def __init__(self) -> None:
        super().__init__()
        self.database = contextlib.ExitStack()
        self.address = self.database.enter_context(postgres_store_url())

    def open_backup(self, copy: Path) -> MemoryStore:
        """Import the backup, which is an export."""
        store = open_here(copy.with_suffix(".copy"))
        store.import_(copy)
        return store

    def teardown(self) -> None:
        with self.database:
            super().teardown()


LifeMachine.TestCase.settings = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking would take many minutes
    print_blob=True,
)
PostgresLifeMachine.TestCase.settings = settings(
    LifeMachine.TestCase.settings, max_examples=2, stateful_step_count=10
)


class _WithOtherProcess:
    @classmethod
    def setUpClass(cls) -> None:
        others.append(OtherProcess())

    @classmethod
    def tearDownClass(cls) -> None:
        others.pop().leave()


@pytest.mark.slow
class TestLivesInTwoProcesses(_WithOtherProcess, LifeMachine.TestCase):  # type: ignore[name-defined,misc]
    """Run the machine on a file."""


@pytest.mark.slow
class TestLivesOnPostgres(_WithOtherProcess, PostgresLifeMachine.TestCase):  # type: ignore[name-defined,misc]
    """Run the machine on a PostgreSQL database."""
