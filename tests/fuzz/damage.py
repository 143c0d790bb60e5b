"""Damage to a store's files: every verb gives right answers or a `ByheartError`, nothing else.

Bytes are flipped, pages swapped or zeroed, files cut off, in a copy of a real store (database,
write-ahead log, index file) and in the files of a real, small model.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw

import byheart
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.embedding.model_cache import get_model
from byheart.embedding.model_sources import ModelSources
from byheart.errors import ByheartError
from byheart.model import ChunkHit, MemoryHit, SearchAnswer
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore
from tests.embedding.tiny_model import tiny_weights, write_tiny
from tests.fuzz.report import Report
from tests.fuzz.verbs import Ask, reading, writing

PAGE_BYTES = 4096
# The share of cases that damage the model instead of the store.
_MODEL_CASES = 0.2
_FILES = ("memory.db", "memory.db-wal", "memory.db-index", "memory.db-last")


@dataclass(frozen=True)
class Original:
    """A sound store in a folder, with its log unwritten, and the texts in it by id."""

    folder: Path
    texts: dict[str, str]


def open_store(path: Path) -> MemoryStore:
    """Open a store with an embedder that needs no files."""
    settings = load_settings(
        {"embedding_provider": "hash"}, environ={}, config_path=path.with_name("none")
    )
    return MemoryStore(SqliteStorage(path, busy_timeout_seconds=5), HashEmbedder(32), settings)


@cache
def _original() -> Original:
    """Make a store that holds something of everything, and keep its log as it is mid-use."""
    place = Path(tempfile.mkdtemp(prefix="byheart-fuzz-"))
    store = open_store(place / "memory.db")
    store.save_many(
        {
            "content": f"# Title {n}\n\nMemory {n} is about topic {n % 5}.\n\n"
            + f"## More\n\nSome longer words about harbour {n}. " * (n % 7) * 8,
            "title": f"Note {n}",
            "tags": ["all", f"tag {n}"],
            "entities": [f"Entity {n}"],
            "metadata": {"n": n},
            "session_id": "chat" if n % 3 else None,
        }
        for n in range(60)
    )
    store.search("topic")
    store.admin.doctor(rebuild=True)
    connection = apsw.Connection(str(place / "memory.db"))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    for n in range(20):
        store.log("chat", "user" if n % 2 else "assistant", f"Turn {n} is about topic {n % 5}.")
    first = store.list(limit=1).memories[0].memory_id
    store.update(first, content="A changed text about topic 1.")
    texts = {each.memory_id: each.content for each in store.list(limit=1000).memories}
    kept = Path(tempfile.mkdtemp(prefix="byheart-fuzz-"))
    for name in _FILES:
        shutil.copyfile(place / name, kept / name)
    store.close()
    shutil.rmtree(place)
    assert (kept / "memory.db-wal").stat().st_size
    return Original(kept, texts)


# --- Damages ----------------------------------------------------------------------------------


def _flip(content: bytearray, chance: random.Random) -> str:
    places = [chance.randrange(len(content)) for _ in range(chance.choice((1, 1, 3, 40)))]
    for at in places:
        content[at] ^= 1 << chance.randrange(8)
    return f"flipped {places}"


def _zero_page(content: bytearray, chance: random.Random) -> str:
    page = chance.randrange(max(1, len(content) // PAGE_BYTES))
    part = content[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
    content[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(len(part))
    return f"zeroed page {page}"


def _swap_pages(content: bytearray, chance: random.Random) -> str:
    count = len(content) // PAGE_BYTES
    if count < 2:
        return _flip(content, chance)
    one, two = chance.sample(range(count), 2)
    first, second = (slice(each * PAGE_BYTES, (each + 1) * PAGE_BYTES) for each in (one, two))
    content[first], content[second] = content[second], content[first]
    return f"swapped pages {one} and {two}"


def _cut(content: bytearray, chance: random.Random) -> str:
    length = chance.randrange(len(content))
    del content[length:]
    return f"cut at {length}"


def _garble(content: bytearray, chance: random.Random) -> str:
    at = chance.randrange(len(content))
    garbage = chance.randbytes(chance.choice((4, 64, 512)))
    content[at : at + len(garbage)] = garbage[: len(content) - at]
    return f"garbled {len(garbage)} bytes at {at}"


DAMAGES: tuple[Callable[[bytearray, random.Random], str], ...] = (
    _flip,
    _zero_page,
    _swap_pages,
    _cut,
    _garble,
)


# --- Cases ------------------------------------------------------------------------------------


def run(seconds: float, seed: int) -> Report:
    """Damage copies of a store until the time is over."""
    original, report = _original(), Report()
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        case = f"seed {seed} case {number}"
        chance = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory(prefix="byheart-fuzz-") as folder:
            if chance.random() < _MODEL_CASES:
                _try_model(Path(folder), chance, case, report)
            else:
                _try_one(original, Path(folder), chance, case, report, until)
        number += 1
    return report


def _try_one(
    original: Original,
    folder: Path,
    chance: random.Random,
    case: str,
    report: Report,
    until: float,
) -> None:
    for name in _FILES:
        shutil.copyfile(original.folder / name, folder / name)
    target = folder / chance.choice(_FILES)
    content = bytearray(target.read_bytes())
    case += f", {target.name} {chance.choice(DAMAGES)(content, chance)}"
    target.write_bytes(content)
    if chance.random() < 0.5:  # then it is derived from what is damaged
        (folder / "memory.db-index").unlink()
        case += ", without an index file"
    try:
        store = open_store(folder / "memory.db")
    except ByheartError as error:
        _check_hint(error, f"{case}: opening", report)
        report.tried += 1
        return
    except Exception:  # noqa: BLE001 (that is what is looked for)
        report.failures.append(f"{case}: opening: {_last_lines()}")
        return
    memory_id = chance.choice(list(original.texts))
    verbs = chance.sample(list(reading(memory_id)), 7) + chance.sample(list(writing(memory_id)), 4)
    changed = False
    for name, ask in verbs:
        if time.monotonic() > until:
            break
        changed |= name in {each for each, _ in writing(memory_id)}
        _ask(store, name, ask, f"{case}: {name}", report, None if changed else original)
    try:
        store.close()
    except ByheartError:
        pass
    except Exception:  # noqa: BLE001 (that is what is looked for)
        report.failures.append(f"{case}: closing: {_last_lines()}")


def _try_model(folder: Path, chance: random.Random, case: str, report: Report) -> None:
    """Damage a file of the model; half of the time, there is nothing to repair it from."""
    cache, source = folder / "cache", folder / "tiny"
    shutil.copytree(_tiny_model(), source)
    built = get_model(str(source), cache, ModelSources(()), lambda _done, _total: None).folder
    target = built / chance.choice(("model.onnx", "tokenizer.json", "manifest.json"))
    times, content = target.stat(), bytearray(target.read_bytes())
    case += f", {target.name} {chance.choice(DAMAGES)(content, chance)}"
    target.write_bytes(content)
    if chance.random() < 0.3:  # as a failing disk does
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
        case += ", without changing its time"
    if chance.random() < 0.5:
        (source / "tokenizer.json").unlink()
        case += ", without a source"
    given = {
        "model_path": str(source),
        "cache_dir": str(cache),
        "offline": True,
        "db_path": str(folder / "memory.db"),
        "embedding_provider": chance.choice(("auto", "onnx")),
        "ollama_url": "http://127.0.0.1:9",  # nobody answers there
    }
    settings = load_settings(given, environ={}, config_path=folder / "none")
    with byheart.open(settings=settings) as store:
        for name, ask in _WITH_MODEL.items():
            report.tried += 1
            try:
                ask(store)
            except Exception:  # noqa: BLE001 (a damaged model fails none of these)
                report.failures.append(f"{case}: {name}: {_last_lines()}")


_WITH_MODEL: dict[str, Ask] = {
    "save": lambda s: s.save("a topic for the model"),
    "log": lambda s: s.log("chat", "user", "what about the topic?"),
    "search": lambda s: s.search("topic"),
    "recall": lambda s: s.recall("topic"),
    "context": lambda s: s.context("chat", "topic"),
    "status": lambda s: s.status(),
    "doctor": lambda s: s.admin.doctor(),
    "fix": lambda s: s.admin.doctor(fix=True),
}


@cache
def _tiny_model() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="byheart-fuzz-"))
    return write_tiny(folder / "tiny", tiny_weights())


def _ask(
    store: MemoryStore, name: str, ask: Ask, case: str, report: Report, sound: Original | None
) -> None:
    report.tried += 1
    try:
        answer = ask(store)
    except ByheartError as error:
        _check_hint(error, case, report)
    except Exception:  # noqa: BLE001 (that is what is looked for)
        report.failures.append(f"{case}: {_last_lines()}")
    else:
        if sound is not None:
            wrong = _wrong_texts(answer, sound.texts)
            report.failures += [f"{case}: gave a wrong text of {each}" for each in wrong]


def _check_hint(error: ByheartError, case: str, report: Report) -> None:
    if not error.message:
        report.failures.append(f"{case}: an error without words: {error!r}")


def _wrong_texts(answer: Any, texts: dict[str, str]) -> list[str]:
    """Name memories that an answer shows with words they never had, unless it says so."""
    if isinstance(answer, SearchAnswer):
        if "are not in it" in (answer.degraded or ""):
            return []  # an earlier text of a memory, and the answer says that changes are missing
        return [hit.memory_id for hit in answer.results if not _is_right(hit, texts)]
    return []


def _is_right(hit: Any, texts: dict[str, str]) -> bool:
    text = texts.get(hit.memory_id)
    if hit.damaged or text is None or hit.replaced_at is not None:
        return True
    if isinstance(hit, ChunkHit):
        return hit.chunk_content in text
    return not isinstance(hit, MemoryHit) or hit.content == text


def _last_lines() -> str:
    return " | ".join(line.strip() for line in traceback.format_exc().splitlines()[-7:])
