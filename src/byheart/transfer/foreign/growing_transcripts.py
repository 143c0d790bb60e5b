"""Read a transcript that is still being written, from the position of the last read.

A bookmark stores the position and all state that later lines depend on, so that continuing gives
the same result as reading the whole file. The bookmark is valid if the bytes before it are
unchanged; a file that was rewritten is read from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from byheart.conversation.agent_events import CLAUDE_CODE
from byheart.errors import InvalidInput
from byheart.system.file_opening import open_to_read
from byheart.transfer.foreign.claude_code import Transcript
from byheart.transfer.foreign.formats import FORMATS
from byheart.transfer.foreign.import_items import Item
from byheart.transfer.foreign.sources import single_file
from byheart.transfer.foreign.transcripts import Record
from byheart.transfer.json_lines import parse_object

# A bookmark with another version number is no longer understood.
_VERSION = 1
# How much is read before it must be stored; a crash repeats at most this much.
PART_BYTES = 4_000_000
# How many bytes before a position are compared to recognize the file.
_CHECKED_BYTES = 65_536


class Reader(Protocol):
    """Convert lines to items, and continue where another reader stopped."""

    def read(self, place: str, line: Record) -> Iterator[Item]:
        """Yield the items of a line."""
        ...

    def state(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Return the state needed to continue from here."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from where `state` was taken."""
        ...


GROWING: Mapping[str, Callable[[str], Reader]] = {CLAUDE_CODE: Transcript}


class Growing:
    """Hold a transcript and a position in it.

    `said` counts the texts before the position, and `latest` has the latest time of each session
    before it.
    """

    def __init__(self, path: Path, name: str, bookmark: str | None) -> None:
        self._path = path
        self._open().close()  # refuse an unreadable file before anything else is done
        self.format, self.source = FORMATS[name], single_file(path)
        self._reader = GROWING[name](path.stem)
        self._position = self._lines = 0
        self._before = b""
        self.said: Mapping[str, int] = {}
        self.latest: Mapping[str, str] = {}
        if bookmark is not None:
            self._go_to(json.loads(bookmark))

    def _go_to(self, mark: Mapping[str, Any]) -> None:
        """Move to a bookmark's position, if the file is still the same."""
        if mark["version"] != _VERSION:
            return
        with self._open() as file:
            file.seek(max(0, mark["position"] - _CHECKED_BYTES))
            before = file.read(min(mark["position"], _CHECKED_BYTES))
        if _digest(before) == mark["digest"]:
            self._position, self._lines, self._before = mark["position"], mark["lines"], before
            self._reader.restore(mark["reader"])
            self.said = mark["said"]
            self.latest = mark.get("latest", {})

    def parts(self) -> Iterator[Iterator[Item]]:
        """Yield the new items in parts; set a bookmark only after a whole part is stored."""
        with self._open() as file:
            file.seek(self._position)
            while lines := file.readlines(PART_BYTES):
                # The last line may be incomplete.
                whole = lines if _is_whole(lines[-1]) else lines[:-1]
                first = self._lines + 1
                self._position += sum(map(len, whole))
                self._lines += len(whole)
                self._before = (self._before + b"".join(whole))[-_CHECKED_BYTES:]
                if whole:
                    yield self._items(whole, first)
                if len(whole) < len(lines):
                    return

    def _items(self, lines: Sequence[bytes], first: int) -> Iterator[Item]:
        for number, line in enumerate(lines, start=first):
            place = f"{self._path} line {number}"
            if not line.strip():
                continue
            try:
                yield from self._reader.read(place, parse_object(line, "it"))
            except InvalidInput as error:
                yield Item(place, error)

    def bookmark(
        self, said: Mapping[str, int], latest: Mapping[str, str], clean: Callable[[str], str]
    ) -> str:
        """Return the bookmark after the last yielded part, once that part is stored."""
        mark = {
            "version": _VERSION,
            "position": self._position,
            "lines": self._lines,
            "digest": _digest(self._before),
            "reader": self._reader.state(clean),
            "said": said,
            "latest": latest,
        }
        return json.dumps(mark, separators=(",", ":"))

    def _open(self) -> BinaryIO:
        try:
            return open_to_read(self._path, only_files=True)
        except OSError as error:
            raise InvalidInput(
                f"{self._path} cannot be read: {error.strerror}", "check the path"
            ) from error


def _is_whole(line: bytes) -> bool:
    if line.endswith(b"\n"):
        return True
    try:
        parse_object(line, "it")
    except InvalidInput:
        return False
    return True


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
