"""Weigh the feedback on memories: what helped with a question helps with questions like it.

Each entry has a weight by its outcome. It counts as far as its question is like the present one,
and half as much after each half-life. The sum moves a chunk's score by a factor within fixed
bounds, so that feedback can reorder answers, but never bury one or make one of an unrelated text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import shake_256

from byheart.contracts import Figures, Vectors
from byheart.language.terms import query_terms
from byheart.model.feedback import AskedQuestion, Feedback, KeptOutcome, read_feedback
from byheart.startup.late_numpy import NDArray, np

# The bounds of the factor: any number of helpful entries reaches the first, of others the second.
MOST_GAIN, LEAST_GAIN = 1.5, 0.75
# A reply that repeats a memory shows less than a caller who says that it helped, and a memory that
# was not needed is not wrong.
WEIGHTS: Mapping[KeptOutcome, float] = {"used": 1.0, "echoed": 0.3, "ignored": -0.3, "wrong": -1.0}
# Questions count as alike from this likeness on, and fully at 1.
LEAST_LIKENESS = 0.6
# A longer question is described by so many of its terms.
_MOST_TERMS = 32
# A question's vector is kept as the sides of so many directions that it is on: the cosine of two
# vectors can be estimated to ±.05, and no vector has to be stored.
_DIRECTIONS = 384
_SECONDS_PER_DAY = 86_400


def describe_question(query: str, vector: Vectors | None) -> AskedQuestion:
    """Describe a question by what it can be compared by."""
    signs = b"" if vector is None else np.packbits(_directions(len(vector)) @ vector > 0).tobytes()
    return AskedQuestion(frozenset(list(dict.fromkeys(query_terms(query)))[:_MOST_TERMS]), signs)


@lru_cache(2)
def _directions(dimensions: int) -> NDArray[np.float32]:
    """Return fixed random directions of ±1, always the same ones for a number of dimensions.

    Two vectors are on different sides of such a direction with the probability angle / π.
    """
    bits = shake_256(b"directions").digest(_DIRECTIONS * dimensions // 8)
    signs = np.unpackbits(np.frombuffer(bits, np.uint8)).reshape(_DIRECTIONS, dimensions)
    directions: NDArray[np.float32] = signs.astype(np.float32) * 2 - 1
    return directions


def likeness(some: AskedQuestion, other: AskedQuestion) -> float:
    """Return how like two questions are, by their terms or their vectors, from 0 to 1."""
    either = some.terms | other.terms
    by_terms = len(some.terms & other.terms) / len(either) if either else 0.0
    return max(by_terms, _cosine_of_signs(some.signs, other.signs))


def _cosine_of_signs(some: bytes, other: bytes) -> float:
    """Estimate the cosine of two vectors by the share of the directions that separate them.

    Vectors of two models, or of none, are not alike: their signs agree by chance alone.
    """
    if len(some) != len(other) or not some:
        return 0.0
    differing = (int.from_bytes(some) ^ int.from_bytes(other)).bit_count()
    return max(0.0, math.cos(math.pi * differing / (8 * len(some))))


def gain_of(
    entries: Sequence[Feedback], question: AskedQuestion, now: datetime, half_life_days: float
) -> float:
    """Return the factor that the feedback on a memory gives its score for a question."""
    total = 0.0
    for entry in entries:
        alike = (likeness(entry.question, question) - LEAST_LIKENESS) / (1 - LEAST_LIKENESS)
        if alike > 0:
            days = max(0.0, (now - entry.at).total_seconds() / _SECONDS_PER_DAY)
            total += WEIGHTS[entry.outcome] * alike * 0.5 ** (days / half_life_days)
    bound = MOST_GAIN if total > 0 else LEAST_GAIN
    return float(bound ** math.tanh(abs(total)))


def feedback_gains(
    kept: Mapping[int, str], rows: int, question: AskedQuestion, now: datetime, half_life: float
) -> Figures | None:
    """Return the factor of each row; `kept` has the feedback of rows that have any.

    `None` stands for rows that all have the factor 1.
    """
    gains = {
        row: gain_of(read_feedback(text), question, now, half_life) for row, text in kept.items()
    }
    if all(gain == 1.0 for gain in gains.values()):
        return None
    factors = np.ones(rows)
    factors[list(gains)] = list(gains.values())
    return factors
