"""Odd files and paths give a clear error everywhere, and nothing is waited for in vain."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart import ByheartError
from byheart.errors import InvalidInput
from byheart.store import MemoryStore
from byheart.system import file_opening
from byheart.system.file_opening import open_to_read, read_to_end

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_opening, "PIPE_SECONDS", 0.2)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Give paths that no verb can do anything with, by what is odd about them."""
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.open(tmp_path, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{place}/s.jsonl")  # the path itself may be too long
        os.close(place)
        yield {
            "a NUL": "a\0b",
            "half a character": "\ud800",
            "a long name": str(tmp_path / ("x" * 300)),
            "a long path": "x/" * 3_000,
            "a link to itself": tmp_path / "loop",
            "below a file": tmp_path / "file.txt" / "x",
            "a user that is not there": "~no-such-user-here/x",
            "a socket": tmp_path / "s.jsonl",
            "a silent pipe": tmp_path / "pipe.jsonl",
            "a silent pipe of notes": tmp_path / "pipe.md",
            "endless": "/dev/zero",
            "endless noise": "/dev/urandom",
            "unreadable memory": "/proc/self/mem",
            "bytes": b"abc",
            "a number": 3,
            "nothing": None,
        }


ODD = (
    *(
        "half a character",
        "a NUL",
        "a long name",
        "a long path",
        "a link to itself",
        "below a file",
    ),
    *("a user that is not there", "a socket", "a silent pipe", "a silent pipe of notes"),
    *("endless", "endless noise", "unreadable memory", "bytes", "a number", "nothing"),
)
READING: dict[str, Callable[[MemoryStore, Any], object]] = {
    "import_": lambda store, path: store.import_(path),
    "import_ jsonl": lambda store, path: store.import_(path, format="jsonl"),
    "import_ markdown": lambda store, path: store.import_(path, format="markdown"),
    "import_ obsidian": lambda store, path: store.import_(path, format="obsidian"),
    "import_ chatgpt": lambda store, path: store.import_(path, format="chatgpt"),
    "follow": lambda store, path: store.sessions.follow(path),
    "index": lambda store, path: store.index(path),
    "drop_workspace": lambda store, path: store.workspaces.drop(path),
}
WRITING: dict[str, Callable[[MemoryStore, Any], object]] = {
    "write_to_file": lambda store, path: store.write_to_file(_some_id(store), path),
    "export": lambda store, path: store.export(path),
    "export markdown": lambda store, path: store.export(path, format="markdown"),
    "backup": lambda store, path: store.admin.backup(path),
}


def _some_id(store: MemoryStore) -> str:
    return store.save("hello").memory_id


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_an_odd_path_is_refused_in_words(
    store: MemoryStore, odd: dict[str, Any], verb: str, what: str
) -> None:
    store.save("something to write")
    with pytest.raises(ByheartError) as refused:
        {**READING, **WRITING}[verb](store, odd[what])
    assert refused.value.hint


@pytest.mark.parametrize("what", ["a silent pipe", "a silent pipe of notes"])
@pytest.mark.parametrize("verb", ["write_to_file", "export"])
def test_a_pipe_that_nobody_reads_is_not_waited_for(
    store: MemoryStore, odd: dict[str, Any], verb: str, what: str
) -> None:
    memory_id = _some_id(store)
    given = (odd[what],) if verb == "export" else (memory_id, odd[what])
    with pytest.raises(ByheartError, match="nobody reads"):
        getattr(store, verb)(*given, overwrite=True)


@pytest.mark.parametrize("what", ODD)
def test_no_store_is_opened_at_an_odd_path(odd: dict[str, Any], what: str) -> None:
    if what == "nothing":
        pytest.skip("without a path the settings say where the store is")
    with pytest.raises(ByheartError):
        byheart.open(odd[what], embedding_provider="hash")


def test_a_folder_of_odd_files_is_imported_without_them(store: MemoryStore, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "note.md").write_text("A note about tea.")
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zero.md").symlink_to("/dev/zero")
    (folder / "memory.json").symlink_to("/proc/self/mem")
    assert store.import_(folder, on_error="skip").imported == 1


def test_what_is_written_into_a_pipe_is_imported_though_the_writer_is_late(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_opening, "PIPE_SECONDS", 60)
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    writer = threading.Timer(0.2, pipe.write_text, ['{"content": "tea"}\n'])
    writer.start()
    assert store.import_(pipe).imported == 1
    writer.join()


def test_what_is_exported_into_a_pipe_is_read_though_the_reader_is_late(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_opening, "PIPE_SECONDS", 60)
    store.save("tea")
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Timer(0.2, lambda: read.append(pipe.read_bytes()))
    reader.start()
    store.export(pipe, overwrite=True)
    reader.join()
    assert b'"tea"' in read[0]


def test_a_config_file_that_never_ends_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(OSError, match="pipe"):
            read_to_end(path)


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\r\n\x1a" * 100_000)
    assert read_to_end(tmp_path / "a") == b"\x00\r\n\x1a" * 100_000
    with open_to_read(tmp_path / "a") as stream:
        assert (stream.peek(4)[:4], stream.readline(), stream.seek(4)) == (
            b"\x00\r\n\x1a",
            b"\x00\r\n",
            4,
        )


def test_a_read_that_fails_later_is_told_as_well() -> None:
    with open_to_read("/proc/self/mem") as stream, pytest.raises(InvalidInput, match="cannot be"):
        stream.read(10)
