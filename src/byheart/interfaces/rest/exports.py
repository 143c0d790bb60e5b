"""Send memories as the file that `byheart export` writes and `byheart import` reads.

The server writes the file to its disk first. So a slow client keeps no transaction open, an error
has a status of its own, and the client learns how long the file is. The file takes its space until
the download ends, so each API key may have only a few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from byheart.interfaces.operations import Grant, Operation
from byheart.interfaces.rest.asking import read_json
from byheart.interfaces.rest.files import FilesFolder
from byheart.interfaces.rest.problems import Problem
from byheart.interfaces.rest.work import Caller, Overloaded, Work
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
# The exports of one API key that may be written, or sent, at a time.
_MOST_OF_A_KEY = 2


class Exports:
    """Answer requests for a file with memories."""

    def __init__(self, store: MemoryStore, work: Work, files: FilesFolder) -> None:
        self._store = store
        self._work = work
        self._files = files
        self._under_way: Counter[str] = Counter()

    async def answer(self, request: Request) -> Response:
        """Write a space, or the memories that `memory_id` names, and send the file."""
        given = await read_json(request) if request.method == "POST" else _read_query(request)
        check_names(given, _PARAMETERS, f"parameter of {EXPORT_PATH}")
        grant: Grant = request.state.grant
        caller = Caller.of(request)
        with ExitStack() as ending:
            ending.enter_context(self._admitted(caller.key))
            task = partial(self._write, given, grant)
            file, space = await self._work.run("export", task, caller)
            ending.enter_context(file)
            name = re.sub(r"[^\w-]+", "-", space, flags=re.ASCII)
            day = f"{clock.now():%F}"
            headers = {
                "Content-Length": str(file.seek(0, 2)),
                "Content-Disposition": f'attachment; filename="byheart-{name}-{day}.jsonl"',
            }
            return _Download(file, headers, ending.pop_all())

    @contextmanager
    def _admitted(self, key: str) -> Iterator[None]:
        """Count an export of an API key until it ends; refuse it if too many are under way."""
        if self._under_way[key] >= _MOST_OF_A_KEY:
            raise Overloaded(
                f"{_MOST_OF_A_KEY} exports of this API key are under way",
                "ask again when one of them has been sent",
            )
        self._under_way[key] += 1
        try:
            yield
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]

    def _write(self, given: dict[str, Any], grant: Grant) -> tuple[BinaryIO, str]:
        asked = grant.narrow(EXPORT, given, self._store)
        space = asked.get("space") or self._store.space
        with ExitStack() as failing:
            try:
                file = failing.enter_context(self._files.open_unnamed())
                vectors, chosen = asked.get("vectors", False), asked.get("memory_id")
                self._store.export(file, vectors=vectors, space=space, memory_id=chosen)
                file.flush()
            except OSError as error:
                raise Problem(
                    507,
                    f"the export cannot be written on the server: {error.strerror}",
                    "free some space in files_dir, or export fewer memories: memory_id names some",
                ) from error
            failing.pop_all()  # the file is closed when the download ends
        return file, space


class _Download(StreamingResponse):
    """Send a file; close `ending` afterwards, also if the client hangs up."""

    def __init__(self, file: BinaryIO, headers: Mapping[str, str], ending: ExitStack) -> None:
        super().__init__(_pieces(file), headers=headers, media_type=MEDIA_TYPE)
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._ending:
            await super().__call__(scope, receive, send)


def _read_query(request: Request) -> dict[str, Any]:
    asked = request.query_params
    given: dict[str, Any] = {name: asked[name] for name in asked}
    if "memory_id" in given:
        given["memory_id"] = asked.getlist("memory_id")
    if "vectors" in given:
        given["vectors"] = _FLAGS.get(given["vectors"], given["vectors"])
    return given


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece
