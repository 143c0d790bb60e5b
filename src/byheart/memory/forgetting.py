"""Forget memories: choose them, hide or erase them, and verify that they are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from byheart.contracts import Listing, Reader, Storage
from byheart.errors import InvalidInput
from byheart.memory import transactions
from byheart.memory.erasing import erase
from byheart.memory.selection import (
    Chooser,
    find_current,
    matches_everything,
    nothing_named_error,
)
from byheart.model import Filter, Forgotten
from byheart.model import checks as check
from byheart.startup.late_patterns import late_pattern
from byheart.system import clock

_LONGEST_DAYS = 365_000
_AGE = late_pattern(r"\s*(\d+(?:\.\d+)?)\s*([hdwmy]?)\s*")
_HOURS = {"h": 1, "d": 24, "": 24, "w": 168, "m": 730, "y": 8766}
# The number of erased memories to search for by their own words, as a check.
_MOST_SEARCHED, _SEARCHED_CHARS = 20, 500

Find = Callable[[str, str], Sequence[str]]


class Forgetter:
    """Forget memories by id, by filter, or by age."""

    def __init__(
        self,
        storage: Storage,
        find: Find,
        clear_queries: Callable[[], None],
        default_space: str,
    ) -> None:
        self._storage = storage
        self._find = find
        self._clear_queries = clear_queries
        self._chooser = Chooser(storage, default_space)

    def forget(
        self,
        memory_ids: Sequence[str],
        given: Mapping[str, Any],
        older_than: object,
        *,
        hard: bool,
        dry_run: bool | None,
        who: str,
        reason: str | None,
    ) -> Forgotten:
        """Forget the named memories, or all that match a filter; a filter needs `dry_run=False`."""
        if memory_ids:
            age = {} if older_than is None else {"older_than": older_than}
            space = self._chooser.named(memory_ids, {**given, **age}, "forgotten")
            chosen, dry_run = list(dict.fromkeys(memory_ids)), bool(dry_run)
        else:
            where = self._filter(given, older_than)
            space = where.space
            chosen, dry_run = self._ids(where, hard), dry_run is None or dry_run
        return self._carry_out(chosen, space, hard, dry_run, who, reason)

    def cleanup(
        self, days_old: object, given: Mapping[str, Any], *, hard: bool, dry_run: bool, who: str
    ) -> Forgotten:
        """Forget memories that were not changed or recalled for `days_old` days, or expired."""
        days = check.check_number("days_old", days_old, 0, _LONGEST_DAYS)
        where = self._chooser.restrict(given, "forgotten")
        now = clock.now()
        with self._storage.reading(where.space) as reader:
            current = set(reader.ids(Listing(where)))
            every = reader.ids(Listing(replace(where, include_expired=True), "oldest"))
        expired = [each for each in every if each not in current]
        chosen = dict.fromkeys([*self._ids(where, hard, _before(now, days)), *expired])
        reason = f"untouched for {days:g} days, or expired"
        done = self._carry_out(list(chosen), where.space, hard, dry_run, who, reason)
        return replace(done, expired=len(expired))

    def _filter(self, given: Mapping[str, Any], older_than: object) -> Filter:
        where = self._chooser.restrict(given, "forgotten")
        if matches_everything(where) and older_than is None:
            raise nothing_named_error(", or older_than")
        if older_than is not None:
            if where.created_before is not None:
                raise InvalidInput("older_than and created_before were both given", "give one")
            now = clock.now()
            where = replace(where, created_before=_before(now, check_age("older_than", older_than)))
        return where

    def _ids(self, where: Filter, hard: bool, untouched_since: datetime | None = None) -> list[str]:
        """Choose the matching memories; with `hard`, also hidden and expired ones."""
        with self._storage.reading(where.space) as reader:
            listing = Listing(where, "oldest", untouched_since=untouched_since)
            if not hard:
                return reader.ids(listing)
            every = replace(where, include_expired=True)
            return [
                *reader.ids(replace(listing, where=every)),
                *reader.ids(replace(listing, where=replace(every, forgotten=True))),
            ]

    def _carry_out(
        self,
        chosen: Sequence[str],
        space: str,
        hard: bool,
        dry_run: bool,
        who: str,
        reason: str | None,
    ) -> Forgotten:
        with self._storage.reading(space) as reader:
            created = [each.created_at for each in find_current(reader, chosen, space).values()]
            texts = _texts(reader, chosen[:_MOST_SEARCHED], space) if hard else {}
        done = Forgotten(
            memory_ids=tuple(chosen),
            count=len(chosen),
            hard=hard,
            dry_run=dry_run,
            oldest=min(created, default=None),
            newest=max(created, default=None),
        )
        if dry_run or not chosen:
            return done
        if not hard:
            hidden = transactions.forget(self._storage, chosen, space, who, reason)
            return replace(done, memory_ids=tuple(hidden), count=len(hidden))
        self._clear_queries()  # an erased text may also be a cached question
        removal = erase(self._storage, chosen, space, tombstones=True)
        found = [each for each, text in texts.items() if each in self._find(text, space)]
        return replace(done, removal=removal, count=removal.memories, still_found=tuple(found))


def check_age(name: str, value: object) -> float:
    """Accept an age in days, or with a unit: `30`, `"30d"`, `"12h"`, `"2w"`, `"6m"`, `"1y"`."""
    is_age = isinstance(value, str | int | float) and not isinstance(value, bool)
    match = _AGE.fullmatch(str(value)) if is_age else None
    if match is None:
        raise InvalidInput(
            f"{name} {check.show(value)} is not an age",
            "give days, or a unit: 12h, 30d, 2w, 6m, 1y",
        )
    days = float(match[1]) * _HOURS[match[2]] / 24
    return check.check_number(name, days, 0, _LONGEST_DAYS)


def _before(now: datetime, days: float) -> datetime:
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _texts(reader: Reader, memory_ids: Sequence[str], space: str) -> dict[str, str]:
    memories = (reader.memory(memory_id, space) for memory_id in memory_ids)
    return {each.memory_id: each.content.strip()[:_SEARCHED_CHARS] for each in memories if each}
