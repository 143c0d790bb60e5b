"""What every reader of another program's files must keep to, told by samples of each format."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import InvalidInput
from byheart.model import Imported, TransferProgress
from byheart.store import MemoryStore
from byheart.transfer.foreign import FOREIGN, Piece, Reading, find_sources
from tests.transfer.foreign import samples as written
from tests.transfer.foreign.samples import KEY, SAMPLES, Sample

samples = pytest.mark.parametrize("sample", SAMPLES, ids=[each.format for each in SAMPLES])


def contents(store: MemoryStore) -> dict[str, str]:
    page = store.list(limit=1000)
    return {each.memory_id: each.content for each in page.memories}


def counted(imported: Imported) -> tuple[Any, ...]:
    return imported.sessions, imported.turns, imported.memories, imported.redacted


def test_there_is_a_sample_of_every_format() -> None:
    assert {each.format for each in SAMPLES} == set(FOREIGN)


@samples
def test_the_format_is_told_by_the_content(sample: Sample, tmp_path: Path) -> None:
    path = sample.write(tmp_path)
    found = find_sources(path, None)
    assert found is not None
    assert [*found.files] == [sample.format]
    in_folder = find_sources(tmp_path if path.is_file() else path, None)
    assert in_folder is not None
    assert [*in_folder.files] == [sample.format]


@samples
@pytest.mark.parametrize("other", ["jsonl", "markdown", *FOREIGN])
def test_what_is_of_another_format_than_was_said_is_refused(
    sample: Sample, other: str, tmp_path: Path
) -> None:
    notes = {"markdown", "basic-memory", "obsidian"}
    if other == sample.format or {other, sample.format} <= notes:
        return  # notes are notes: whoever calls them something else may know better
    path = sample.write(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        find_sources(path, other)
    told = str(caught.value)
    assert other in told or path.is_dir()
    assert sample.format in told or sample.format in notes


@samples
def test_everything_has_a_place_and_what_is_kept_a_name(sample: Sample, tmp_path: Path) -> None:
    found = find_sources(sample.write(tmp_path), None)
    assert found is not None
    items = [
        (source, *item) for format_, source in found.parts for item in Reading(format_, source)
    ]
    assert items
    for source, place, held in items:
        assert place.startswith(source.name)
        if isinstance(held, Piece):
            assert held.is_turn or held.name
            assert held.fields["content"].strip()


@samples
def test_a_dry_run_counts_and_writes_nothing(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    path = sample.write(tmp_path / "sample")
    dry = store.import_(path, dry_run=True)
    assert dry.dry_run
    assert contents(store) == {}
    real = store.import_(path)
    assert counted(dry) == counted(real)
    assert (dry.imported, dry.left_out) == (real.imported, real.left_out)
    again = store.import_(path, dry_run=True)
    assert (again.imported, again.unchanged) == (0, real.imported)


@samples
def test_an_import_brings_what_is_there_and_a_second_one_nothing(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    path = sample.write(tmp_path / "sample")
    imported = store.import_(path)
    assert counted(imported) == (sample.sessions, sample.turns, sample.memories, sample.redacted)
    assert (imported.format, imported.imported) == (sample.format, sample.turns + sample.memories)
    assert not imported.skipped
    before = contents(store)
    assert len(before) == imported.imported
    assert not any(KEY in text for text in before.values())
    again = store.import_(path, format=sample.format)
    assert (again.imported, again.updated, again.unchanged) == (0, 0, imported.imported)
    assert contents(store) == before


@samples
def test_what_has_grown_brings_what_is_new_and_nothing_twice(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    path = sample.write(tmp_path / "sample")
    before = store.import_(path)
    added = sample.grow(path)
    dry, after = store.import_(path, dry_run=True), store.import_(path)
    for imported in (dry, after):
        assert (imported.imported, imported.unchanged) == (added, before.imported)
    again = store.import_(path)
    assert (again.imported, again.unchanged) == (0, before.imported + added)


@samples
def test_it_does_not_matter_from_where_a_file_is_read(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    path = sample.write(tmp_path / "sample")
    before = store.import_(path)
    if sample.format == "basic-memory":
        return  # nothing in such a vault says where it begins
    outer = store.import_(tmp_path)
    assert (outer.imported, outer.unchanged) == (0, before.imported)
    if path.is_dir():
        return  # a vault that was moved is another one
    copied = tmp_path / "copy" / path.name
    copied.parent.mkdir()
    shutil.copy(path, copied)
    both = store.import_(tmp_path)
    assert (both.imported, both.unchanged) == (0, 2 * before.imported)


@samples
def test_what_was_forgotten_here_does_not_come_back(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    path = sample.write(tmp_path / "sample")
    store.import_(path)
    hidden, erased = list(contents(store))[:2]
    store.forget(hidden)
    store.forget(erased, hard=True)
    again = store.import_(path)
    assert (again.imported, again.refused) == (0, 1)
    assert not {hidden, erased} & contents(store).keys()


@samples
def test_progress_comes_to_an_end(sample: Sample, store: MemoryStore, tmp_path: Path) -> None:
    seen: list[TransferProgress] = []
    store.import_(sample.write(tmp_path / "sample"), embed=False, on_progress=seen.append)
    assert seen[-1].total is not None
    assert seen[-1].done == seen[-1].total
    assert [each.done for each in seen] == sorted(each.done for each in seen)


@samples
def test_all_that_was_imported_says_where_it_is_from(
    sample: Sample, store: MemoryStore, tmp_path: Path
) -> None:
    store.import_(sample.write(tmp_path / "sample"))
    memories = store.list(limit=1000).memories
    assert memories
    for memory in memories:
        assert memory.source == sample.format
        assert memory.client_id
        if memory.role is None:
            assert memory.origin in ("import", "agent")
        else:
            assert memory.session_id
            assert memory.origin == {"user": "user", "assistant": "agent", "tool": "tool"}.get(
                memory.role
            ) or (memory.kind == "file")


def test_a_file_of_no_known_format_is_refused_with_all_of_them(
    store: MemoryStore, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        store.import_(tmp_path / "x.json", format="nothing-known")
    assert all(name in caught.value.hint for name in FOREIGN)


JUNK: list[Any] = [None, 7, -1.5, True, "", "text", "\ud800", [], {}, [1, "x"], {"type": "text"}]


def spoiled(value: Any, chance: random.Random) -> Any:
    """Put something else in the place of a few values, wherever they stand."""
    if chance.random() < 0.04:
        return chance.choice(JUNK)
    if isinstance(value, dict):
        return {name: spoiled(each, chance) for name, each in value.items()}
    if isinstance(value, list):
        return [spoiled(each, chance) for each in value]
    return value


RECORDS: dict[str, Any] = {
    "claude-code": written.CLAUDE_CODE,
    "codex": written.CODEX,
    "chatgpt": written.CHATGPT,
    "claude": [*written.CLAUDE, *written.CLAUDE_PROJECTS, *written.CLAUDE_MEMORIES],
    "mem0": written.MEM0["results"],
    "mcp-memory": written.GRAPH,
}


@pytest.mark.parametrize("format_", RECORDS)
def test_whatever_a_file_holds_it_is_read_or_named_and_the_store_stays_sound(
    format_: str, store: MemoryStore, tmp_path: Path
) -> None:
    by_line = format_ in ("claude-code", "codex", "mcp-memory")
    for seed in range(25):
        chance = random.Random(seed)
        records = [spoiled(record, chance) for record in RECORDS[format_]]
        write = written.lines if by_line else written.document
        path = write(tmp_path / f"{seed}.json", records)
        imported = store.import_(path, format=format_, on_error="skip", embed=False)
        assert all(each.place.startswith(str(path)) for each in imported.skipped)
        again = store.import_(path, format=format_, on_error="skip", embed=False)
        assert (again.imported, len(again.skipped)) == (0, len(imported.skipped)), seed
    assert all(finding.ok for finding in store.admin.doctor())
