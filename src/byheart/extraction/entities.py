"""Find the names in a text by their spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from byheart.extraction.vocabulary import (
    FOREIGN_ARTICLES,
    HYPHENATED_FUNCTION_WORDS,
    HYPHENATION_CLOSINGS,
    HYPHENATION_OPENINGS,
    HYPHENATION_PREFIXES,
    NAME_CONNECTORS,
    ORDINARY_ENDINGS,
    ORDINARY_WORDS,
    PREFIXED_ENDINGS,
    PREFIXED_WORDS,
    PRODUCTS,
    STOP_WORDS,
    UNSPACED,
)
from byheart.startup.late_patterns import late_pattern

MAX_ENTITIES = 64
# The first 64 names of a long text are near its beginning.
SCANNED_CHARS = 50_000
_PIECE_CHARS = 5_000
MAX_NAME_CHARS = 64
MAX_NAME_WORDS = 6

# Every repetition is bounded or cannot backtrack, so that no text makes a pattern run away.
_NOISE = late_pattern(r"\b[a-zA-Z]{2,10}://\S+|\bwww\.\S+|</?[A-Za-z][^<>\n]{0,300}>")
_NOISE_MARKS = ("://", "www.", "<")
_FENCE = late_pattern(r" {0,3}(`{3,}|~{3,})")
_QUOTED = late_pattern(
    r"(?<!\w)(?:"
    + "|".join(
        rf"{opening}(?=\S)([^{opening}{closing}\n]{{2,60}})(?<=\S){closing}(?!\w)"
        for opening, closing in ('""', "''", "``", "“”", "„“", "‘’", "«»")
    )
    + r")|"
    + "|".join(f"{pair[0]}([^{pair}\n]{{2,60}}){pair[1]}" for pair in ("「」", "『』", "《》"))
)
_QUOTE = late_pattern("[\"'`“„‘«「『《]")
_SENTENCE_MARK = late_pattern(r"[.!?;](?:\s|$)|[\"`,:。！？，、：；(){}<>=|]")
_WORD = rf"[^\W{UNSPACED}]+"
# Most words of a text are plain: in lower case, no part of a name, and before another such word. A
# run of them is passed over at once. A word before a "v" may be the name of a product, as in
# "numpy v2".
_PLAIN_RUN = rf"(?:(?!(?:{'|'.join(sorted(NAME_CONNECTORS))}) )[a-z]+ (?=[a-uw-z]))+"
_TOKEN = late_pattern(
    rf"(?P<plain>{_PLAIN_RUN})"
    rf"|(?<!\w)[@#](?P<mention>\w+(?:-\w+)*)"
    rf"|(?P<word>{_WORD}(?:[-'’]{_WORD}|\.\d+|\.[a-z]{{2,4}}\b|\+\+|#(?!\w))*)"
)
_VERSION = late_pattern(r"[vV]?\d{1,4}(?:\.\d{1,5}){1,3}\w{0,4}|[vV]\d{1,4}|\d{1,2}")
# A number after a lower-case word is mostly only a number, so such a version must be clear.
_CLEAR_VERSION = late_pattern(
    r"[vV]\d{1,4}(?:\.\d{1,5}){0,3}\w{0,4}|[1-9]\d{0,3}(?:\.\d{1,5}){1,3}\w{0,4}|0(?:\.\d{1,5}){2,3}"
)
# A version that starts with a v, or that has three numbers and is no date, is beyond doubt.
_BEFORE_VERSION = late_pattern(
    rf" (?={_CLEAR_VERSION.pattern})(?=(v\d|\d{{1,4}}\.\d{{1,5}}\.\d{{1,3}}(?!\d))?)"
)
_MORE_OF_A_QUANTITY = late_pattern(r"[%°]|[:,/]\d")
_POSSESSIVE = late_pattern(r"['’]s$")
_CONTRACTION = late_pattern(r"['’](?:t|m|d|re|ll|ve)$")
_INNER_CAPITAL = late_pattern(r"[^\W\d_A-Z][A-Z]")
_ARTICLE = late_pattern(r"(?:the|a|an)\s+", re.IGNORECASE)
_SENTENCE_START = late_pattern(r"[.!?:;|…。\n\"“(]")

_TokenKind = Literal["name", "identifier", "product", "connector", "version", "plain"]


class _Token(NamedTuple):
    kind: _TokenKind
    text: str
    start: int
    opens_sentence: bool
    continues: bool


class _Found(NamedTuple):
    start: int
    name: str


def extract_entities(content: str) -> tuple[str, ...]:
    """Return the names that a text mentions, in order of first appearance, at most 64."""
    names: dict[str, str] = {}
    for text in _pieces(_without_noise(content[:SCANNED_CHARS])):
        _collect(_find_all(text), names)
        # Source code reaches this limit on its first page.
        if len(names) == MAX_ENTITIES:
            break
    return tuple(names.values())


def _pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces at line ends, since no name spans two lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PIECE_CHARS) + 1 or len(text)
        yield text[start:end]
        start = end


def _find_all(text: str) -> list[_Found]:
    quoted: list[_Found] = []

    def take_quoted(match: re.Match[str]) -> str:
        name = match[match.lastindex or 0]
        if not _is_quoted_name(name):
            return match[0]
        quoted.append(_Found(match.start(), name))
        return "|" * len(match[0])

    if _QUOTE.search(text):
        text = _QUOTED.sub(take_quoted, text)
    return sorted([*quoted, *_find_names(_tokens(text))])


def _without_noise(text: str) -> str:
    """Remove fenced code, URLs and HTML tags from a text."""
    kept, fence = [], ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        fence = mark[1] if mark else ""
        if not mark:
            kept.append(line)
    text = "\n".join(kept)
    # Most texts have no URL and no tag. Searching for their marks is faster.
    return _NOISE.sub("|", text) if any(mark in text for mark in _NOISE_MARKS) else text


def _is_quoted_name(text: str) -> bool:
    """Return whether a quoted text is a name rather than a sentence or a piece of code."""
    words = text.split()
    long_enough = len(text) > 2 or (len(text) == 2 and not text.isascii())
    return (
        long_enough
        and len(words) <= MAX_NAME_WORDS
        and any(character.isalpha() for character in text)
        and not _SENTENCE_MARK.search(text)
        and text.lower() not in STOP_WORDS
    )


def _tokens(text: str) -> Iterator[_Token]:
    """Return every word that is a name or may be part of one."""
    end = 0
    broken = False
    versioned = {space.start(): bool(space[1]) for space in _BEFORE_VERSION.finditer(text)}
    for match in _TOKEN.finditer(text):
        plain, mention, word = match.groups()
        if plain:
            end, broken = match.end() - 1, True
            continue
        beyond_doubt = versioned.get(match.end())
        if beyond_doubt is not None and word and _may_be_product(word, beyond_doubt=beyond_doubt):
            end, broken = match.end(), False
            yield _Token("product", word, match.start(), opens_sentence=False, continues=False)
            continue
        if word and word.isalpha() and word.islower() and word not in NAME_CONNECTORS:
            # Most words end here. Any further work on them would double the time for a text.
            end, broken = match.end(), True
            continue
        kind, name = _read_mention(mention) if mention else _read_word(word.strip("_"))
        gap, end = text[end : match.start()], match.end()
        if kind == "version" and _MORE_OF_A_QUANTITY.match(text, end):
            kind = "plain"
        opens_sentence = match.start() == len(gap) or bool(_SENTENCE_START.search(gap))
        yield _Token(kind, name, match.start(), opens_sentence, gap == " " and not broken)
        # "Alice's Book" contains two names.
        broken = match[0].endswith(("'s", "’s"))


def _read_mention(text: str) -> tuple[_TokenKind, str]:
    is_name = 2 < len(text) <= MAX_NAME_CHARS and text[0].isalpha()
    return "identifier" if is_name else "plain", text


def _read_word(word: str) -> tuple[_TokenKind, str]:
    """Classify a word by its spelling; return it without its possessive or plural ending."""
    if word.isalpha():
        # Most words are letters only, and need none of the patterns below.
        return _read_letters(word) if 1 < len(word) <= MAX_NAME_CHARS else ("plain", word)
    word = _POSSESSIVE.sub("", word)
    if not 1 < len(word) <= MAX_NAME_CHARS or _CONTRACTION.search(word):
        return "plain", word
    if _VERSION.fullmatch(word):
        return "version", word
    if word[0].isdigit():
        return "plain", word
    if "_" in word:
        return "identifier", word
    if word.islower():
        return _read_lower(word), word
    if "-" in word and _is_hyphenated_english(word):
        return "plain", word
    return _read_letters(word)


def _read_letters(word: str) -> tuple[_TokenKind, str]:
    if word.islower():
        return _read_lower(word), word
    if word[-1] == "s" and len(word) > 2 and word[:-1].isupper() and word[-2].isalpha():
        word = word[:-1]
    if word[0].isupper():
        return "name", word
    # getUserName is a complete name; the next word does not belong to it.
    return "identifier" if _INNER_CAPITAL.search(word) else "plain", word


def _read_lower(word: str) -> _TokenKind:
    if word in NAME_CONNECTORS:
        return "connector"
    return "identifier" if "-" in word and not _is_hyphenated_english(word) else "plain"


def _may_be_product(word: str, *, beyond_doubt: bool) -> bool:
    """Return whether a word before a version is a name: "numpy 2.0", but not "mean 2.0"."""
    if not beyond_doubt:
        return word in PRODUCTS
    plain = len(word) > 1 and word.isascii() and word.isalnum() and word.islower()
    return plain and word[0].isalpha() and word not in ORDINARY_WORDS


def _is_hyphenated_english(word: str) -> bool:
    first, *others = word.split("-")
    if not all(part.isalpha() and part.islower() for part in others):
        return "'" in word
    first, last = first.lower(), others[-1]
    if last in HYPHENATION_CLOSINGS or HYPHENATED_FUNCTION_WORDS & {first, *others}:
        return True
    if len(others) == 1 and first in HYPHENATION_PREFIXES:
        return last in PREFIXED_WORDS or last in ORDINARY_WORDS or last.endswith(PREFIXED_ENDINGS)
    if len(others) == 1 and first in HYPHENATION_OPENINGS:
        return True
    return HYPHENATION_OPENINGS.issuperset((first, *others))


def _find_names(tokens: Iterable[_Token]) -> Iterator[_Found]:
    """Join neighbouring words into names: "Bank of England", "Python 3.11"."""
    phrase: list[_Token] = []
    for token in tokens:
        if phrase and _belongs(token, phrase):
            phrase.append(token)
            continue
        yield from _name_of(phrase)
        phrase = [token] if token.kind in ("name", "identifier", "product") else []
    yield from _name_of(phrase)


def _belongs(token: _Token, phrase: list[_Token]) -> bool:
    if not token.continues or len(phrase) >= MAX_NAME_WORDS or phrase[-1].kind == "version":
        return False
    if phrase[0].kind != "name":
        return token.kind == "version" and _CLEAR_VERSION.fullmatch(token.text) is not None
    return token.kind in ("name", "connector") or (
        token.kind == "version" and phrase[-1].kind == "name"
    )


def _name_of(phrase: list[_Token]) -> Iterator[_Found]:
    """Remove the words that are no part of a name from a phrase, and return the rest."""
    if phrase and phrase[0].kind == "product" and len(phrase) == 1:
        return
    if phrase and phrase[0].kind != "name":
        yield _Found(phrase[0].start, " ".join(token.text for token in phrase))
        return
    while phrase and phrase[-1].kind == "connector":
        phrase = phrase[:-1]
    while phrase and (phrase[0].kind != "name" or _only_opens(phrase[0])):
        phrase = phrase[1:]
    if not phrase or (len(phrase) == 1 and _is_ordinary_opening(phrase[0])):
        return
    name = " ".join(token.text for token in phrase)
    if len(name) <= MAX_NAME_CHARS:
        yield _Found(phrase[0].start, name)


def _only_opens(token: _Token) -> bool:
    word = token.text.lower()
    return word in STOP_WORDS or (token.opens_sentence and word in ORDINARY_WORDS)


def _is_ordinary_opening(token: _Token) -> bool:
    word = token.text.lower()
    return token.opens_sentence and (word in FOREIGN_ARTICLES or word.endswith(ORDINARY_ENDINGS))


def _collect(found: Iterable[_Found], names: dict[str, str]) -> None:
    """Keep each name once, regardless of its case, in its longest form."""
    for _, name in found:
        key = _ARTICLE.sub("", name, count=1).casefold()
        if key in names:
            names[key] = max(names[key], name, key=len)
        elif len(names) < MAX_ENTITIES:
            names[key] = name
