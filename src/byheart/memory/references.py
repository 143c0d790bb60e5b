"""Locating: which memory or passage a name means, be it an id or the place of a file."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from byheart.contracts import FoundChunk, Reader
from byheart.errors import InvalidInput, NotFound

_SHOWN_PATHS = 5
_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<line>\d{1,9})(?:[-:]\d{1,9})?)?", re.DOTALL)


class Located(NamedTuple):
    """A memory, the path it was found by, and the line of it that was named."""

    memory_id: str
    path: str
    line: int | None


def locate(
    reader: Reader, name: str, space: str, sessions: Collection[str | None] | None = None
) -> Located | None:
    """Find the memory of a file by `PATH` or `PATH:LINE`: whole, or seen from the working folder.

    If there is none, it is the only file of a workspace whose path ends so; with `sessions`, of
    those that they hold. The name of a memory, a text or a chunk is never a path, whatever else
    stands in it.
    """
    return _locate_exactly(reader, name, space) or _locate_by_ending(reader, name, space, sessions)


def _locate_exactly(reader: Reader, name: str, space: str) -> Located | None:
    for path, line in _readings(reader, name, space):
        for candidate in dict.fromkeys((path, *_places(path))):
            found = reader.at_path(candidate, space)
            if found is not None:
                return Located(found, path, line)
    return None


def _locate_by_ending(
    reader: Reader, name: str, space: str, sessions: Collection[str | None] | None
) -> Located | None:
    for path, line in _readings(reader, name, space):
        ending = posixpath.normpath(path.replace(os.sep, "/"))
        if os.path.isabs(path) or path.startswith("~") or ending.split("/")[0] in ("", ".", ".."):  # noqa: PTH117
            continue
        found = reader.files_ending(ending, space, sessions, _SHOWN_PATHS + 1)
        if len(found) > 1:
            shown = ", ".join(sorted(found)[:_SHOWN_PATHS])
            more = " and others" if len(found) > _SHOWN_PATHS else ""
            raise InvalidInput(
                f"several files are called {path}", f"name one of them whole: {shown}{more}"
            )
        for memory_id in found.values():
            return Located(memory_id, path, line)
    return None


def _readings(reader: Reader, name: str, space: str) -> list[tuple[str, int | None]]:
    """Give the paths that a name may stand for, each with its line; none for that of a memory."""
    match = _PLACE.fullmatch(name)
    if match is None or reader.sessions_of([_text_of(name)], space):
        return []
    whole = (name, None)  # a file may be called "notes:12"
    return [whole, (match["path"], int(match["line"]))] if match["line"] else [whole]


def find_passage(chunks: Sequence[FoundChunk], located: Located) -> int:
    """Give the index of the chunk that a line stands in; a line that is not there is an error."""
    line = 1 if located.line is None else located.line
    if not chunks:
        return 0
    last = chunks[-1].chunk
    # An editor shows one more line behind the last line end.
    lines = last.end_line + last.content.endswith(("\n", "\r"))
    if not 0 < line <= lines:
        raise NotFound(
            f"{located.path} has no line {line:,}",
            f"its last one is {last.end_line:,}: name one from 1 on, or none to get it whole",
        )
    fitting = (at for at, each in enumerate(chunks) if line <= each.chunk.end_line)
    return next(fitting, len(chunks) - 1)


def identify(reader: Reader, name: str, space: str, sessions: Collection[str | None]) -> str | None:
    """Give the id of the memory or passage that a name means, if it is of one of the sessions."""
    located = locate(reader, name, space, sessions)
    text = located.memory_id if located else _text_of(name)
    found = reader.sessions_of([text], space)
    if text not in found or found[text] not in sessions:
        return None
    if located is None:
        return name
    at_line = located.line is not None
    return f"{text}#{find_passage(reader.chunks_of(text, space), located) if at_line else 0}"


def find_text(reader: Reader, name: str, space: str) -> str:
    """Give the id of the memory or text that a name means, be there one or not."""
    # A path by its end could mean what other sessions hold, and is asked of nobody's here.
    located = _locate_exactly(reader, name, space)
    return located.memory_id if located else _text_of(name)


def _text_of(name: str) -> str:
    return name.partition("#")[0]


def _places(path: str) -> Iterator[str]:
    """Give where a path leads from the working folder: as it is called, then without links."""
    for find in (os.path.abspath, os.path.realpath):
        try:
            yield find(os.path.expanduser(path)).replace(os.sep, "/")  # noqa: PTH111
        except (OSError, ValueError):  # the working folder was deleted, or no path can be so
            continue
