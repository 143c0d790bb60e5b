"""Share the counts of requests among the processes of one server.

Any process may be asked for the metrics, and the answer is about the whole server. So each process
writes its counts into a file every second and adds the files of the others when it is asked. A
process that takes the place of a crashed one begins with its counts: a counter never falls.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from byheart.interfaces.rest.metrics import Metrics
from byheart.interfaces.rest.work import Lane, Work


class SharedCounts:
    """Keep the counts of one process in the folder of its server."""

    def __init__(self, folder: Path, number: int, work: Work) -> None:
        self.metrics = Metrics()
        self._work = work
        self._folder = folder
        self._file = folder / f"{number}.json"
        self._written = ""
        before = _read(self._file)
        if before is not None:
            self.metrics.add(before["counts"])

    def write(self) -> None:
        """Write the counts of this process if they changed; a full disk harms no request."""
        now = {"counts": self.metrics.snapshot(), "under_way": self._work.under_way()}
        text = json.dumps(now)
        if text == self._written:
            return
        fresh = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._file)
            self._written = text

    def of_all(self) -> tuple[Metrics, Mapping[Lane, int]]:
        """Add up the counts of all processes of the server, and the requests under way."""
        whole, under_way = Metrics(), dict(self._work.under_way())
        whole.add(self.metrics.snapshot())
        for other in self._others():
            whole.add(other["counts"])
            for lane in under_way:
                under_way[lane] += other["under_way"][lane]
        return whole, under_way

    def _others(self) -> Iterator[dict[str, Any]]:
        for path in self._folder.glob("*.json"):
            read = _read(path) if path != self._file else None
            if read is not None:
                yield read


def _read(path: Path) -> dict[str, Any] | None:
    try:
        read: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return read
