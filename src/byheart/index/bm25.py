"""Weigh the words of chunks by Okapi BM25."""

from __future__ import annotations

from byheart.language.rarity import rarity
from byheart.startup.late_numpy import NDArray, np

# The constants that SQLite's own bm25() uses.
K1, B = 1.2, 0.75
# BM25 treats no chunk as longer than this many times the mean length. In a store of short facts, a
# unique word in a full-size chunk would otherwise count for too little (docs/quality-trials.md).
LONGEST = 3.0

Scores = NDArray["np.float32"]


def norms_of_lengths(lengths: NDArray[np.int32], mean_length: float) -> Scores:
    """Return the part of BM25's divisor that depends on the length of each chunk."""
    norms: Scores = lengths.astype(np.float32)
    np.minimum(norms, np.float32(LONGEST * mean_length), out=norms)
    norms *= np.float32(K1 * B / mean_length)
    norms += np.float32(K1 * (1 - B))
    return norms


def weigh_term(times_asked: int, chunks: int, total: int) -> float:
    """Return the weight of a term that is in `chunks` of `total` chunks."""
    return times_asked * rarity(chunks, total) * (K1 + 1)


def weigh_occurrences(counts: Scores, norms: Scores, weight: float) -> Scores:
    """Return what a term contributes to the score of each chunk that contains it.

    Both arrays are overwritten, because new ones for each step would take as long as the steps.
    """
    norms += counts
    counts *= np.float32(weight)
    counts /= norms
    return counts
