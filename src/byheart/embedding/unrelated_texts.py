"""Measure the cosine that a model gives to texts that have nothing in common.

This cosine is 0 for one model and 0.7 for another. Only a cosine above it means similarity.
"""

from __future__ import annotations

from byheart.contracts import Embedder
from byheart.embedding.unit_vectors import to_unit_length

# Measured in advance, so that no question has to wait: the questions of ten data sets have a mean
# cosine of 0.01 with texts of another data set.
_KNOWN, _OF_KNOWN = "all-MiniLM-L6-v2", 0.0
_MOST = 0.95
_TEXTS = (
    "Knead the dough for ten minutes and let it rise under a cloth.",
    "The comet will be closest to the sun in early March.",
    "He returns a list of integers sorted in descending order.",
    "Tenants must give written notice three months before they move out.",
    "The midfielder scored twice in the second half.",
    "Glaciers carved these valleys during the last ice age.",
    "Take one tablet twice a day with a glass of water.",
    "Her violin concerto was first performed in Vienna.",
    "Interest rates were raised by a quarter of a point.",
    "Bees tell one another by dancing where the flowers are.",
    "Tighten the bolts of the front wheel before riding.",
    "The treaty ended thirty years of war between the two kingdoms.",
)


def measure_unrelated(embedder: Embedder) -> float:
    """Return the mean cosine of texts about unrelated subjects, at least 0."""
    if embedder.name.startswith(_KNOWN):
        return _OF_KNOWN
    vectors = to_unit_length(embedder.embed(_TEXTS), embedder.name).astype("float64")
    count = len(vectors)
    # The mean over all pairs of two different texts.
    together = float((vectors.sum(axis=0) ** 2).sum() - (vectors**2).sum())
    return min(max(together / (count * (count - 1)), 0.0), _MOST)
