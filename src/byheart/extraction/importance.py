"""Estimate how important a text is, from 0 to 10; docs/importance.md explains the formula."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from byheart.extraction.vocabulary import STOP_WORDS, UNSPACED
from byheart.startup.late_patterns import late_pattern

SCANNED_CHARS = 20_000
# A memory states its preference at the beginning; a long document has all these words somewhere.
STANCE_CHARS = 500

BASE = 3.0
COMPLEXITY_WEIGHT = 3.0
ENTITY_WEIGHT, ENTITY_LIMIT = 0.5, 2.0
PREFERENCE_BONUS = 2.0
DEFINITE_BONUS = 1.0
SOURCE_BONUS = 0.5
METADATA_BONUS = 0.5
# Automatically recorded texts count less than texts that somebody chose to save.
KIND_BONUS = {
    "relationship": 1.0,
    "entity": 0.5,
    "message": -1.0,
    "tool_output": -1.0,
    "input_prompt": -1.0,
    "file": -1.0,
}

_WORD = late_pattern(f"[{UNSPACED}]|[^\\W{UNSPACED}]+")
_NUMBER = late_pattern(r"\b\d|\bv\d")
# These are searched in lower case, which takes half the time of ignoring the case.
_PREFERENCE = late_pattern(
    r"\b(?:prefer|prefers|preferred|preference|favou?rs?|favou?rite|likes|dislikes|hates|loves"
    r"|(?:i|we) (?:like|love|hate|want|use|usually|typically)|wants|chooses|chose|chosen"
    r"|decided|decides|decision|agreed|policy|convention|always|never|must|must not)\b"
)
_DEFINITE = late_pattern(
    r"\b(?:is|are|was|were|will be|has|have|must|shall|always|never|every|all|none|definitely"
    r"|certainly|absolutely|clearly)\b"
)
_HEDGED = late_pattern(
    r"\b(?:might|may|could|possibly|perhaps|maybe|probably|seems|appears|looks like|suggests"
    r"|i (?:think|believe|guess)|in my opinion)\b"
)


def score_importance(
    content: str,
    *,
    kind: str = "note",
    entities: Collection[str] = (),
    has_source: bool = False,
    has_metadata: bool = False,
) -> float:
    """Score a text from 0 to 10, with one decimal."""
    text = content[:SCANNED_CHARS]
    opening = text[:STANCE_CHARS].lower()
    is_definite = _DEFINITE.search(opening) and not _HEDGED.search(opening)
    score = (
        BASE
        + COMPLEXITY_WEIGHT * _complexity(text)
        + min(ENTITY_WEIGHT * len(entities), ENTITY_LIMIT)
        + (PREFERENCE_BONUS if _PREFERENCE.search(opening) else 0.0)
        + (DEFINITE_BONUS if is_definite else 0.0)
        + SOURCE_BONUS * has_source
        + METADATA_BONUS * has_metadata
        + KIND_BONUS.get(kind, 0.0)
    )
    return round(min(max(score, 0.0), 10.0), 1)


def _complexity(text: str) -> float:
    """Measure length and specificity, from 0 to 1."""
    words = _WORD.findall(text)
    return (
        _grade(len(text.strip()), {100: 0.3, 50: 0.2, 20: 0.1})
        + _grade(len(words), {20: 0.2, 10: 0.1})
        # More terms than six count for no more.
        + _grade(len(list(islice(filter(_is_term, words), 6))), {5: 0.3, 2: 0.2, 0: 0.1})
        + (0.2 if _NUMBER.search(text) else 0.0)
    )


def _is_term(word: str) -> bool:
    looks_special = word[0].isupper() or "_" in word.strip("_")
    return looks_special and len(word) > 1 and word.lower() not in STOP_WORDS


def _grade(amount: int, grades: dict[int, float]) -> float:
    return next((points for limit, points in grades.items() if amount > limit), 0.0)
