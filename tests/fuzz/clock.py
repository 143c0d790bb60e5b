"""Fuzz the verbs on a machine whose clock is set at random.

Checked after every few steps: each session's turns are in the order of a plain list, no memory is
erased before its grace period has truly passed, memories that have not expired by a right clock are
listed, and each moment has exactly one version of every memory.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from byheart.embedding.hash_embedder import HashEmbedder
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.clocks import Machine, on_machine
from tests.fuzz.report import Report

_GRACE_DAYS = 30.0
_STEPS, _CHECKED_EVERY = 150, 10
_DAY = timedelta(days=1)


def run(seconds: float, seed: int) -> Report:
    """Try random verbs under random clocks for some time; the same seed tries the same."""
    report, until = Report(), time.monotonic() + seconds
    episode = 0
    while not report.tried or (time.monotonic() < until and len(report.failures) < 20):
        with tempfile.TemporaryDirectory() as folder, on_machine(Machine()) as machine:
            trial = _Trial(Path(folder) / "memory.db", machine, random.Random(f"{seed}/{episode}"))
            try:
                trial.go(until)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                trial.failures.append(f"{type(error).__name__}: {error}")
            finally:
                trial.store.close()
        report.tried += trial.step
        report.failures += [f"seed {seed}, episode {episode}: {each}" for each in trial.failures]
        episode += 1
    return report


@dataclass
class _Kept:
    """A memory that expires, and when it was saved in truth."""

    memory_id: str
    saved_at: datetime
    saved_starts: int
    expires_at: datetime


@dataclass
class _Trial:
    """One store, and what it should hold."""

    path: Path
    machine: Machine
    random: random.Random
    store: MemoryStore = field(init=False)
    failures: list[str] = field(default_factory=list)
    # The texts of each session in order, each with the time it has.
    sessions: dict[str, list[tuple[str, datetime]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    expiring: list[_Kept] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    starts: int = 0
    step: int = 0

    def __post_init__(self) -> None:
        self._open()

    def _open(self) -> None:
        settings = load_settings(
            {"embedding_provider": "hash", "prune_after_days": _GRACE_DAYS}, environ={}
        )
        self.store = MemoryStore(SqliteStorage(self.path), HashEmbedder(), settings)

    def go(self, until: float) -> None:
        """Take random steps."""
        steps = (
            *(self._log, self._log, self._log_given, self._save, self._save_expiring),
            *(self._update, self._hide, self._wait, self._wait, self._set_clock),
            *(self._set_clock, self._restart, self._reopen, self._move),
        )
        for self.step in range(1, _STEPS + 1):
            self.random.choice(steps)()
            if self.step % _CHECKED_EVERY == 0:
                self._check()
                if self.failures or time.monotonic() > until:
                    return

    # --- Steps --------------------------------------------------------------------------------

    def _log(self) -> None:
        session_id, text = self._session(), f"turn {self.step}"
        result = self.store.log(session_id, "user", text)
        self.sessions[session_id].append((text, result.created_at))

    def _log_given(self) -> None:
        session_id, text = self._session(), f"turn {self.step}"
        at = self.machine.true_time - timedelta(hours=self.random.uniform(-2, 50))
        self.store.log(session_id, "user", text, created_at=at)
        self._insert(session_id, text, at)

    def _insert(self, session_id: str, text: str, at: datetime) -> None:
        turns = self.sessions[session_id]
        not_later = [place for place, (_, time) in enumerate(turns) if time <= at]
        turns.insert(not_later[-1] + 1 if not_later else 0, (text, at))

    def _save(self) -> None:
        text = f"note {self.step}"
        self.texts[self.store.save(text).memory_id] = text

    def _save_expiring(self) -> None:
        days = self.random.choice([0.1, 1, 20])
        saved_at = self.machine.true_time
        result = self.store.save(f"passing note {self.step}", ttl_days=days)
        expires_at = result.created_at + timedelta(days=days)
        self.expiring.append(_Kept(result.memory_id, saved_at, self.starts, expires_at))

    def _update(self) -> None:
        if self.texts:
            memory_id = self.random.choice(sorted(self.texts))
            self.texts[memory_id] = f"note {self.step}, changed"
            self.store.update(memory_id, content=self.texts[memory_id])

    def _move(self) -> None:
        """Change the text of a turn, which keeps its place."""
        session_id = self._session()
        turns = self.store.sessions.transcript(session_id, limit=1000).turns
        if turns:
            turn = self.random.choice(turns)
            text = f"turn changed in {self.step}"
            self.store.update(turn.memory_id, content=text)
            held = self.sessions[session_id]
            place = [content for content, _ in held].index(turn.content)
            held[place] = (text, held[place][1])

    def _hide(self) -> None:
        session_id = self._session()
        if self.sessions[session_id]:
            self.store.sessions.forget(session_id, dry_run=False)
            self.store.sessions.restore(session_id)

    def _wait(self) -> None:
        self.machine.wait(minutes=self.random.choice([1, 10, 60, 60 * 12]))

    def _set_clock(self) -> None:
        hours = self.random.choice([0, 0, -1, 1, 24 * 60, -24 * 60, 24 * 400])
        self.machine.set_clock(hours=hours * self.random.random() if hours > 1 else hours)

    def _restart(self) -> None:
        self.store.close()
        self.machine.restart()
        self.starts += 1
        self._open()

    def _reopen(self) -> None:
        self.store.close()
        self._open()

    def _session(self) -> str:
        return self.random.choice(["one", "two"])

    # --- Checks -------------------------------------------------------------------------------

    def _check(self) -> None:
        for session_id, turns in self.sessions.items():
            wanted = [text for text, _ in turns]
            said = [
                each.content
                for each in self.store.sessions.transcript(session_id, limit=1000).turns
            ]
            if said != wanted:
                self._fail(f"the session {session_id} is {said}, not {wanted}")
        self._check_expiring()
        self._check_versions()

    def _check_expiring(self) -> None:
        listed = self.store.list(limit=1000, include_expired=True).memories
        there = {each.memory_id for each in listed}
        shown = {each.memory_id for each in self.store.list(limit=1000).memories}
        asked = {hit.memory_id for hit in self.store.search("passing", 100, "fts").results}
        now = self.machine.true_time
        for kept in self.expiring:
            # Each start of the machine may count as a day that has not passed.
            counted = now - kept.saved_at + (self.starts - kept.saved_starts) * _DAY
            if kept.memory_id not in there and counted < _GRACE_DAYS * _DAY:
                self._fail(f"{kept.memory_id} was erased {now - kept.saved_at} after its save")
            expired = kept.expires_at <= now + self.machine.wrong_by
            if kept.memory_id in there and (kept.memory_id in shown) == expired:
                self._fail(f"{kept.memory_id} is listed: {not expired} was expected")
            if kept.memory_id in shown and kept.memory_id not in asked:
                self._fail(f"{kept.memory_id} is listed, but not found")
        self.expiring = [kept for kept in self.expiring if kept.memory_id in there]

    def _check_versions(self) -> None:
        connection = apsw.Connection(str(self.path))
        spans: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
        rows = connection.execute(
            "SELECT ifnull(version_of, memory_id), since_at, replaced_at FROM memories "
            "ORDER BY version"
        )
        for memory_id, since, until in rows:
            spans[str(memory_id)].append((since, until))  # type: ignore[arg-type]
        connection.close()
        for memory_id, held in spans.items():
            pairs = itertools.pairwise(held)
            sound = all(until == since for (_, until), (since, _) in pairs)
            if not sound or any(until is not None and until <= since for since, until in held):
                self._fail(f"the versions of {memory_id} are {held}")
        far = self.machine.true_time + timedelta(days=4000)
        texts = {each.memory_id: each.content for each in self._as_of(far)}
        for memory_id, text in self.texts.items():
            if texts.get(memory_id) != text:
                self._fail(f"in the far future {memory_id} is {texts.get(memory_id)!r}")

    def _as_of(self, moment: datetime) -> tuple[object, ...]:
        return self.store.list(limit=1000, as_of=moment).memories

    def _fail(self, what: str) -> None:
        self.failures.append(f"step {self.step}: {what}")
