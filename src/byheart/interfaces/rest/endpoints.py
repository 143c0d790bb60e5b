"""A request carried out: read, performed in a thread, answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from byheart.errors import InvalidInput
from byheart.interfaces.operations import Grant, perform
from byheart.interfaces.rest.asking import Given, read_given
from byheart.interfaces.rest.files import FilesFolder
from byheart.interfaces.rest.routes import ROUTES, SEVERAL, WRITE_TO_FILE, RouteEntry
from byheart.interfaces.rest.work import Work
from byheart.memory_store import MemoryStore
from byheart.model import to_wire

# What the metrics tell apart, as the answer names it.
_MODES = ("search", "recall", "context")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is answered: made in the worker's thread, down to the bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""


class Desk:
    """Carry out what the routes ask for, on one store."""

    def __init__(self, store: MemoryStore, work: Work, files: FilesFolder) -> None:
        self._store = store
        self._work = work
        self._files = files

    def routes(self) -> list[Route]:
        """Make the routes: one for each path, so that 405 can name all its methods."""
        by_path: dict[str, dict[str, RouteEntry]] = {}
        for entry in ROUTES:
            by_path.setdefault(entry.path, {})[entry.method] = entry
        return [
            Route(path, self._endpoint(entries), methods=list(entries))
            for path, entries in by_path.items()
        ]

    def _endpoint(self, entries: Mapping[str, RouteEntry]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            entry = entries["GET" if request.method == "HEAD" else request.method]
            given = await read_given(request, entry)
            grant: Grant = request.state.grant
            lane = entry.lane_for(given)
            outcome = await self._work.run(lane, partial(self._carry_out, entry, given, grant))
            request.state.mode = outcome.mode
            return Response(
                outcome.body,
                outcome.status,
                headers=dict(outcome.headers),
                media_type="application/json",
            )

        return endpoint

    def _carry_out(self, entry: RouteEntry, given: Given, grant: Grant) -> Outcome:
        verb = entry.operation.name
        if verb in SEVERAL:
            return self._keep(entry, given, grant)
        if verb == "write_to_file":
            given = self._placed(given, grant)
        answer = perform(self._store, entry.operation, given, grant)
        if verb == "search":
            # The name that callers of other systems know, as `source` is of `mode`.
            answer["count"] = answer["total_results"]
        return Outcome(write_json(answer), mode=answer["mode"] if verb in _MODES else "")

    def _keep(self, entry: RouteEntry, given: Given, grant: Grant) -> Outcome:
        if "items" in given:
            return Outcome(write_json(self._keep_several(entry, given, grant)))
        saved = perform(self._store, entry.operation, given, grant)
        if saved["status"] != "created":
            return Outcome(write_json(saved))
        place = f"/memories/{quote(saved['memory_id'], safe='')}"
        return Outcome(write_json(saved), 201, {"Location": place})

    def _keep_several(self, entry: RouteEntry, given: Given, grant: Grant) -> Any:
        items, of_all = given["items"], {name: given[name] for name in entry.in_path}
        if len(given) > 1 + len(of_all) or not isinstance(items, list):
            raise InvalidInput(
                "items stand alone, as a list",
                'send {"items": [{"content": …}, …]}, each with its own fields',
            )
        for item in items:
            if not isinstance(item, dict) or item.keys() & of_all.keys():
                raise InvalidInput(
                    "each of the items is an object, without what stands in the path",
                    'send {"content": …} for each',
                )
        verb = entry.operation
        # All of them first: what is not allowed must not leave the half of it behind.
        allowed = [
            grant.narrow(verb.name, verb.needs, verb.reach, {**item, **of_all}, self._store)
            for item in items
        ]
        return to_wire(getattr(self._store, SEVERAL[verb.name])(allowed))

    def _placed(self, given: Given, grant: Grant) -> Given:
        place = self._files.locate(given.get("output_path"))
        verb = WRITE_TO_FILE
        asked = grant.narrow(verb.name, verb.needs, verb.reach, given, self._store)
        self._store.get(asked["memory_id"], asked.get("space"))
        self._files.make_room(place)
        return {**given, "output_path": str(place)}


def write_json(value: Any) -> bytes:
    """Write JSON in UTF-8; what is no character comes out as JSON's own escape for it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")
