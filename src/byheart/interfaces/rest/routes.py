"""Which verb stands at which path, and where its parameters are said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from byheart.interfaces.operations import OPERATIONS, Operation, Parameter
from byheart.model import Access

Method = Literal["GET", "POST", "PATCH", "DELETE"]
_IN_PATH = re.compile(r"\{(\w+)\}")

# Verbs that read, but compare everything with everything.
_TAKE_LONG = ("dedupe",)
# Known at this door alone, where files are written to one folder and nowhere else.
WRITE_TO_FILE = Operation("write_to_file", "write", "memory", by_path=True)


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """One verb at one path; `only` are the parameters it takes there, if not all of them."""

    method: Method
    path: str
    operation: Operation
    summary: str = ""
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def in_path(self) -> tuple[str, ...]:
        """Name the parameters that are part of the path."""
        return tuple(_IN_PATH.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Say whether the other parameters are a JSON body, not the query string."""
        return self.method in ("POST", "PATCH")

    @property
    def takes_text(self) -> bool:
        """Say whether a caller may send a text to keep, which may be as large as the settings say.

        The metadata of a memory is always sent with its text.
        """
        return bool({"content", "text"} & self.parameters.keys())

    def lane_for(self, given: Mapping[str, Any] | None) -> Access:
        """Say with whom it shares its threads: what takes long is not to be in a search's way.

        What was not read yet (`None`) may turn out to write.
        """
        if self.operation.name in _TAKE_LONG or (given is None and self.operation.writes_if):
            return "write"
        return self.operation.needed_for(given or {})

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Give the parameters that can be said here besides those in the path."""
        return {
            name: each
            for name, each in self.operation.parameters.items()
            if name not in self.in_path
            and name not in self.without
            and (not self.only or name in self.only)
        }


def _entries() -> Iterator[RouteEntry]:
    verb = OPERATIONS
    memory, session = "/memories/{memory_id}", "/sessions/{session_id}"
    yield RouteEntry("POST", "/search", verb["search"])
    yield RouteEntry("POST", "/recall", verb["recall"])
    yield RouteEntry("POST", "/memories", verb["save"])
    yield RouteEntry("GET", "/memories", verb["list"])
    yield RouteEntry("GET", memory, verb["get"])
    yield RouteEntry("PATCH", memory, verb["update"])
    yield RouteEntry(
        "DELETE",
        memory,
        verb["forget"],
        "Hide a memory everywhere, until it is restored; with `hard`, take every trace of it out.",
        only=("reason", "hard", "dry_run", "who", "space"),
    )
    yield RouteEntry("GET", f"{memory}/history", verb["history"])
    yield RouteEntry("POST", f"{memory}/restore", verb["restore"])
    yield RouteEntry("POST", f"{memory}/supersede", verb["supersede"])
    yield RouteEntry("POST", "/memories/{keep}/merge", verb["merge"])
    yield RouteEntry("POST", f"{memory}/write_to_file", WRITE_TO_FILE)
    yield RouteEntry("GET", "/chunks/{chunk_id}", verb["expand"])
    yield RouteEntry("POST", "/forget", verb["forget"])
    yield RouteEntry("POST", "/cleanup", verb["cleanup"])
    yield RouteEntry("POST", "/dedupe", verb["dedupe"])
    yield RouteEntry("POST", f"{memory}/pin", verb["pin"])
    yield RouteEntry("POST", f"{memory}/unpin", verb["unpin"])
    yield RouteEntry("POST", "/context", verb["context"])
    yield RouteEntry("GET", "/sessions", verb["sessions"])
    yield RouteEntry("POST", f"{session}/log", verb["log"])
    yield RouteEntry("GET", f"{session}/transcript", verb["transcript"])
    yield RouteEntry("POST", f"{session}/summarize", verb["summarize"])
    yield RouteEntry("GET", "/session_stats", verb["session_stats"])
    yield RouteEntry("GET", f"{session}/resume", verb["resume"])
    yield RouteEntry("POST", "/promote", verb["promote"])
    yield RouteEntry("DELETE", session, verb["forget_session"])
    yield RouteEntry("POST", f"{session}/restore", verb["restore_session"])
    yield RouteEntry("GET", "/entities", verb["entities"])
    yield RouteEntry("POST", "/entities/rename", verb["rename_entity"])
    yield RouteEntry("POST", "/entities/merge", verb["merge_entities"])
    yield RouteEntry("GET", "/status", verb["status"])
    # A GET changes nothing, for whoever repeats or prefetches it: counting anew is a POST.
    yield RouteEntry("GET", "/stats", verb["stats"], without=("reset",))
    yield RouteEntry("POST", "/stats", verb["stats"])


ROUTES: tuple[RouteEntry, ...] = tuple(_entries())
