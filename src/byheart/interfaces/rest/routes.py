"""List which verb each path calls, and where its parameters are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from byheart.interfaces.operations import OPERATIONS, Operation, Parameter
from byheart.model import Access
from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_patterns import late_pattern

Method = Literal["GET", "POST", "PATCH", "DELETE"]
_IN_PATH = late_pattern(r"\{(\w+)\}")

# Verbs that only read, but take long: they look at all memories of a space.
_TAKE_LONG = ("dedupe", "review", "map")
# Only this interface offers the verb: it confines the files to one folder.
WRITE_TO_FILE = Operation("write_to_file", "write", "memory", by_path=True)


@dataclass(frozen=True)
class RouteEntry:
    """Map one method and path to a verb.

    `only` names the parameters that the route takes, if it does not take all; `without` names the
    parameters that it does not take.
    """

    method: Method
    path: str
    operation: Operation
    summary: str = ""
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """Return the names of the parameters that are part of the path."""
        return tuple(_IN_PATH.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Tell whether the other parameters are in a JSON body, not in the query string."""
        return self.method in ("POST", "PATCH")

    @cached_property
    def takes_text(self) -> bool:
        """Tell whether the body may contain a text to save: then the size limit is the setting's.

        A route that takes metadata always takes a text as well.
        """
        return bool({"content", "text"} & self.parameters.keys())

    def lane_for(self, given: Mapping[str, Any] | None) -> Access:
        """Choose the threads for a request, so that slow work does not delay searches.

        `given` is `None` if the body is not parsed yet: such a request may turn out to write.
        """
        if self.operation.name in _TAKE_LONG or (given is None and self.operation.writes_if):
            return "write"
        return self.operation.needed_for(given or {})

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters that the route takes besides those in the path."""
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
    yield RouteEntry("GET", f"{memory}/versions", verb["versions"])
    yield RouteEntry("GET", f"{memory}/chunks", verb["chunks"])
    yield RouteEntry("GET", f"{memory}/rendered", verb["render"])
    yield RouteEntry("GET", f"{memory}/similar", verb["similar"])
    yield RouteEntry("POST", "/brief", verb["brief"])
    yield RouteEntry("GET", "/map", verb["map"])
    yield RouteEntry("GET", "/timeline", verb["timeline"])
    yield RouteEntry("POST", f"{memory}/restore", verb["restore"])
    yield RouteEntry("POST", f"{memory}/supersede", verb["supersede"])
    yield RouteEntry("POST", f"{memory}/feedback", verb["feedback"])
    yield RouteEntry("GET", "/review", verb["review"])
    yield RouteEntry("POST", "/review/keep", verb["keep_item"])
    yield RouteEntry("POST", "/review/unkeep", verb["unkeep_item"])
    yield RouteEntry("GET", "/quarantine", verb["quarantine"])
    yield RouteEntry("POST", "/trust", verb["trust"])
    yield RouteEntry("POST", "/distrust", verb["distrust"])
    yield RouteEntry("POST", "/memories/{keep}/merge", verb["merge"])
    yield RouteEntry("POST", f"{memory}/write_to_file", WRITE_TO_FILE)
    yield RouteEntry("GET", "/chunks/{chunk_id}", verb["expand"])
    yield RouteEntry("POST", "/forget", verb["forget"])
    yield RouteEntry("POST", "/cleanup", verb["cleanup"])
    yield RouteEntry("POST", "/dedupe", verb["dedupe"])
    yield RouteEntry("POST", f"{memory}/pin", verb["pin"])
    yield RouteEntry("POST", f"{memory}/unpin", verb["unpin"])
    yield RouteEntry("POST", "/context", verb["context"])
    yield RouteEntry("GET", "/receipts", verb["receipts"])
    yield RouteEntry("GET", "/receipts/{receipt_id}", verb["receipt"])
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
    # Clients may repeat or prefetch a GET, so it must change nothing: `reset` needs a POST.
    yield RouteEntry("GET", "/stats", verb["stats"], without=("reset",))
    yield RouteEntry("POST", "/stats", verb["stats"])


ROUTES: tuple[RouteEntry, ...] = tuple(_entries())
