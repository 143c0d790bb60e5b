"""Write and read files of plain arrays, which are mapped, and replaced as a whole.

    magic, length of header, checksum of header | header (JSON) | arrays, each aligned to 64 bytes

An array may have room behind it. A process appends its own rows there, in pages that it alone sees.
The index on disk is one such file or several (`index/parts.py`).
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

_KIND, _FORMAT, _EARLIER_FORMAT = b"BYHEART INDEX ", b"B", b"A"
_MAGIC = _KIND + _FORMAT + b"\n"
# A file in the earlier format is one part: it is read, and written in the new format later.
_READ = (_MAGIC, _KIND + _EARLIER_FORMAT + b"\n")
_PREFIX = struct.Struct("<16sQI")
_ALIGNMENT = 64
# Windows neither replaces nor removes a file that any process has mapped.
_MAPS = os.name != "nt"
# A mapping keeps its file open, and a server has a thousand small indexes but few open files.
_LEAST_MAPPED = 1 << 20
_NO_ROOMS: Mapping[str, int] = {}


class Rows:
    """Arrays that follow one another in the file, as one array; nothing copies them together."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = arrays
        self.dtype = arrays[0].dtype
        self.shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
        self.nbytes = sum(each.nbytes for each in arrays)


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A header and named arrays."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    # Mapped arrays with the room behind them; writing there changes neither the file nor `arrays`.
    rooms: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write(
    path: Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any] | Rows],
    mode: int,
    rooms: Mapping[str, int] = _NO_ROOMS,
) -> None:
    """Write a temporary file and move it into place; readers see the old file or the new one.

    `rooms` gives the number of rows for which an array has room behind it.
    """
    layout, checksums, offset = {}, {}, 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, list(array.shape), offset]
        checksums[name] = 0
        for block in _blocks(array):
            checksums[name] = zlib.crc32(block, checksums[name])
        size = array.nbytes + _room_bytes(array, rooms.get(name, 0))
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    about = {"layout": layout, "checksums": checksums, "rooms": rooms, "bytes": offset}
    encoded = json.dumps({**header, **about}).encode()
    with replacing(path, mode) as (out, _):
        out.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded)
        _pad(out)
        for name, array in arrays.items():
            for block in _blocks(array):
                out.write(block)
            out.write(bytes(_room_bytes(array, rooms.get(name, 0))))
            _pad(out)
        out.flush()
        os.fsync(out.fileno())  # otherwise a power cut could leave a file with arrays of zeros


def _room_bytes(array: NDArray[Any] | Rows, rows: int) -> int:
    return rows * array.dtype.itemsize * math.prod(array.shape[1:])


def _blocks(array: NDArray[Any] | Rows) -> Iterator[memoryview]:
    for each in array.arrays if isinstance(array, Rows) else (array,):
        yield np.ascontiguousarray(each).data


@contextmanager
def replacing(path: Path, mode: int) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a temporary file that replaces the file at the end, unless it was removed by then."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out, temporary
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(mode)  # every user who may read the store may use its index
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _pad(out: BinaryIO) -> None:
    out.write(b"\0" * (-out.tell() % _ALIGNMENT))


def read(path: Path, *, verify: bool = False) -> IndexFile | None:
    """Map the file, or read all of it; return `None` if the file is missing or damaged."""
    try:
        with path.open("rb") as source:
            header, base = _read_header(source)
            buffer = _open_buffer(source, base + header["bytes"])
            rooms = _open_rooms(source, header, base) if isinstance(buffer, mmap.mmap) else {}
        arrays = {
            name: _lay_over(buffer, dtype, tuple(shape), base + offset)
            for name, (dtype, shape, offset) in header["layout"].items()
        }
        for name, room in rooms.items():
            arrays[name] = room[: len(arrays[name])]
            arrays[name].flags.writeable = False
    except (OSError, struct.error, ValueError, KeyError):
        return None
    # Vectors are by far the largest part, and damage to a vector can only misplace one chunk: they
    # are not read and verified each time.
    read_now = [name for name in arrays if verify or name != "embeddings"]
    if any(
        zlib.crc32(np.ascontiguousarray(arrays[name]).data) != header["checksums"][name]
        for name in read_now
    ):
        return None
    return IndexFile(header, arrays, rooms)


def read_header(path: Path) -> dict[str, Any] | None:
    """Read the header of the file, and none of its arrays."""
    try:
        with path.open("rb") as source:
            return _read_header(source)[0]
    except (OSError, struct.error, ValueError, KeyError):
        return None


def _read_header(source: BinaryIO) -> tuple[dict[str, Any], int]:
    """Give the header, and the offset of the arrays."""
    size = os.fstat(source.fileno()).st_size
    magic, length, checksum = _PREFIX.unpack(source.read(_PREFIX.size))
    if magic not in _READ or length > size:
        raise ValueError("not an index of this format")
    header_bytes = source.read(length)
    if zlib.crc32(header_bytes) != checksum:
        raise ValueError("the header is damaged")
    header: dict[str, Any] = json.loads(header_bytes)
    base = -(-(_PREFIX.size + length) // _ALIGNMENT) * _ALIGNMENT
    if size != base + header["bytes"]:
        raise ValueError("the file is not whole")
    return header, base


def is_of_another_version(path: Path) -> bool:
    """Say whether an earlier or later version of Byheart wrote the file in another format."""
    try:
        with path.open("rb") as source:
            magic = source.read(len(_MAGIC))
    except OSError:
        return False
    return magic.startswith(_KIND) and magic not in _READ


def _open_buffer(source: BinaryIO, size: int) -> mmap.mmap | bytes:
    if _MAPS and size >= _LEAST_MAPPED:
        return mmap.mmap(source.fileno(), size, access=mmap.ACCESS_READ)
    source.seek(0)
    return source.read(size)


def _open_rooms(source: BinaryIO, header: Mapping[str, Any], base: int) -> dict[str, NDArray[Any]]:
    """Map the arrays with room behind them a second time, for writing without changing the file."""
    rooms: dict[str, NDArray[Any]] = {}
    wanted = {
        name: (dtype, (shape[0] + rows, *shape[1:]), base + offset)
        for name, rows in header.get("rooms", {}).items()
        for dtype, shape, offset in [header["layout"][name]]
    }
    ends = [start + np.dtype(kind).itemsize * math.prod(to) for kind, to, start in wanted.values()]
    # A file may be larger than the memory, but the system may refuse so many private pages.
    with contextlib.suppress(OSError):
        if ends:
            copied = mmap.mmap(source.fileno(), max(ends), access=mmap.ACCESS_COPY)
            rooms = {name: _lay_over(copied, *each) for name, each in wanted.items()}
    return rooms


def _lay_over(
    buffer: mmap.mmap | bytes, dtype: str, shape: tuple[int, ...], offset: int
) -> NDArray[Any]:
    if not all(shape):
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer, offset)


def is_mapped(array: NDArray[Any]) -> bool:
    """Say whether the bytes of an array are located in a mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
