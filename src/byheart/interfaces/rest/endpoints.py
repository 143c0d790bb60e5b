"""Carry out requests: read the parameters, call the verb in a thread, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from byheart.errors import ByheartError, InvalidInput
from byheart.interfaces.operations import (
    OPERATIONS,
    Grant,
    carry_out,
    narrow,
    perform,
    perform_many,
)
from byheart.interfaces.rest.asking import Asked, Given, take
from byheart.interfaces.rest.files import FilesFolder
from byheart.interfaces.rest.hints import spelling_for
from byheart.interfaces.rest.routes import ROUTES, WRITE_TO_FILE, RouteEntry
from byheart.interfaces.rest.work import Caller, Work
from byheart.model.compat_names import COMPAT_FIELDS
from byheart.startup.dataclass_types import dataclass
from byheart.store import MemoryStore

# Verbs whose answer names the search mode; the metrics count each mode separately.
_MODES = ("search", "recall", "context")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold an answer, made in the worker thread down to its bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""


class Desk:
    """Carry out the requests of all routes on one store."""

    def __init__(self, store: MemoryStore, work: Work, files: FilesFolder) -> None:
        self._store = store
        self._work = work
        self._files = files

    def routes(self) -> list[Route]:
        """Make one route for each path, so that a 405 answer can name all methods of the path."""
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
            asked = await take(request, entry)
            grant: Grant = request.state.grant
            outcome = await self._carry_out(asked, grant, Caller.of(request))
            request.state.mode = outcome.mode
            return Response(
                outcome.body,
                outcome.status,
                headers=dict(outcome.headers),
                media_type="application/json",
            )

        return endpoint

    async def _carry_out(self, asked: Asked, grant: Grant, caller: Caller) -> Outcome:
        entry = asked.route
        if asked.is_large:
            lane = entry.lane_for(None)
            return await self._work.run(
                lane, lambda: self._answer(entry, asked.read(), grant), caller
            )
        given = asked.read()
        return await self._work.run(
            entry.lane_for(given), partial(self._answer, entry, given, grant), caller
        )

    def _answer(self, entry: RouteEntry, given: Given, grant: Grant) -> Outcome:
        operation = entry.operation
        if operation.several is not None:
            return self._keep(entry, given, grant)
        if operation is WRITE_TO_FILE:
            return Outcome(write_json(self._write_file(given, grant)))
        answer = perform(self._store, operation, given, grant, spelling_for(grant))
        for name, means in COMPAT_FIELDS.get(operation.name, {}).items():
            answer[name] = answer[means]
        return Outcome(write_json(answer), mode=answer["mode"] if operation.name in _MODES else "")

    def _keep(self, entry: RouteEntry, given: Given, grant: Grant) -> Outcome:
        if "items" in given:
            of_all = {name: given[name] for name in entry.in_path}
            if len(given) > 1 + len(of_all):
                raise InvalidInput(
                    "items cannot be combined with other fields",
                    'send {"items": [{"content": …}, …]}, each with its own fields',
                )
            saved = perform_many(
                self._store, entry.operation, given["items"], grant, of_all, spelling_for(grant)
            )
            return Outcome(write_json(saved))
        saved = perform(self._store, entry.operation, given, grant, spelling_for(grant))
        if saved["status"] != "created":
            return Outcome(write_json(saved))
        place = f"/memories/{quote(saved['memory_id'], safe='')}"
        return Outcome(write_json(saved), 201, {"Location": place})

    def _write_file(self, given: Given, grant: Grant) -> Any:
        asked = narrow(self._store, WRITE_TO_FILE, given, grant)
        named = {"memory_id": asked["memory_id"], "space": asked.get("space")}
        memory = carry_out(self._store, OPERATIONS["get"], named, grant)
        place = self._files.locate(given["output_path"], memory.space, grant.session_id)
        shown = self._files.name(place)
        self._files.make_room(place)
        try:
            placed = {**given, "output_path": str(place)}
            written = perform(self._store, WRITE_TO_FILE, placed, grant)
        except ByheartError as error:
            # Callers must not learn where the folder is located on this machine.
            error.message = error.message.replace(str(place), shown)
            raise
        return {**written, "file_path": shown}


def write_json(value: Any) -> bytes:
    """Write JSON in UTF-8; a lone surrogate is written as a JSON escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")
