"""Growing: a transcript that is still written, read from where it was read last.

How far that was is a bookmark, and so is all that earlier lines say about later ones: whoever goes
on from it comes to what reading the whole file comes to. It holds for the file whose bytes before
it are the same; one that was written anew is read from its beginning.
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
from byheart.transfer.foreign.pieces import Item
from byheart.transfer.foreign.sources import single_file
from byheart.transfer.foreign.transcripts import Record
from byheart.transfer.lines import parse_object

# Another number than the one in a bookmark: what it says is not understood any more.
_VERSION = 1
# How much is read before it must be kept: so much is read again after a crash.
PART_BYTES = 4_000_000
# By how much of what stands before it a place is known again.
_CHECKED_BYTES = 65_536


class Reader(Protocol):
    """What makes items of lines, and can go on where another one stopped."""

    def read(self, place: str, line: Record) -> Iterator[Item]:
        """Give what a line holds."""
        ...

    def state(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Give what must be known to go on from here."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        ...


GROWING: Mapping[str, Callable[[str], Reader]] = {CLAUDE_CODE: Transcript}


class Growing:
    """A transcript and a place in it; `said` counts what was said before that, for its reader.

    `latest` has the latest time of each session before that.
    """

    def __init__(self, path: Path, name: str, bookmark: str | None) -> None:
        self._path = path
        self._open().close()  # one that cannot be read is refused before anything else is done
        self.format, self.source = FORMATS[name], single_file(path)
        self._reader = GROWING[name](path.stem)
        self._position = self._lines = 0
        self._before = b""
        self.said: Mapping[str, int] = {}
        self.latest: Mapping[str, str] = {}
        if bookmark is not None:
            self._go_to(json.loads(bookmark))

    def _go_to(self, mark: Mapping[str, Any]) -> None:
        """Go where a bookmark points to, if this still is the file that it was put into."""
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
        """Give what is new, part by part: a bookmark is for when a part was kept as a whole."""
        with self._open() as file:
            file.seek(self._position)
            while lines := file.readlines(PART_BYTES):
                # The last one may be half there.
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
        """Write down the place behind the part that was given last, once that was kept."""
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
