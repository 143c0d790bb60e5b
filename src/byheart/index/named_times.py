"""Find the chunks of memories from some times: from last week, or from May 2023."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byheart.contracts import Spans
from byheart.index.columns import NEVER
from byheart.index.masks import Mask
from byheart.index.selections import Selection
from byheart.index.view import View
from byheart.startup.late_numpy import np

# A memory that was said at one moment has a span of a microsecond.
_MOMENT = 1


def read_events(view: View) -> Spans:
    """Say of every memory when its statement is valid, or else when it was said."""
    rows = view.memories
    starts = np.where(rows.begins == NEVER, rows.created, rows.begins)
    is_bounded = (rows.begins != NEVER) | (rows.ends != NEVER)
    return Spans(starts, np.where(is_bounded, rows.ends, starts + _MOMENT))


def select_times(
    view: View, selection: Selection, events: Spans, times: Sequence[tuple[int, int]]
) -> Selection:
    """Keep the selected chunks of memories from any of some times."""
    inside: Mask = np.zeros(len(events.starts), np.bool_)
    for start, end in times:
        inside |= (events.starts < end) & (events.ends > start)
    chunks = selection.chunks & inside.take(view.chunks.owner)
    total = int(np.count_nonzero(chunks))
    return replace(selection, chunks=chunks, total=total, samples=[], rows=[], turns=[])
