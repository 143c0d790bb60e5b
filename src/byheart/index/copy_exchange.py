"""Exchange an index file with the copy that a database keeps for all servers.

The copy only saves time: an index is right without it. It is never stale, because the index follows
the log of changes from any file, or refuses the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from byheart.contracts import IndexCopy
from byheart.errors import StoreError
from byheart.index import file
from byheart.index.file_coverage import FileCoverage, least_unpublished

# The number of servers that may replace the copy while this one tries to.
_MOST_OFFERS = 10


class CopyExchange:
    """Load and replace the copy of one index file."""

    def __init__(self, path: Path, copy: IndexCopy) -> None:
        self._path = path
        self._copy = copy
        # The label of a copy that could not be used: it is not loaded again, but replaced.
        self._unfit: str | None = None

    def fetch(
        self,
        local: FileCoverage | None,
        prepare: Callable[[], int],
        accept: Callable[[file.IndexFile], bool],
    ) -> bool:
        """Load the copy to the path if no file here is nearly as new, and say whether it is there.

        `prepare` makes the folder and gives the mode of the file; `accept` decides about the copy.
        """
        with contextlib.suppress(OSError, StoreError):
            label = self._copy.label()
            coverage = None if label is None else FileCoverage.of_label(label)
            if coverage is None:
                self._unfit = label
            elif label != self._unfit and coverage.is_worth_loading(local):
                received = file.receive(self._path, prepare(), self._copy.load, accept)
                self._unfit = label if received is None else None
                return received is not None
        return False

    def offer(self, *, thorough: bool = False) -> bool:
        """Replace the copy if it is behind the file; say whether it is up to date afterwards.

        A copy may lack as many chunks as a file may. Only `thorough` replaces such a copy too:
        rows that were erased have to disappear.
        """
        with contextlib.suppress(OSError, StoreError):
            for _ in range(_MOST_OFFERS):
                written = file.read(self._path)
                if written is None:
                    return False
                own = FileCoverage.of_file(written.header, written.arrays)
                label = self._copy.label()
                if self._is_enough(label, own, written, thorough):
                    return True
                if self._copy.put(self._path, own.label, label):
                    self._unfit = None
                    return True
        return False

    def _is_enough(
        self, label: str | None, own: FileCoverage, written: file.IndexFile, thorough: bool
    ) -> bool:
        there = None if label is None or label == self._unfit else FileCoverage.of_label(label)
        if there is None or there.store_id != own.store_id:
            return False
        if not there.is_behind(own):
            return True
        missing = there.missing(own, written.arrays["chunk.chunk_nos"])
        return not thorough and missing < least_unpublished(there.chunks)

    def clear(self) -> None:
        """Remove the copy."""
        self._copy.clear()
