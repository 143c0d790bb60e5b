"""Choose the memories that a change is about: by their ids, or by a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from byheart.contracts import Listing, Reader, Storage, TextState
from byheart.errors import Do, Hint, InvalidInput, NotFound
from byheart.model import Filter
from byheart.model.filters import make_filter


class Chooser:
    """Find the memories that a caller names or describes."""

    def __init__(self, storage: Storage, default_space: str) -> None:
        self._storage = storage
        self._space = default_space

    def named(self, memory_ids: Sequence[str], given: Mapping[str, Any], done: str) -> str:
        """Check that all ids are known and that no filter was given; return their space.

        `done` is the change in the past tense, for the error.
        """
        if any(name != "space" for name in given):
            raise InvalidInput("both ids and a filter were given", "choose by one of them")
        space = make_filter(given, self._space).space
        with self._storage.reading(space) as reader:
            known = find_current(reader, memory_ids, space)
        unknown = [name for name in memory_ids if name not in known]
        if unknown:
            raise NotFound(
                f"there is no {unknown[0]} in this space; nothing was {done}",
                Hint("look for it with: ", Do("list")),
            )
        return space

    def restrict(self, given: Mapping[str, Any], done: str) -> Filter:
        """Make the filter of a change, which is about the memories of now."""
        if given.get("as_of") is not None:
            raise InvalidInput("as_of was given", f"what is {done} now is what there is now")
        # A session means its own memories, not the global ones that it can see as well.
        return make_filter({"include_global": False, **given}, self._space)

    def ids(self, where: Filter) -> list[str]:
        """Name the memories that a filter lets through, oldest first."""
        with self._storage.reading(where.space) as reader:
            return reader.ids(Listing(where, "oldest"))


def matches_everything(where: Filter) -> bool:
    """Say whether a filter lets every memory of its space through."""
    # These fields restrict nothing by themselves.
    restricted = replace(where, include_global=True, match="any", include_expired=False)
    return restricted == Filter(where.space)


def nothing_named_error(more: str = "") -> InvalidInput:
    """Make the error for a call that names no memory and gives no filter."""
    return InvalidInput(
        "no memory was named and no filter given",
        f"name ids, or a filter such as session_id, agent_id or kind{more}",
    )


def find_current(reader: Reader, memory_ids: Sequence[str], space: str) -> dict[str, TextState]:
    """Look up memories by their own ids, forgotten or not; earlier texts do not count."""
    found = reader.states(memory_ids, space)
    return {name: state for name, state in found.items() if state.is_current}
