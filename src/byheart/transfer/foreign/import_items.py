"""Define the items that readers of other programs' files return, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, ValuesView
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from byheart.errors import InvalidInput
from byheart.model.checks import LONGEST_LABEL, LONGEST_TITLE, MOST_LABELS
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern
from byheart.transfer.vault import Flaw

_CONTROL = late_pattern(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Hold a turn with the fields of `log`, or, without a `role`, a memory for `save`.

    `name` is a stable id from the source; a turn without one is identified by its text. `tool`
    names the tool whose output it is, and `flaws` lists the parts that could not be used as
    intended.
    """

    fields: Mapping[str, Any]
    name: str | None = None
    created_at: datetime | str | None = None
    tool: str | None = None
    flaws: tuple[Flaw, ...] = ()

    @property
    def is_turn(self) -> bool:
        """Check whether the piece is a turn of a session."""
        return "role" in self.fields


@dataclass(frozen=True, slots=True)
class OwnFile:
    """Name a file of a vault that `export` wrote."""

    path: Path


@dataclass(frozen=True, slots=True)
class Omission:
    """Name an item that is not imported."""

    what: str


class Item(NamedTuple):
    """Hold the content at a place of a file, or the error there."""

    place: str
    held: Piece | OwnFile | Omission | InvalidInput


def printable(text: str) -> str:
    """Replace control characters, which would move the cursor or break the line."""
    return _CONTROL.sub(" ", text)


def label(value: object) -> str | None:
    """Shorten a value to a valid label of one line."""
    text = " ".join(printable(str(value)).split()) if value is not None else ""
    text = text.encode(errors="ignore")[:LONGEST_LABEL].decode(errors="ignore").strip()
    return text or None


def word(value: object) -> str:
    """Return a text unchanged, and "" for any other type."""
    return value if isinstance(value, str) else ""


def dicts(values: object) -> list[dict[str, Any]]:
    """Return the objects of a list, and nothing if the value is not a list."""
    listed = values if isinstance(values, list | ValuesView) else []
    return [each for each in listed if isinstance(each, dict)]


def labels(values: Iterable[object]) -> list[str]:
    """Convert values to distinct labels, at most as many as a memory may have."""
    named = (label(value) for value in values)
    return list(dict.fromkeys(name for name in named if name))[:MOST_LABELS]


def title(value: object) -> str | None:
    """Convert a value to a short title of one line."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text[: LONGEST_TITLE // 4] or None


def moment(value: object) -> datetime | str | None:
    """Parse a time: seconds since 1970, or a written date."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidInput(f"{value!r} is not a time") from error
    return value if isinstance(value, str) and value.strip() else None


def without_nothing(**fields: Any) -> dict[str, Any]:
    """Remove empty fields."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def name_by_text(program: str, text: str) -> str:
    """Derive an id from the text, for items without a stable id in their source."""
    return f"{program}:{sha256(text.encode(errors='replace')).hexdigest()}"


def relationship(program: str, first: str, how: str, last: str) -> Piece:
    """Convert an edge of a graph to a memory."""
    text = f"{first} {how.replace('_', ' ')} {last}"
    fields = {"content": text, "kind": "relationship", "entities": labels([first, last])}
    return Piece(fields, name_by_text(program, text))
