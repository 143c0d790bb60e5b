"""Keep the index on disk in parts: a head, which names other parts, and files that never change.

A part has the rows that came after the parts before it, and the rows before that changed since. The
newest, small part is inside the head. To publish is to write one part, which may take in the parts
before it, and then the head: a crash leaves the earlier head, and the parts that it names.

The files are derived: if any is missing, damaged, foreign or old, the index is built without them.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from byheart.index import file
from byheart.index.columns import CHUNK_TYPES, CODED, MEMORY_TYPES
from byheart.index.segment import Segment
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np
from byheart.startup.late_patterns import late_pattern

# A part of up to so many bytes is written into the head, and again with the next part.
_MOST_IN_HEAD = 4 << 20
# A part is taken in by a new one that is at least this share of it. With a half, a chunk is written
# seven times until there are a million, and a store has about four parts (decision 0036).
_SHARE_TAKEN_IN = 0.5
# The columns of a file that is the only part have room for so many more rows: one for each 32.
_ROWS_FOR_ROOM = 32
# Parts may be merged by other processes between reading the head and opening them.
_MOST_ATTEMPTS = 20
_NAME = late_pattern(r"[0-9a-f]{12}")
_ARRAYS = {f"memory.{name}" for name in MEMORY_TYPES} | {f"chunk.{name}" for name in CHUNK_TYPES}
_ARRAYS |= set(Segment.__slots__)


@dataclass(frozen=True, slots=True)
class Start:
    """Count the rows and names before a part."""

    memories: int
    chunks: int
    names: Mapping[str, int]


NOTHING_BEFORE = Start(0, 0, dict.fromkeys(CODED, 0))


@dataclass(frozen=True, slots=True)
class Part:
    """Describe a part: where it begins, its size, and the rows before it that it changes.

    `buried` are chunks before it that were removed. `name` is `None` for the part in the head.
    """

    name: str | None
    start: Start
    size: int
    changed: NDArray[np.int64]
    buried: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a head: its id, the named parts with their sizes, and the last state."""

    head_id: str
    named: Mapping[str, int]
    state: Mapping[str, Any]
    coverage: Mapping[str, Any]

    @classmethod
    def of_header(cls, header: Mapping[str, Any]) -> Head:
        """Read a header; one in the earlier format names no parts."""
        return cls(
            header.get("id", ""),
            header.get("parts", {}),
            header["state"],
            header.get("coverage", {}),
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The files of an index: the head, and its parts in order."""

    head: Head
    parts: Sequence[tuple[Part, file.IndexFile]]


class Written(NamedTuple):
    """A part that was just written, and the head that names it or has it inside."""

    head: Head
    part: Part
    content: file.IndexFile


def part_path(path: Path, name: str) -> Path:
    """Name the file of a part, beside the head."""
    return path.with_name(f"{path.name}-{name}")


def part_files(path: Path) -> Iterator[Path]:
    """List the files of parts beside the head, named by it or not."""
    start = f"{path.name}-"
    with contextlib.suppress(OSError):
        for each in path.parent.iterdir():
            if each.name.startswith(start) and _NAME.fullmatch(each.name[len(start) :]):
                yield each


def read_head(path: Path) -> Head | None:
    """Read the header of the head; give `None` if it is missing or damaged."""
    header = file.read_header(path)
    return None if header is None or "state" not in header else Head.of_header(header)


def has_parts(path: Path, head: Head) -> bool:
    """Say whether all parts that a head names are there."""
    return all(_size(part_path(path, name)) == size for name, size in head.named.items())


def read(path: Path, *, verify: bool = False) -> Loaded | None:
    """Map all parts; give `None` if any is missing, damaged, or lacks an array."""
    for _ in range(_MOST_ATTEMPTS):
        headed = file.read(path, verify=verify)
        if headed is None or "state" not in headed.header:
            return None
        loaded = _read_parts(path, headed, verify)
        if loaded is not None:
            return loaded
        again = read_head(path)
        if again is None or again.head_id == headed.header.get("id"):
            return None
    return None


def _read_parts(path: Path, headed: file.IndexFile, verify: bool) -> Loaded | None:
    head = Head.of_header(headed.header)
    found: list[tuple[Part, file.IndexFile]] = []
    for name, size in head.named.items():
        content = file.read(part_path(path, name), verify=verify)
        if content is None or not content.arrays.keys() >= _ARRAYS:
            return None
        found.append((_describe(name, content, size), content))
    if headed.arrays or not found:
        if not headed.arrays.keys() >= _ARRAYS:
            return None
        found.append((_describe(None, headed, headed.header["bytes"]), headed))
    return Loaded(head, found)


def _describe(name: str | None, content: file.IndexFile, size: int) -> Part:
    start = content.header.get("start")
    nothing = np.empty(0, np.int64)
    return Part(
        name,
        NOTHING_BEFORE if start is None else Start(**start),
        size,
        np.array(content.arrays.get("changed", nothing)),
        np.array(content.arrays.get("buried", nothing)),
    )


def count_kept(parts: Sequence[Part], new_bytes: int) -> int:
    """Count the parts that stay as they are when so many bytes are added; take in the others."""
    kept, size = len(parts), new_bytes
    while kept and (parts[kept - 1].name is None or parts[kept - 1].size * _SHARE_TAKEN_IN <= size):
        kept -= 1
        size += parts[kept].size
    return kept


Arrays = Mapping[str, "NDArray[Any] | file.Rows"]


def write(
    path: Path,
    kept: Sequence[Part],
    content: tuple[Mapping[str, Any], Arrays],
    about: Mapping[str, Any],
    mode: int,
) -> Written | None:
    """Write one more part behind those that are kept, and the head; remove all other parts.

    `content` are the header and the arrays of the part, `about` is what the head says of all. Give
    the new part as it is on disk; `None` if it cannot be read.
    """
    named = {part.name: part.size for part in kept if part.name is not None}
    header, arrays = content
    size = sum(each.nbytes for each in arrays.values())
    inside: Arrays = arrays
    own, name = path, None
    if size > _MOST_IN_HEAD:
        name = secrets.token_hex(6)
        own = part_path(path, name)
        columns = [each for each in arrays if each.startswith(("memory.", "chunk."))]
        rooms = {each: arrays[each].shape[0] // _ROWS_FOR_ROOM for each in columns}
        file.write(own, header, arrays, mode, {} if named else rooms)
        named[name] = _size(own) or 0
        header, inside = {}, {}
    head = {**about, **header, "id": secrets.token_hex(8), "parts": named}
    file.write(path, head, inside, mode)
    _remove_unnamed(path, named)
    written = file.read(own)
    if written is None:
        return None
    return Written(Head.of_header(head), _describe(name, written, _size(own) or 0), written)


def remove(path: Path) -> None:
    """Remove the head and all parts."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    _remove_unnamed(path, {})


def _remove_unnamed(path: Path, named: Mapping[str, int]) -> None:
    keep = {part_path(path, name) for name in named}
    for each in part_files(path):
        if each not in keep:
            with contextlib.suppress(OSError):  # on Windows, somebody may be reading it
                each.unlink()


def receive(
    path: Path,
    mode: int,
    load: Callable[[BinaryIO], bool],
    load_part: Callable[[str, BinaryIO], bool],
    accept: Callable[[Loaded], bool],
) -> bool:
    """Load a copy of a head and of the parts that are missing here; keep them if accepted.

    They are moved into place if they are whole and sound.
    """
    accepted = False
    try:
        with file.replacing(path, mode) as (out, temporary):
            loaded = None
            if load(out):
                out.flush()
                head = read_head(temporary)
                if head is not None and all(
                    _receive_part(path, name, size, mode, load_part)
                    for name, size in head.named.items()
                ):
                    headed = file.read(temporary, verify=True)
                    loaded = None if headed is None else _read_parts(path, headed, True)
            accepted = loaded is not None and accept(loaded)
            if not accepted:
                temporary.unlink()
    finally:
        there = read_head(path)
        _remove_unnamed(path, there.named if there is not None else {})
    return accepted


def _receive_part(
    path: Path, name: str, size: int, mode: int, load_part: Callable[[str, BinaryIO], bool]
) -> bool:
    own = part_path(path, name)
    if _NAME.fullmatch(name) is None:
        return False
    if _size(own) == size:
        return True
    with file.replacing(own, mode) as (out, temporary):
        if load_part(name, out):
            out.flush()
        if _size(temporary) != size:
            temporary.unlink()
            return False
    return True


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None
