"""Which cosine has a model for texts that have nothing in common?

With one model that is 0, with another 0.7: only what is above it is similarity.
"""

from __future__ import annotations

from byheart.contracts import Embedder
from byheart.embedding.directions import to_unit_length

# Measured once, so that no question waits for it: questions of ten sets have 0.01 with texts of
# another.
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
    """Give the mean cosine of texts on subjects far apart, at least 0."""
    if embedder.name.startswith(_KNOWN):
        return _OF_KNOWN
    vectors = to_unit_length(embedder.embed(_TEXTS), embedder.name).astype("float64")
    count = len(vectors)
    # The mean over all pairs, without those of a text with itself.
    together = float((vectors.sum(axis=0) ** 2).sum() - (vectors**2).sum())
    return min(max(together / (count * (count - 1)), 0.0), _MOST)
