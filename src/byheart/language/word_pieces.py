"""Cut words into overlapping pieces of four characters, to find their other forms.

A stem has to be known for each language; pieces do not: forms of one word share most of them, and
so do the parts of a compound. Pieces are made where FTS5's English stems do not help: for words
with letters beyond ASCII, and for all words of a text in another language than English. Scripts
without spaces have pairs of characters instead (`terms.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from byheart.language.detection import UNDETERMINED, detect_language
from byheart.language.terms import STOP_WORDS, UNSPACED, query_terms, tokens
from byheart.startup.late_patterns import late_pattern

# This character is in front of each piece. No token of FTS5 has it, so pieces and words never mix.
MARK = "~"
_LENGTH = 4
# Marks that belong to letters, and the blocks of Indian scripts without their full stops.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u200c\u200d"
)
_WORD = late_pattern(rf"(?:[^\W_{UNSPACED}]|[{_MARKS}])++")
_WORD_BEYOND_ASCII = late_pattern(
    rf"[0-9A-Za-z]*+(?:[^\W_\x00-\x7f{UNSPACED}]|[{_MARKS}])(?:[^\W_{UNSPACED}]|[{_MARKS}])*+"
)
# Hardly any other language has these letters (Yoruba and Igbo have some of them). The marks of
# Vietnamese tell words apart: `đội` and `đối` are two words.
_VIETNAMESE = late_pattern("[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
_ENGLISH = "en"
# Words that no other language writes so: most English texts need no detection.
_SURELY_ENGLISH = late_pattern(r"\b(?:the|and|with|from)\b")


def pieces_of_text(text: str) -> list[str]:
    """List the pieces of a text.

    They depend on the text alone: whoever reads it again, with whatever language the memory was
    given meanwhile, gets the same ones.
    """
    is_ascii = text.isascii()
    if (is_ascii and _SURELY_ENGLISH.search(text)) or _is_english(detect_language(text)):
        return [] if is_ascii else _pieces(text, _WORD_BEYOND_ASCII)
    return _pieces(text, _WORD)


@lru_cache(16)  # each part of a search needs them
def pieces_of_question(text: str) -> tuple[str, ...]:
    """List the pieces of a question; a short one may have no language that can be detected."""
    # The language last: detecting it takes longest.
    if _may_be_foreign(text) and detect_language(text) == UNDETERMINED:
        return tuple(_pieces(text, _WORD))
    return tuple(pieces_of_text(text))


def terms_of_question(text: str) -> tuple[str, ...]:
    """List the terms and the pieces that a question is searched by.

    FTS5 takes the marks off letters. So in a Vietnamese question, words with marks are searched by
    their pieces alone, which keep the marks.
    """
    found = query_terms(text)
    if _VIETNAMESE.search(unicodedata.normalize("NFC", text)):
        for word in _words(text, _WORD_BEYOND_ASCII):
            for term in tokens(word):
                if term in found:
                    found.remove(term)
    return (*found, *pieces_of_question(text))


@lru_cache(16)
def words_of_pieces(text: str) -> Mapping[str, str]:
    """Give for each piece of a question the term of the word that it was cut from.

    A word of several terms has none that says how many texts have the word: FTS5 cuts Hindi words
    at every vowel sign, into letters that are more frequent than any piece.
    """
    asked = frozenset(pieces_of_question(text))
    found: dict[str, str] = {}
    for word in _words(text, _WORD) if asked else ():
        terms = tokens(word)
        if len(terms) == 1:
            found |= dict.fromkeys(asked.intersection(_cut(word)), terms[0])
    return found


def _is_english(language: str) -> bool:
    return language in (UNDETERMINED, _ENGLISH)


def _may_be_foreign(text: str) -> bool:
    """Return whether a question has letters beyond ASCII, or no frequent word of English."""
    return bool(_WORD_BEYOND_ASCII.search(text)) or STOP_WORDS.isdisjoint(text.lower().split())


def _pieces(text: str, words: re.Pattern[str]) -> list[str]:
    return [piece for word in _words(text, words) for piece in _cut(word)]


def _words(text: str, words: re.Pattern[str]) -> list[str]:
    return words.findall(unicodedata.normalize("NFC", text).casefold())


def _cut(word: str) -> list[str]:
    last = max(len(word) - _LENGTH, 0)
    return [MARK + word[at : at + _LENGTH] for at in range(last + 1)]


def count_words(terms: list[str]) -> int:
    """Count terms without pieces: they would make texts of some languages seem longer."""
    return sum(not term.startswith(MARK) for term in terms)
