"""Sources: the files behind a path, be it one file, a folder or an archive."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.upkeep import vault

HEAD_BYTES = 1 << 18
_DATA_SUFFIXES = (".json", ".jsonl", ".ndjson")
ARCHIVE_SUFFIX = ".zip"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: `name` is for people, `path` where it stands in what was named."""

    name: str
    path: PurePosixPath
    size: int
    open: Callable[[], AbstractContextManager[BinaryIO]]
    # The file and its folder, where both are real.
    file: Path | None = None
    folder: Path | None = None
    # How it begins, if it can be read only once.
    beginning: bytes | None = None

    def head(self) -> bytes:
        """Read how it begins."""
        if self.beginning is not None:
            return self.beginning
        with self.open() as stream:
            return stream.read(HEAD_BYTES)


class Replayed(io.RawIOBase):
    """A stream of which the beginning was read already, from its beginning."""

    def __init__(self, head: bytes, rest: BinaryIO, name: str) -> None:
        self.name = name
        self._head = io.BytesIO(head)
        self._rest = rest
        self._read = 0

    def buffered(self) -> BinaryIO:
        """Give it as streams are given."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def fileno(self) -> int:
        """Give the file of the operating system, if it is one."""
        return self._rest.fileno()

    def tell(self) -> int:
        """Say how much was read."""
        return self._read

    def readinto(self, buffer: Any) -> int:
        """Read what there is, the beginning first."""
        part = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(part)] = part
        self._read += len(part)
        return len(part)


def streamed(stream: BinaryIO, name: str, head: bytes) -> Source:
    """Take a stream that can be read once, and that whoever gave it will close."""
    return Source(name, PurePosixPath(name), 0, lambda: nullcontext(stream), beginning=head)


def single_file(path: Path) -> Source:
    """Take one file, under the name that was given."""
    return Source(
        str(path),
        PurePosixPath(path.name),
        path.stat().st_size,
        partial(_open_file, path),
        path,
        path.parent,
    )


def data_files(folder: Path) -> Iterator[Source]:
    """List the files of a folder that may hold data, those of archives in it too."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or path.is_symlink() or not path.is_file():
            continue
        if path.suffix.lower() in _DATA_SUFFIXES:
            yield _inside(path, folder)
        elif path.suffix.lower() == ARCHIVE_SUFFIX:
            try:
                yield from archived_files(path)
            except InvalidInput as error:
                # Whoever reads it hears of it; the others can be read nevertheless.
                yield replace(_inside(path, folder), open=partial(_refuse, error))


def note_files(folder: Path) -> Iterator[Source]:
    """List the Markdown files of a folder, or the one file that was named."""
    for path in vault.list_files(folder):
        yield single_file(path) if path == folder else _inside(path, folder)


def archived_files(path: Path) -> Iterator[Source]:
    """List the files of an archive that may hold data."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except _BROKEN as error:
        raise InvalidInput(f"{path} is no archive that can be read: {error}") from error
    for member in sorted(members, key=lambda each: each.filename):
        inside = PurePosixPath(member.filename)
        hidden = any(part.startswith((".", "__MACOSX")) for part in inside.parts)
        if inside.suffix.lower() in _DATA_SUFFIXES and not member.is_dir() and not hidden:
            yield Source(
                f"{path.name}/{inside}",
                inside,
                member.file_size,
                partial(_open_member, path, member.filename),
            )


def _inside(path: Path, folder: Path) -> Source:
    relative = path.relative_to(folder).as_posix()
    return Source(
        relative,
        PurePosixPath(relative),
        path.stat().st_size,
        partial(_open_file, path),
        path,
        folder,
    )


def _refuse(error: InvalidInput) -> AbstractContextManager[BinaryIO]:
    raise error


@contextmanager
def _open_file(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    with stream:
        yield stream


@contextmanager
def _open_member(path: Path, member: str) -> Iterator[BinaryIO]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield io.BufferedReader(stream)  # type: ignore[type-var]
    except (*_BROKEN, NotImplementedError, RuntimeError) as error:
        # zipfile's own two words for a packing it does not know, and for a password.
        raise InvalidInput(f"{member} in {path} cannot be unpacked: {error}") from error
