"""Weigh the terms of a question by their rarity: how much of the question does a chunk have?"""

from __future__ import annotations

from itertools import compress
from typing import NamedTuple

from byheart.contracts import MOST_TERMS, Candidates, Numbers
from byheart.language.rarity import rarity
from byheart.language.word_pieces import MARK

# Among fewer chunks, a term that one chunk has would seem common. So rarity is computed as if there
# were at least this many chunks, where the additional ones have none of the question's terms.
LEAST_TO_TELL_RARITY = 100


class TermRarities(NamedTuple):
    """Hold how rare the terms of a question are: each that occurs, all of them, and an unseen one.

    They are the same for all chunks of one search.
    """

    each: list[float]
    all: float
    unseen: float

    def held_by(self, found: Candidates, rows: Numbers) -> list[float]:
        """Add up the rarities of the terms that each of some chunks has."""
        return [sum(compress(self.each, present)) for present in found.terms_present[rows].tolist()]


def weigh_terms(found: Candidates) -> TermRarities:
    """Return the rarity of the terms that some candidates were searched by."""
    counted = max(found.chunks, LEAST_TO_TELL_RARITY)
    unseen = rarity(0, counted)
    terms = found.document_frequency
    rarities = [rarity(chunks, counted) for chunks in terms.values()]
    # A piece of a word that no chunk has says nothing: the word itself is counted.
    asked = {term for term in found.terms if not term.startswith(MARK) or term in terms}
    missing = (min(len(asked), MOST_TERMS) - len(terms)) * unseen
    return TermRarities(rarities, sum(rarities) + missing, unseen)
