"""A text that becomes too many chunks is refused by itself, whichever way it comes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from byheart.errors import TooManyChunks
from byheart.store import MemoryStore
from tests.conftest import OpenStore, WatchedEmbedder

LONG = "Plain words fill this passage up to the brim. " * 500
SAID = "more than 5 chunks"


@pytest.fixture
def narrow(open_store: OpenStore) -> MemoryStore:
    return open_store(max_chunks=5)


def test_nothing_of_it_is_saved(narrow: MemoryStore) -> None:
    with pytest.raises(TooManyChunks, match=SAID):
        narrow.save(LONG)
    assert narrow.admin.stats().memories == 0


def test_it_is_refused_before_anything_is_embedded(open_store: OpenStore) -> None:
    embedder = WatchedEmbedder()
    store = open_store(embedder=embedder, max_chunks=5)
    with pytest.raises(TooManyChunks):
        store.save(LONG)
    assert not embedder.embedded


def test_a_change_to_it_leaves_the_memory_as_it_was(narrow: MemoryStore) -> None:
    saved = narrow.save("short")
    with pytest.raises(TooManyChunks, match=SAID):
        narrow.update(saved.memory_id, content=LONG)
    assert narrow.get(saved.memory_id).content == "short"


def test_a_turn_is_refused(narrow: MemoryStore) -> None:
    with pytest.raises(TooManyChunks, match=SAID):
        narrow.log("s", "user", LONG)


def test_of_many_items_those_before_it_are_kept(narrow: MemoryStore) -> None:
    items = [{"content": "one"}, {"content": "two"}, {"content": LONG}, {"content": "three"}]
    with pytest.raises(TooManyChunks, match=r"^item 2: this text becomes"):
        narrow.save_many(items)
    assert narrow.admin.stats().memories == 2


def test_an_import_names_its_line_and_takes_in_the_others(narrow: MemoryStore) -> None:
    lines = [{"content": "one"}, {"content": LONG}, {"content": "two"}, {"content": "one"}]
    stream = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    result = narrow.import_(stream, on_error="skip")
    assert (result.imported, result.unchanged) == (2, 1)
    [skipped] = result.skipped
    assert skipped.place.endswith("line 2")
    assert SAID in skipped.reason


def test_an_import_that_stops_keeps_what_came_before(narrow: MemoryStore) -> None:
    lines = [{"content": "one"}, {"content": LONG}, {"content": "two"}]
    with pytest.raises(TooManyChunks, match="line 2: this text becomes"):
        narrow.import_(io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
    assert narrow.admin.stats().memories == 1


def test_an_indexed_folder_names_the_file_and_takes_in_the_others(
    narrow: MemoryStore, open_store: OpenStore, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "long.txt").write_text(LONG)
    for name in ("a.md", "z.md"):
        (folder / name).write_text(f"# {name}\n\nsome words\n")
    report = narrow.index(folder)
    assert report.files_indexed == 2
    [failure] = report.errors
    assert failure.path.endswith("long.txt")
    assert SAID in failure.reason
    wider = open_store(max_chunks=50)
    assert wider.index(folder).files_indexed == 1
