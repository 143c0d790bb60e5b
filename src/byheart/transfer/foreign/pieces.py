"""Pieces: what the files of other programs hold, each at the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, ValuesView
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from byheart.errors import InvalidInput
from byheart.model.checks import LONGEST_LABEL, LONGEST_TITLE, MOST_LABELS
from byheart.transfer.vault import Flaw

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn with the fields of `log`, or a memory with those of `save`, if it has no `role`.

    `name` is what it is called where it comes from, for good; a turn without one is known by its
    words. `tool` names the tool whose output it is, `flaws` what is not taken as it was meant.
    """

    fields: Mapping[str, Any]
    name: str | None = None
    created_at: datetime | str | None = None
    tool: str | None = None
    flaws: tuple[Flaw, ...] = ()

    @property
    def is_turn(self) -> bool:
        """Say whether it was said in a session."""
        return "role" in self.fields


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file of a vault that `export` wrote."""

    path: Path


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that is not taken over, and what it is."""

    what: str


class Item(NamedTuple):
    """What stands at a place of a file, or what is wrong there."""

    place: str
    held: Piece | OwnFile | Omission | InvalidInput


def printable(text: str) -> str:
    """Take out what would move the cursor, or the line."""
    return _CONTROL.sub(" ", text)


def label(value: object) -> str | None:
    """Make a label of what others allow to be longer, or to hold line ends."""
    text = " ".join(printable(str(value)).split()) if value is not None else ""
    text = text.encode(errors="ignore")[:LONGEST_LABEL].decode(errors="ignore").strip()
    return text or None


def word(value: object) -> str:
    """Give what is text, and nothing for what should have been."""
    return value if isinstance(value, str) else ""


def dicts(values: object) -> list[dict[str, Any]]:
    """Give the objects of a list, and nothing if it is none."""
    listed = values if isinstance(values, list | ValuesView) else []
    return [each for each in listed if isinstance(each, dict)]


def labels(values: Iterable[object]) -> list[str]:
    """Make labels, each once, and no more than a memory may have."""
    named = (label(value) for value in values)
    return list(dict.fromkeys(name for name in named if name))[:MOST_LABELS]


def title(value: object) -> str | None:
    """Make a title: one line, short enough."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text[: LONGEST_TITLE // 4] or None


def moment(value: object) -> datetime | str | None:
    """Read a time: seconds since 1970, or what a person or program wrote."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidInput(f"{value!r} is not a time") from error
    return value if isinstance(value, str) and value.strip() else None


def without_nothing(**fields: Any) -> dict[str, Any]:
    """Leave out the fields of which nothing is known."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def name_by_text(program: str, text: str) -> str:
    """Name what has no name that stays where it comes from: what it says is all there is."""
    return f"{program}:{sha256(text.encode(errors='replace')).hexdigest()}"


def relationship(program: str, first: str, how: str, last: str) -> Piece:
    """Make a memory of an edge of a graph."""
    text = f"{first} {how.replace('_', ' ')} {last}"
    fields = {"content": text, "kind": "relationship", "entities": labels([first, last])}
    return Piece(fields, name_by_text(program, text))
