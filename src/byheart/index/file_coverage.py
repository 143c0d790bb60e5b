"""Measure how much of a store index files cover, and how much of an index is missing from them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from byheart.startup.dataclass_types import dataclass
from byheart.startup.late_numpy import NDArray, np

# Another part is written when this many chunks are missing from the files. A new process reads the
# missing ones again, which takes a quarter of a second for a thousand.
_LEAST_UNPUBLISHED, _MOST_UNPUBLISHED = 400, 1000
# Loading a copy costs about 10 microseconds per chunk, indexing a chunk 25 times as much.
_LOADED_PER_INDEXED = 25


def least_unpublished(published: int) -> int:
    """Give the number of missing chunks that makes writing another part worth the time."""
    return max(_LEAST_UNPUBLISHED, min(_MOST_UNPUBLISHED, published // 5))


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """How much of a store index files cover; removed chunks do not count.

    `embedded` counts the chunks that need no further vectors of the model.
    """

    store_id: str
    change_no: int
    stamp: int
    model_no: int | None
    chunks: int
    embedded: int
    last_chunk_no: int

    @classmethod
    def of_label(cls, label: str) -> FileCoverage | None:
        """Read a label; give `None` for the label of another version of Byheart."""
        try:
            return cls(**json.loads(label))
        except (ValueError, TypeError):
            return None

    @property
    def as_dict(self) -> dict[str, Any]:
        """Give the values by their names."""
        return asdict(self)

    @property
    def label(self) -> str:
        """Write the coverage as a label for a copy of the files."""
        return json.dumps(self.as_dict)

    def is_behind(self, other: FileCoverage) -> bool:
        """Say whether another file of the same store shows a later change."""
        return self.store_id == other.store_id and self.change_no < other.change_no

    def missing(self, other: FileCoverage, chunk_nos: NDArray[np.int64]) -> int:
        """Count the chunks that a later file added, removed or embedded; give it and its chunks."""
        added = len(chunk_nos) - int(np.searchsorted(chunk_nos, self.last_chunk_no, "right"))
        removed = self.chunks - (other.chunks - added)
        if self.model_no != other.model_no:
            return other.chunks + removed
        return max(added + removed, other.embedded - self.embedded)

    def is_worth_loading(self, local: FileCoverage | None) -> bool:
        """Say whether loading this file takes less time than bringing a local one up to date."""
        if local is None:
            return True
        if not local.is_behind(self):
            return False
        news = self.chunks - local.chunks
        if self.model_no == local.model_no:
            news = max(news, self.embedded - local.embedded)
        else:
            news = max(news, self.embedded)
        return news >= max(_LEAST_UNPUBLISHED, self.chunks // _LOADED_PER_INDEXED)
