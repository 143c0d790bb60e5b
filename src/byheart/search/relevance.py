"""Relevance: whether a passage has to do with a question at all.

A search gives the best there is, however far that is: whoever asked can judge it. What is put into
a prompt unasked must answer it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byheart.contracts import Candidate, Vectors
from byheart.language.terms import terms

# A passage with so many of a question's words answers it, whatever a model makes of them.
SHARED_WORDS = 0.5


def is_relevant(
    candidate: Candidate, words: Sequence[str], vector: Vectors | None, least_similarity: float
) -> bool:
    """Say whether a passage is near a question by its meaning, or has its words."""
    if vector is not None and candidate.vectors is not None:
        nearest = np.einsum("id,jd->ij", np.atleast_2d(vector), candidate.vectors).max()
        if float(nearest) >= least_similarity:
            return True
    wanted = set(words)
    held = wanted & set(terms(candidate.found.chunk.content))
    return bool(wanted) and len(held) >= SHARED_WORDS * len(wanted)
