"""List the files behind a path: one file, a folder or an archive."""

from __future__ import annotations

import io
import lzma
import mimetypes
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.startup.dataclass_types import dataclass
from byheart.system.file_opening import open_to_read
from byheart.transfer import vault
from byheart.transfer.decoding import MARK_BYTES, as_utf8
from byheart.transfer.foreign.import_items import printable

HEAD_BYTES = 1 << 18
DATA_SUFFIXES, NOTE_SUFFIX = (".json", ".jsonl", ".ndjson", ".af"), ".md"
ARCHIVE_SUFFIX, _ARCHIVE_MARK = ".zip", b"PK\x03\x04"
# The exceptions that zipfile raises for an archive that is damaged, uses an unknown compression or
# has a password.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)
# Chats compress to about a tenth; a much higher ratio indicates a zip bomb.
_LARGEST_RATIO, _HARMLESS_BYTES = 200, 1 << 26
_MEDIA = ("image", "audio", "video")


@dataclass(frozen=True, slots=True)
class Source:
    """Describe a file to read: `name` is for people, `path` is relative to the given path."""

    name: str
    path: PurePosixPath
    size: int
    open: Callable[[], AbstractContextManager[BinaryIO]]
    # The file and its folder, if both exist on disk.
    file: Path | None = None
    folder: Path | None = None
    # The first bytes, if the source can be read only once.
    beginning: bytes | None = None

    @property
    def suffix(self) -> str:
        """Return the file extension, in lower case."""
        return self.path.suffix.lower()

    @property
    def what(self) -> str:
        """Describe the type of a file that is not read: `image file`, `note`."""
        if self.suffix == NOTE_SUFFIX:
            return "note"
        kind = (mimetypes.guess_type(self.path.name)[0] or "").partition("/")[0]
        return f"{kind} file" if kind in _MEDIA else "other file"

    def head(self) -> bytes:
        """Read the first bytes."""
        if self.beginning is not None:
            return self.beginning
        with self.open() as stream:
            return stream.read(HEAD_BYTES)


class Replayed(io.RawIOBase):
    """Read a stream from its beginning again, after its head was consumed."""

    def __init__(self, head: bytes, rest: BinaryIO, name: str) -> None:
        self.name = name
        self._head = io.BytesIO(head)
        self._rest = rest
        self._read = 0

    def buffered(self) -> BinaryIO:
        """Return the stream with a buffer."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor, if there is one."""
        return self._rest.fileno()

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._read

    def readinto(self, buffer: Any) -> int:
        """Read from the head first, then from the rest."""
        part = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(part)] = part
        self._read += len(part)
        return len(part)


class Unpacked(io.RawIOBase):
    """Read a file of an archive, and raise a clear error here if it is damaged."""

    def __init__(self, packed: IO[bytes], name: str) -> None:
        self._packed = packed
        self._name = name
        self._read = 0

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._read

    def readinto(self, buffer: Any) -> int:
        """Read more bytes, or explain why they cannot be unpacked."""
        with _explained(self._name):
            part = self._packed.read(len(buffer))
        buffer[: len(part)] = part
        self._read += len(part)
        return len(part)


class Archives:
    """Keep the last archive open, because opening one reads the list of its files."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._last: zipfile.ZipFile | None = None

    def open(self, path: Path) -> zipfile.ZipFile:
        """Open an archive, unless it is already open."""
        if self._last is None or self._path != path:
            if self._last is not None:
                self._last.close()
            self._last = None
            self._last, self._path = zipfile.ZipFile(path), path
        return self._last


def streamed(stream: BinaryIO, name: str, head: bytes) -> Source:
    """Wrap a stream that can be read once; the caller closes it."""
    return Source(name, PurePosixPath(name), 0, lambda: nullcontext(stream), beginning=head)


def single_file(path: Path) -> Source:
    """Wrap one file, under the name that was given."""
    return Source(
        str(path),
        PurePosixPath(path.name),
        path.stat().st_size,
        partial(_open_file, path),
        path,
        path.parent,
    )


def files_of(
    folder: Path, without: Collection[Path] = (), *, unpack: bool = True
) -> Iterator[Source]:
    """List the files of a folder without hidden ones; list an archive's files in its place."""
    archives = Archives()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or path.is_symlink() or not path.is_file():
            continue
        if without and any(parent in without for parent in path.parents):
            continue
        if unpack and path.suffix.lower() == ARCHIVE_SUFFIX:
            try:
                yield from archived_files(path, archives)
            except InvalidInput as error:
                # The error is raised when this file is read, so the other files can still be read.
                yield replace(_inside(path, folder), open=partial(_refuse, error))
        else:
            yield _inside(path, folder)


def note_files(folder: Path) -> Iterator[Source]:
    """List the Markdown files of a folder, or the one file that was named."""
    for path in vault.list_files(folder):
        yield single_file(path) if path == folder else _inside(path, folder)


def is_archive(path: Path) -> bool:
    """Check whether a file is an archive, by extension or content."""
    return path.suffix.lower() == ARCHIVE_SUFFIX or begins_archive(single_file(path).head())


def begins_archive(head: bytes) -> bool:
    """Check whether the first bytes are those of an archive."""
    return head.startswith(_ARCHIVE_MARK)


def archived_files(path: Path, archives: Archives) -> Iterator[Source]:
    """List the files of an archive; they are read in place and never extracted to disk."""
    try:
        listed = archives.open(path).infolist()
        members = [member for member in listed if not member.is_dir()]
        packed_bytes = path.stat().st_size
    except _BROKEN as error:
        raise InvalidInput(
            f"{path} is no archive that can be read: {error}",
            "download or copy it again, or unpack it and import the folder",
        ) from error
    # No more than this is ever unpacked, whatever the archive really contains.
    unpacked_bytes = sum(member.file_size for member in members)
    if unpacked_bytes > max(_HARMLESS_BYTES, _LARGEST_RATIO * packed_bytes):
        raise InvalidInput(
            f"{path} has {packed_bytes:,} bytes and would unpack to {unpacked_bytes:,}",
            "if it is to be trusted, unpack it and import the folder",
        )
    for member in sorted(members, key=lambda each: each.filename):
        inside = PurePosixPath(printable(member.filename))
        hidden = any(part.startswith((".", "__MACOSX")) for part in inside.parts if part != "..")
        if not hidden:
            yield Source(
                f"{path.name}/{inside}",
                inside,
                member.file_size,
                partial(_open_member, archives, path, member),
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
        stream = open_to_read(path)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}",
            "check that the file exists and that you may read it",
        ) from error
    with stream:
        yield as_utf8(stream, stream.peek(MARK_BYTES))


@contextmanager
def _open_member(archives: Archives, path: Path, member: zipfile.ZipInfo) -> Iterator[BinaryIO]:
    name = f"{printable(member.filename)} in {path}"
    with _explained(name):
        packed = archives.open(path).open(member)
    with packed:
        stream = io.BufferedReader(Unpacked(packed, name))
        yield as_utf8(stream, stream.peek(MARK_BYTES))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise InvalidInput(
            f"{name} cannot be unpacked: {error}",
            "download or copy the archive again, or unpack it and import the folder",
        ) from error
