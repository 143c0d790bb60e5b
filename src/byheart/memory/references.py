"""Resolve references to memories and passages: ids, or paths of files with a line."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from byheart.contracts import FoundChunk, Reader
from byheart.errors import InvalidInput, NotFound
from byheart.startup.late_patterns import late_pattern

_SHOWN_PATHS = 5
_PLACE = late_pattern(r"(?P<path>.+?)(?::(?P<line>\d{1,9})(?:[-:]\d{1,9})?)?", re.DOTALL)


# "mem_" and the milliseconds of an id: as a rule, no second memory of a space begins so.
_SHORT_ID = 14
# Fewer letters would name everything that was saved within a day.
_LEAST_BEGINNING = 8
_SHOWN_IDS = 3
_PREFIX = "mem_"
# Prompts leave out "mem_" (`model.ids.short_form`).
_BEGINNING = late_pattern(
    r"(?P<beginning>mem_[0-9a-z]*|0[0-9a-z]{9})(?P<rest>(?:[#@]\d{1,9})*)(?:-\d{1,9})?"
)
_WHOLE_LENGTH = 30

_Readings = Sequence[tuple[str, int | None]]


class Located(NamedTuple):
    """Hold a memory's id, the path that found it, and the named line."""

    memory_id: str
    path: str
    line: int | None


def may_be_short(name: str) -> bool:
    """Say whether a name may be the beginning of an id, rather than a whole id or a path."""
    match = _BEGINNING.fullmatch(name)
    return match is not None and _LEAST_BEGINNING <= len(match["beginning"]) < _WHOLE_LENGTH


def complete_id(reader: Reader, name: str, space: str) -> str:
    """Complete the beginning of an id, if one memory has it; leave other names as they are."""
    match = _BEGINNING.fullmatch(name)
    if match is None or not may_be_short(name):
        return name
    beginning = match["beginning"]
    if not beginning.startswith(_PREFIX):
        beginning = _PREFIX + beginning
    found = reader.ids_beginning([beginning], space, _SHOWN_IDS + 1)[beginning]
    if not found or beginning in found:
        return name
    if len(found) > 1:
        short = shorten_ids(reader, found[:_SHOWN_IDS], space)
        more = ", …" if len(found) > _SHOWN_IDS else ""
        raise InvalidInput(
            f"several memories have ids that begin with {beginning}",
            f"type more letters: {', '.join(short.values())}{more}",
        )
    return found[0] + match["rest"]


def shorten_ids(reader: Reader, ids: Sequence[str], space: str) -> dict[str, str]:
    """Give each id its short form: a beginning that no other memory has, or the whole id."""
    short = {each: each[:_SHORT_ID] for each in ids if _BEGINNING.fullmatch(each)}
    found = reader.ids_beginning(list(set(short.values())), space, 2)
    return {each: short[each] if found.get(short.get(each, "")) == [each] else each for each in ids}


def locate(
    reader: Reader, name: str, space: str, sessions: Collection[str | None] | None = None
) -> Located | None:
    """Find the memory of a file by `PATH` or `PATH:LINE`, absolute or from the working folder.

    If there is none, find the only file of a workspace whose path ends with `PATH`; with
    `sessions`, only among the files of these sessions. The id of an existing memory, text or chunk
    is never read as a path.
    """
    readings = _readings(reader, name, space)
    return _locate_exactly(reader, readings, space) or _locate_by_ending(
        reader, readings, space, sessions
    )


def _locate_exactly(reader: Reader, readings: _Readings, space: str) -> Located | None:
    for path, line in readings:
        for candidate in dict.fromkeys((path, *_places(path))):
            found = reader.at_path(candidate, space)
            if found is not None:
                return Located(found, path, line)
    return None


def _locate_by_ending(
    reader: Reader, readings: _Readings, space: str, sessions: Collection[str | None] | None
) -> Located | None:
    for path, line in readings:
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


def _readings(reader: Reader, name: str, space: str) -> _Readings:
    """Return the paths that a name may mean, each with its line; none if the name is an id."""
    match = _PLACE.fullmatch(name)
    if match is None or reader.states([_text_of(name)], space):
        return []
    whole = (name, None)  # a file may be called "notes:12"
    return [whole, (match["path"], int(match["line"]))] if match["line"] else [whole]


def find_passage(chunks: Sequence[FoundChunk], located: Located) -> int:
    """Return the index of the chunk that contains the named line; raise if it does not exist."""
    line = 1 if located.line is None else located.line
    if not chunks:
        return 0
    last = chunks[-1].chunk
    # An editor shows one more line after the last line end.
    lines = last.end_line + last.content.endswith(("\n", "\r"))
    if not 0 < line <= lines:
        raise NotFound(
            f"{located.path} has no line {line:,}",
            f"its last one is {last.end_line:,}: name one from 1 on, or none to get it whole",
        )
    fitting = (at for at, each in enumerate(chunks) if line <= each.chunk.end_line)
    return next(fitting, len(chunks) - 1)


def identify(reader: Reader, name: str, space: str, sessions: Collection[str | None]) -> str | None:
    """Return the id of the memory or passage that a name means, if the sessions include it."""
    located = locate(reader, name, space, sessions)
    text = located.memory_id if located else _text_of(name)
    found = reader.states([text], space)
    if text not in found or found[text].session_id not in sessions:
        return None
    if located is None:
        return name
    at_line = located.line is not None
    return f"{text}#{find_passage(reader.chunks_of(text, space), located) if at_line else 0}"


def find_text(reader: Reader, name: str, space: str) -> str:
    """Return the id of the memory or text that a name means, whether it exists or not."""
    # Do not match the end of a path, since it could match files of other sessions.
    located = _locate_exactly(reader, _readings(reader, name, space), space)
    return located.memory_id if located else _text_of(name)


def _text_of(name: str) -> str:
    return name.partition("#")[0]


def _places(path: str) -> Iterator[str]:
    """Return the absolute path from the working folder: as written, then with links resolved."""
    for find in (os.path.abspath, os.path.realpath):
        try:
            yield find(os.path.expanduser(path)).replace(os.sep, "/")  # noqa: PTH111
        except (OSError, ValueError):  # the working folder was deleted, or the path is invalid
            continue
