"""Sources: the files behind a path, be it one file, a folder or an archive."""

from __future__ import annotations

import io
import lzma
import mimetypes
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from byheart.errors import InvalidInput
from byheart.system.file_opening import open_to_read
from byheart.transfer import vault
from byheart.transfer.decoding import MARK_BYTES, as_utf8
from byheart.transfer.foreign.pieces import printable

HEAD_BYTES = 1 << 18
DATA_SUFFIXES, NOTE_SUFFIX = (".json", ".jsonl", ".ndjson"), ".md"
ARCHIVE_SUFFIX, _ARCHIVE_MARK = ".zip", b"PK\x03\x04"
# What zipfile says of an archive that is broken, is packed in a way it does not know, or has a
# password.
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
# Chats shrink to a tenth or so; what unpacks to more than this was made to fill a machine.
_LARGEST_RATIO, _HARMLESS_BYTES = 200, 1 << 26
_MEDIA = ("image", "audio", "video")


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

    @property
    def suffix(self) -> str:
        """Give what its name ends in."""
        return self.path.suffix.lower()

    @property
    def what(self) -> str:
        """Say what it is to those who do not read it: `image file`, `note`."""
        if self.suffix == NOTE_SUFFIX:
            return "note"
        kind = (mimetypes.guess_type(self.path.name)[0] or "").partition("/")[0]
        return f"{kind} file" if kind in _MEDIA else "other file"

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


class Unpacked(io.RawIOBase):
    """A file of an archive; here, and not where its text is used, it shows that it is broken."""

    def __init__(self, packed: IO[bytes], name: str) -> None:
        self._packed = packed
        self._name = name
        self._read = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def tell(self) -> int:
        """Say how much was read."""
        return self._read

    def readinto(self, buffer: Any) -> int:
        """Read some more, or say why that cannot be unpacked."""
        with _explained(self._name):
            part = self._packed.read(len(buffer))
        buffer[: len(part)] = part
        self._read += len(part)
        return len(part)


class Archives:
    """The archive that was read last, kept open: to open one is to read the list of its files."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._last: zipfile.ZipFile | None = None

    def open(self, path: Path) -> zipfile.ZipFile:
        """Open an archive, unless it is the one that is open."""
        if self._last is None or self._path != path:
            if self._last is not None:
                self._last.close()
            self._last = None
            self._last, self._path = zipfile.ZipFile(path), path
        return self._last


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


def files_of(
    folder: Path, without: Collection[Path] = (), *, unpack: bool = True
) -> Iterator[Source]:
    """List the files of a folder, hidden ones aside; instead of an archive, what is in it."""
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
                # Whoever reads it hears of it; the others can be read nevertheless.
                yield replace(_inside(path, folder), open=partial(_refuse, error))
        else:
            yield _inside(path, folder)


def note_files(folder: Path) -> Iterator[Source]:
    """List the Markdown files of a folder, or the one file that was named."""
    for path in vault.list_files(folder):
        yield single_file(path) if path == folder else _inside(path, folder)


def is_archive(path: Path) -> bool:
    """Say whether a file is an archive, or is called one."""
    return path.suffix.lower() == ARCHIVE_SUFFIX or begins_archive(single_file(path).head())


def begins_archive(head: bytes) -> bool:
    """Say whether a file begins as archives do."""
    return head.startswith(_ARCHIVE_MARK)


def archived_files(path: Path, archives: Archives) -> Iterator[Source]:
    """List the files of an archive; they are read from it, and never written anywhere."""
    try:
        listed = archives.open(path).infolist()
        members = [member for member in listed if not member.is_dir()]
        packed_bytes = path.stat().st_size
    except _BROKEN as error:
        raise InvalidInput(f"{path} is no archive that can be read: {error}") from error
    # No more than this is ever unpacked, whatever there really is.
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
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
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
        raise InvalidInput(f"{name} cannot be unpacked: {error}") from error
