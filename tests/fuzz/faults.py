"""Disks that fail now and then: acknowledged saves are kept, and errors are our own.

Reads, writes and syncs of SQLite's files fail at random with an I/O error, writes also because the
disk is full. Afterwards, on a disk that works, every acknowledged save has to be there.
"""

from __future__ import annotations

import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from byheart.errors import ByheartError, NotFound
from byheart.store import MemoryStore
from tests.fuzz.damage import open_store
from tests.fuzz.report import Report

_OPERATIONS_PER_CASE = 30


class Faults:
    """Decide which operation of the disk fails."""

    def __init__(self) -> None:
        self.chance = random.Random(0)
        self.rates: dict[str, float] = {}

    def strike(self, operation: str) -> None:
        """Fail, or do nothing."""
        rate = self.rates.get(operation, 0.0)
        if rate and self.chance.random() < rate:
            full = operation == "write" and self.chance.random() < 0.5
            raise apsw.FullError("no space") if full else apsw.IOError("input/output error")


class _File(apsw.VFSFile):
    def __init__(self, base: str, name: Any, flags: list[int], faults: Faults) -> None:
        super().__init__(base, name, flags)
        self._faults = faults

    def excepthook(self, *_: object) -> None:
        """Print nothing: the faults are meant."""

    def xRead(self, amount: int, offset: int) -> bytes:
        self._faults.strike("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._faults.strike("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._faults.strike("sync")
        super().xSync(flags)


class _Vfs(apsw.VFS):
    def __init__(self, faults: Faults) -> None:
        self._base = apsw.vfs_names()[0]  # the platform's own
        super().__init__("byheart-faults", self._base, makedefault=True)
        self._faults = faults

    def excepthook(self, *_: object) -> None:
        """Print nothing: the faults are meant."""

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self._base, name, flags, self._faults)


@contextmanager
def failing_disk() -> Iterator[Faults]:
    """Have every connection that is opened meanwhile work on a disk that can be made to fail."""
    faults = Faults()
    vfs = _Vfs(faults)
    try:
        yield faults
    finally:
        faults.rates = {}
        vfs.unregister()


def run(seconds: float, seed: int) -> Report:
    """Work on failing disks until the time is over."""
    report, until, number = Report(), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        chance = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory(prefix="byheart-fuzz-") as folder:
            _try_one(Path(folder) / "memory.db", chance, f"seed {seed} case {number}", report)
        number += 1
    return report


def _try_one(path: Path, chance: random.Random, case: str, report: Report) -> None:
    open_store(path).close()
    kept: dict[str, str] = {}
    with failing_disk() as faults:
        faults.chance = chance
        faults.rates = {
            operation: chance.choice((0.0, 0.002, 0.02, 0.2))
            for operation in ("read", "write", "sync")
        }
        case += f", rates {faults.rates}"
        store: MemoryStore | None = None
        for number in range(_OPERATIONS_PER_CASE):
            report.tried += 1
            try:
                if store is None or chance.random() < 0.1:
                    if store is not None:
                        store.close()
                    store = open_store(path)
                _operate(store, chance, number, kept)
            except ByheartError as error:
                if "put a backup" in error.hint and "store.doctor" not in error.hint:
                    report.failures.append(f"{case}: blames the file for the disk: {error}")
            except Exception:  # noqa: BLE001 (that is what is looked for)
                report.failures.append(f"{case}: {_last_lines()}")
        faults.rates = {}
        if store is not None:
            _quietly(store.close)
    _look_again(path, kept, case, report)


def _operate(store: MemoryStore, chance: random.Random, number: int, kept: dict[str, str]) -> None:
    text = f"Text {number} about topic {chance.randrange(5)}, {chance.random()}."
    what = chance.random()
    known = chance.choice(list(kept)) if kept else None
    if what < 0.5 or known is None:
        kept[store.save(text).memory_id] = text
    elif what < 0.6:
        before = kept.pop(known)  # if it fails, either text may be there
        store.update(known, content=text)
        kept[known] = text
        del before
    elif what < 0.7:
        for result, content in zip(
            store.save_many([{"content": f"{text} {n}"} for n in range(3)]),
            (f"{text} {n}" for n in range(3)),
            strict=True,
        ):
            kept[result.memory_id] = content
    elif what < 0.9:
        store.search("topic", limit=5)
    else:
        store.get(known)


def _look_again(path: Path, kept: dict[str, str], case: str, report: Report) -> None:
    store = open_store(path)
    for memory_id, text in kept.items():
        try:
            found = store.get(memory_id).content
        except NotFound:
            found = None
        if found != text:
            report.failures.append(f"{case}: {memory_id} was acknowledged and is {found!r} now")
    report.failures += [
        f"{case}: {each.check}: {each.message}"
        for each in store.admin.doctor()
        if each.check in ("database file", "texts as saved", "last changes") and not each.ok
    ]
    store.close()


def _quietly(close: Callable[[], None]) -> None:
    with suppress(ByheartError):
        close()


def _last_lines() -> str:
    return " | ".join(line.strip() for line in traceback.format_exc().splitlines()[-7:])
