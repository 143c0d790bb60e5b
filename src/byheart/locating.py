"""Locating: which memory or passage a name means, be it an id or the place of a file."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from byheart.contracts import Reader

_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<line>\d{1,9})(?:[-:]\d{1,9})?)?", re.DOTALL)


class Located(NamedTuple):
    """A memory, and the line of it that was named."""

    memory_id: str
    line: int | None


def locate(reader: Reader, name: str, space: str) -> Located | None:
    """Find the memory of a file by `PATH` or `PATH:LINE`, seen from the working folder or whole.

    The name of a memory, a text or a chunk is never a path, whatever else stands in it.
    """
    if reader.sessions_of([_text_of(name)], space):
        return None
    match = _PLACE.fullmatch(name)
    if match is None:
        return None
    # A file may be called "notes:12".
    for path, line in ((name, None), (match["path"], match["line"])):
        # Not resolve(): a link is what it is called here, and the file may be gone.
        for candidate in dict.fromkeys((path, _absolute(path))):
            found = reader.at_path(candidate, space)
            if found is not None:
                return Located(found, int(line) if line else None)
    return None


def find_text(reader: Reader, name: str, space: str) -> str:
    """Give the id of the memory or text that a name means, be there one or not."""
    located = locate(reader, name, space)
    return located.memory_id if located else _text_of(name)


def _text_of(name: str) -> str:
    return name.partition("#")[0]


def _absolute(path: str) -> str:
    try:
        whole = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
    except FileNotFoundError:  # the working folder was deleted
        return path
    return whole.replace(os.sep, "/")
