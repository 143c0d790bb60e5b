"""Measure the background of a question: its cosines with a sample of all chunks.

A cosine means little by itself: unrelated passages have 0.1 with one model and 0.7 with another,
and a question in a language that the model does not know is near to every text. The distance of a
chunk above the background shows how much its cosine means.
"""

from __future__ import annotations

from byheart.contracts import Background
from byheart.index.selections import Selection
from byheart.index.view import View, Windows
from byheart.startup.late_numpy import NDArray, np

# A sample has between half this number and this number of chunks. With ten times as many, quality
# is the same within 0.002.
_MOST_SAMPLED = 512
# The upper tail is the best tenth, if this has at least so many chunks.
_LEAST_IN_TAIL = 10


def take_sample(view: View, selection: Selection) -> Windows:
    """Take the vectors of a sample of the selected chunks, the same sample each time."""
    if not selection.samples:
        excess = (max(selection.total, 1) - 1).bit_length() - _MOST_SAMPLED.bit_length() + 1
        slots = view.scattered(max(0, excess))
        slots = slots.take(np.flatnonzero(selection.chunks.take(slots)))
        selection.samples.append(view.windows(slots))
    return selection.samples[0]


def look_around(view: View, vector: NDArray[np.float32], selection: Selection) -> Background:
    """Compare a question with a sample of the selected chunks."""
    cosines = take_sample(view, selection).cosines(vector).astype(np.float64)
    if not len(cosines):
        return Background(0.0, 0.0, selection.total)
    mean, deviation = float(cosines.mean()), float(cosines.std())
    in_tail = len(cosines) // 10
    if in_tail < _LEAST_IN_TAIL or deviation == 0:
        return Background(mean, deviation, selection.total)
    # Sorted, so that the mean does not depend on where the chunks are stored.
    tail = np.sort(cosines)[-in_tail:]
    shoulder = float(tail[0])
    excess = float(tail.mean()) - shoulder
    return Background(
        mean, deviation, selection.total, (shoulder - mean) / deviation, excess / deviation
    )
