"""Send memories as the file that `byheart export` writes and `byheart import` reads.

The server writes the file to its disk first. So a slow client keeps no transaction open, an error
has a status of its own, and the client learns how long the file is.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from byheart.interfaces.operations import Grant, Operation
from byheart.interfaces.rest.asking import read_json
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.work import Caller, Work
from byheart.model.checks import check_names
from byheart.store import MemoryStore
from byheart.system import clock

EXPORT_PATH = "/export"
MEDIA_TYPE = "application/x-ndjson"
# An export has histories and earlier texts, which may be of several sessions.
EXPORT = Operation("export", "read", "space")
_PARAMETERS = ("memory_id", "vectors", "space")
_FLAGS = {"true": True, "false": False}
_PIECE_BYTES = 1 << 18


class Exports:
    """Answer requests for a file with memories."""

    def __init__(self, store: MemoryStore, work: Work) -> None:
        self._store = store
        self._work = work

    async def answer(self, request: Request) -> Response:
        """Write a space, or the memories that `memory_id` names, and send the file."""
        given = await read_json(request) if request.method == "POST" else _read_query(request)
        check_names(given, _PARAMETERS, f"parameter of {EXPORT_PATH}")
        grant: Grant = request.state.grant
        task = partial(self._write, given, grant)
        # An export takes long: it may not delay searches.
        file, space = await self._work.run("write", task, Caller.of(request))
        name = re.sub(r"[^\w-]+", "-", space, flags=re.ASCII)
        headers = {
            "Content-Length": str(file.seek(0, 2)),
            "Content-Disposition": f'attachment; filename="byheart-{name}-{clock.now():%F}.jsonl"',
        }
        return StreamingResponse(_pieces(file), headers=headers, media_type=MEDIA_TYPE)

    def _write(self, given: dict[str, Any], grant: Grant) -> tuple[BinaryIO, str]:
        asked = grant.narrow(EXPORT, given, self._store)
        space = asked.get("space") or self._store.space
        with ExitStack() as failing:
            try:
                file: Any = failing.enter_context(tempfile.TemporaryFile())
                vectors, chosen = asked.get("vectors", False), asked.get("memory_id")
                self._store.export(file, vectors=vectors, space=space, memory_id=chosen)
                file.flush()
            except OSError as error:
                raise Problem(
                    507,
                    f"the export cannot be written on the server: {error.strerror}",
                    "free some space there, or export fewer memories: memory_id names some",
                ) from error
            failing.pop_all()  # the file is closed when it was sent
        return file, space


def _read_query(request: Request) -> dict[str, Any]:
    asked = request.query_params
    given: dict[str, Any] = {name: asked[name] for name in asked}
    if "memory_id" in given:
        given["memory_id"] = asked.getlist("memory_id")
    if "vectors" in given:
        given["vectors"] = _FLAGS.get(given["vectors"], given["vectors"])
    return given


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while piece := file.read(_PIECE_BYTES):
            yield piece
