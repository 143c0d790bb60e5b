"""Decide whether a passage is relevant to a question at all.

A search returns the best chunks, however weak they are, because the user who asked can judge them.
A passage that goes into a prompt unasked must be relevant.
"""

from __future__ import annotations

from collections.abc import Sequence

from byheart.contracts import Candidate, Vectors
from byheart.language.terms import terms
from byheart.startup.late_numpy import np

# A passage with this share of the question's words is relevant, whatever the vectors say.
SHARED_WORDS = 0.5


def is_relevant(
    candidate: Candidate, words: Sequence[str], vector: Vectors | None, least_similarity: float
) -> bool:
    """Return whether a passage is near a question in meaning, or shares its words."""
    if vector is not None and candidate.vectors is not None:
        nearest = np.einsum("id,jd->ij", np.atleast_2d(vector), candidate.vectors).max()
        if float(nearest) >= least_similarity:
            return True
    wanted = set(words)
    held = wanted & set(terms(candidate.found.chunk.content))
    return bool(wanted) and len(held) >= SHARED_WORDS * len(wanted)
