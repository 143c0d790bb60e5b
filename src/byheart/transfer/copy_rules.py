"""Decide whether a store may be copied to another one, what is left to copy, and what to compare.

Every function here takes values and gives values. `transfer/copying.py` reads and writes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from byheart.contracts import OF_MEMORIES, CopyMark, FoundChunk, Models, TableRows
from byheart.errors import InvalidInput, StoreBusy, StoreError
from byheart.model import MODES, Mode

_ID, _VERSION_OF, _KIND, _HASH = (
    OF_MEMORIES["memories"].index(name)
    for name in ("memory_id", "version_of", "kind", "content_hash")
)
_CONTENT = OF_MEMORIES["chunks"].index("content")
_ANEW = (
    "copy to a new file, to an empty database, or to another schema of the same database "
    "(schema=NAME in its address)"
)

# The share of searches that may differ although all rows are the same. Among very many vectors, an
# index that grew and one that was built at once may differ at the edge of what they compare.
MOST_DIFFERING = 0.1


class TargetState(NamedTuple):
    """The state of a target; `is_used` says that anything but its copy has written to it."""

    store_id: str
    mark: CopyMark | None
    is_empty: bool
    is_used: bool


def check_target(source_id: str, target: TargetState, name: str) -> bool:
    """Refuse a target that is no place for a copy; say whether it is an unfinished one."""
    if target.store_id == source_id:
        raise InvalidInput(f"{name} is the store itself, or a copy of its file", _ANEW)
    mark = target.mark
    if mark is None:
        if target.is_empty and not target.is_used:
            return False
        raise InvalidInput(f"{name} is not empty", _ANEW)
    if mark.store_id != source_id:
        raise InvalidInput(f"{name} is a copy of another store", _ANEW)
    if mark.finished_at is not None:
        raise InvalidInput(
            f"{name} is a copy of this store already, finished at {mark.finished_at}",
            f"use it as it is, or {_ANEW}",
        )
    if target.is_used:
        raise InvalidInput(
            f"{name} is an unfinished copy of this store, but it was written to since",
            f"{_ANEW}, so that nothing is lost",
        )
    return True


def claim(mark: CopyMark, owner: str, now: int, seconds: float) -> CopyMark:
    """Have the copy belong to a process for some seconds."""
    return replace(mark, claimed_by=owner, claimed_until=now + round(seconds * 1_000_000))


def is_claimed(mark: CopyMark | None, owner: str, now: int) -> bool:
    """Say whether another process writes the copy."""
    return mark is not None and mark.claimed_by not in ("", owner) and mark.claimed_until > now


def refuse_second(name: str) -> StoreBusy:
    """Make the error for a target that another process copies to."""
    return StoreBusy(
        f"another process copies to {name} now", "wait until it has finished, or stop it"
    )


def refuse_lost_claim(mark: CopyMark | None, owner: str, name: str) -> None:
    """Refuse to go on with a copy that another process has taken over."""
    if mark is None or mark.claimed_by != owner:
        raise StoreError(
            f"another process goes on with the copy to {name}, because this one paused too long",
            "wait until it has finished",
        )


def check_models(source: Models, target: Models, name: str) -> bool:
    """Say whether a target has the models of the source; refuse one that uses another model."""
    if target.active not in (None, source.active):
        raise InvalidInput(
            f"{name} uses the model {target.active}, and the store uses {source.active}", _ANEW
        )
    roles = (source.active, source.next, source.previous)
    return {*source.known} <= {*target.known} and roles == (
        target.active,
        target.next,
        target.previous,
    )


def batches(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Divide numbers into batches."""
    return (numbers[at : at + size] for at in range(0, len(numbers), size))


def outdated(source: TableRows, target: TableRows, numbers: Sequence[int]) -> list[int]:
    """List the texts whose rows differ in source and target."""
    if source == target:
        return []
    here, there = _by_text(source), _by_text(target)
    return [each for each in numbers if here.get(each) != there.get(each)]


def _by_text(rows: TableRows) -> Mapping[int, list[tuple[object, ...]]]:
    """Group the rows of all tables by the number of their text."""
    owners: dict[Any, Any] = {chunk[0]: chunk[1] for chunk in rows["chunks"]}
    found: dict[int, list[tuple[object, ...]]] = {}
    for table, each in rows.items():
        for row in each:
            found.setdefault(_text_of(table, row, owners), []).append((table, *row))
    return found


def _text_of(table: str, row: tuple[Any, ...], owners: Mapping[Any, int]) -> int:
    columns = OF_MEMORIES[table]
    if "memory_no" in columns:
        return int(row[columns.index("memory_no")])
    return owners[row[columns.index("chunk_no")]]


class Tally:
    """Count compared rows by table, memories by kind, and list damaged texts."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.damaged: list[str] = []

    def add(self, rows: TableRows) -> None:
        """Count rows."""
        self.rows.update({table: len(each) for table, each in rows.items()})

    def add_texts(self, rows: TableRows) -> None:
        """Count the rows of texts, and compare each text with its hash."""
        self.add(rows)
        contents: dict[object, list[str]] = {}
        for chunk in sorted(rows["chunks"], key=lambda row: row[1:3]):  # by text and place
            contents.setdefault(chunk[1], []).append(str(chunk[_CONTENT]))
        for row in rows["memories"]:
            if row[_VERSION_OF] is None:
                self.kinds[str(row[_KIND])] += 1
            content = "".join(contents.get(row[0], ()))
            if sha256(content.encode()).digest() != row[_HASH]:
                self.damaged.append(str(row[_ID]))


class Asked(NamedTuple):
    """A question to both stores, made of a passage whose vector stands in for its own."""

    text: str
    chunk_no: int
    mode: Mode


def choose_spaces(sizes: Mapping[str, int], most: int) -> list[str]:
    """Choose the largest spaces, the smallest of them first, and the same ones each time."""
    ordered = sorted((size, space) for space, size in sizes.items() if size)
    return [space for _, space in ordered[-most:]]


def share(wanted: int, spaces: int) -> int:
    """Give the part of the searches that one of the spaces gets; a small space leaves some over."""
    return -(-wanted // spaces)


def make_questions(passages: Sequence[FoundChunk], wanted: int) -> list[Asked]:
    """Make questions of titles and summaries, in all modes; few passages make fewer questions."""
    named = [(each, each.memory.title or each.memory.summary) for each in passages]
    usable = [(each.chunk_no, text) for each, text in named if text.strip()]
    few = min(wanted, len(usable) * len(MODES))
    return [
        Asked(text, chunk_no, MODES[(at + at // len(usable)) % len(MODES)])
        for at in range(few)
        for chunk_no, text in [usable[at % len(usable)]]
    ]
