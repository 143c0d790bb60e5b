"""Find the words in which similar texts differ: names, numbers and negations.

An embedding model gives "the port is 8080" and "the port is 8081" nearly the same vector.
"""

from __future__ import annotations

from collections.abc import Iterable

from byheart.startup.late_patterns import late_pattern

_WORD = late_pattern(r"\w+(?:[.,:'’-]\w+)*")
_SENTENCE_END = frozenset(".!?:;\n*#>|-\"'")
_NOT = frozenset(("no", "not", "never", "none", "nor", "neither", "without", "cannot"))


def differ(some: str, other: str, names: Iterable[str] = (), others: Iterable[str] = ()) -> bool:
    """Return whether one text has a name, a number or a "not" that the other lacks.

    A capital at the beginning of a sentence does not show a name. `names` and `others` are the
    known names in the two texts.
    """
    words, other_words = words_of(some), words_of(other)
    return (
        bool(words & _NOT) != bool(other_words & _NOT)
        or not _particulars(some, words, names) <= other_words
        or not _particulars(other, other_words, others) <= words
    )


def adds(some: str, other_words: set[str]) -> bool:
    """Return whether a text has a name or number that `other_words` lack, or only one negates."""
    words = words_of(some)
    denies = bool(words & _NOT) != bool(other_words & _NOT)
    return denies or not _particulars(some, words, ()) <= other_words


def words_of(text: str) -> set[str]:
    """List the words of a text in a uniform spelling."""
    # Fold all words at once: context compares up to twenty passages for every question.
    folded = "\n".join(_WORD.findall(text)).casefold().replace("’", "'")
    words = set(folded.split("\n")) if folded else set[str]()
    if "n't" not in folded:
        return words
    return {"not" if word.endswith("n't") else word for word in words}


def _fold(word: str) -> str:
    folded = word.casefold().replace("’", "'")
    return "not" if folded.endswith("n't") else folded


def _particulars(text: str, words: set[str], names: Iterable[str]) -> set[str]:
    """List the words of a text that contain digits, or whose capitals show a name."""
    found = {
        _fold(match[0])
        for match in _WORD.finditer(text)
        if any(char.isdigit() or char.isupper() for char in match[0][1:])
        or match[0][0].isdigit()
        or (match[0][0].isupper() and not _begins_sentence(text, match.start()))
    }
    return found | ({word for name in names for word in words_of(name)} & words)


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 8) : at].rstrip(" ")
    return not before or before[-1] in _SENTENCE_END
