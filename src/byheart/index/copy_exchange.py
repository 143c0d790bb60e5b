"""Exchange index files with the copy that a database keeps for all servers.

The copy only saves time: an index is right without it. It is never stale, because the index follows
the log of changes from any file, or refuses the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from byheart.contracts import IndexCopy
from byheart.errors import StoreError
from byheart.index import parts
from byheart.index.contents import Contents
from byheart.index.file_coverage import FileCoverage, least_unpublished

# The number of servers that may replace the copy while this one tries to.
_MOST_OFFERS = 10


class CopyExchange:
    """Load and replace the copy of one index."""

    def __init__(self, path: Path, copy: IndexCopy) -> None:
        self._path = path
        self._copy = copy
        # The label of a copy that could not be used: it is not loaded again, but replaced.
        self._unfit: str | None = None

    def fetch(
        self,
        local: FileCoverage | None,
        mode: int,
        accept: Callable[[parts.Loaded], bool],
    ) -> bool:
        """Load the copy to the path if no files here are nearly as new; say whether it is there.

        `mode` is the mode of new files; `accept` decides about the copy.
        """
        with contextlib.suppress(OSError, StoreError):
            label = self._copy.label()
            coverage = None if label is None else FileCoverage.of_label(label)
            if coverage is None:
                self._unfit = label
            elif label != self._unfit and coverage.is_worth_loading(local):
                received = parts.receive(
                    self._path, mode, self._copy.load, self._copy.load_part, accept
                )
                self._unfit = None if received else label
                return received
        return False

    def offer(self, *, thorough: bool = False) -> bool:
        """Replace the copy if it is behind the file; say whether it is up to date afterwards.

        A copy may lack as many chunks as a file may. Only `thorough` replaces such a copy too:
        rows that were erased have to disappear.
        """
        with contextlib.suppress(OSError, StoreError):
            for _ in range(_MOST_OFFERS):
                written = parts.read(self._path)
                if written is None:
                    return False
                own = Contents.from_files(written)
                label = self._copy.label()
                if self._is_enough(label, own, thorough):
                    return True
                files = {name: parts.part_path(self._path, name) for name in written.head.named}
                # Another process may write the files meanwhile: then they are read again.
                with contextlib.suppress(FileNotFoundError):
                    if self._copy.put(self._path, files, own.coverage.label, label):
                        self._unfit = None
                        return True
        return False

    def _is_enough(self, label: str | None, own: Contents, thorough: bool) -> bool:
        there = None if label is None or label == self._unfit else FileCoverage.of_label(label)
        here = own.coverage
        if there is None or there.store_id != here.store_id:
            return False
        if not there.is_behind(here):
            return True
        missing = there.missing(here, own.living_chunk_nos)
        return not thorough and missing < least_unpublished(there.chunks)

    def clear(self) -> None:
        """Remove the copy."""
        self._copy.clear()
