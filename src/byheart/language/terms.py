"""Turn text into keyword terms, by one rule for the index, the query and the highlights.

SQLite's own tokenizer (porter over unicode61) does the work, so these terms are the terms of FTS5.
It takes about 30 ns per character. It cannot find two things, which `spread` adds: the parts of
identifiers (`getUserName`: get, user, name), and the parts of unspaced scripts such as CJK
(overlapping pairs of characters, and single characters).

Each emoji is a separate term. FTS5 reads only emoji newer than Unicode 6.1, and treats these as
letters, so spaces separate them from the words beside them. Raw queries do not find older emoji.
"""

from __future__ import annotations

import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw

from byheart.startup.late_patterns import late_pattern
from byheart.system.forks import never_free, working

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_RUN = late_pattern(f"[{UNSPACED}]+")
_EMOJI = late_pattern("[\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
# A word has parts that people search for if its kind of character changes within it: `getUser`,
# `HTTPServer`, `utf8`. Finding the change in a text of character kinds is 20 times faster than
# matching such words with a regular expression.
_KINDS = "".join(
    ("a" if char.islower() else "A") if char.isalpha() else "0" if char.isdigit() else " "
    for char in map(chr, range(128))
)
_CHANGES = ("aA", "AAa", "aa0", "AA0", "Aa0")
# A run between ASCII spaces and signs that has non-ASCII characters, from the first of these on. No
# word, no part of a word and no run of unspaced script extends beyond it. In a group, so that
# `split` keeps it. A pattern that began with the ASCII letters in front would take four times as
# long.
_BEYOND_ASCII = late_pattern(r"([^\x00-\x7f][0-9A-Za-z\x80-\U0010ffff]*+)")
_ASCII_WORD = string.digits + string.ascii_letters
_WORD = late_pattern(r"[^\W_]*")
_PART = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# The parts of a raw query that are not words to search for.
_COLUMNS = late_pattern(r"(?:\{[^{}]*+\}|(?<!\w)\w++)\s*+:")
_OPERATORS = late_pattern(r"\b(?:AND|OR|NOT|NEAR)\b")
_LONGEST_COMPOUND = 100
# No word, part of a word or run of unspaced script extends beyond it.
_BREAK = "\n"

_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being between both
but by can could did do does doing down during each few for from further had has have having he
her here hers him his how i if in into is it its itself just let me more most my no nor not now
of off on once only or other our ours out over own same she should so some such than that the
their theirs them then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your yours s t don ve ll re d
m
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_idle_tokenizers: list[apsw.FTS5Tokenizer] = []


def _make_tokenizer() -> apsw.FTS5Tokenizer:
    with working(Path(":memory:")):
        made = apsw.Connection(":memory:").fts5_tokenizer(
            "porter", ["unicode61", "remove_diacritics", "2"]
        )
    # There are never more than threads at a time. A forked child must not free those of its parent.
    never_free(made)
    return made


def _tokenize(encoded: bytes, *, include_offsets: bool) -> list[Any]:
    try:
        tokenizer = _idle_tokenizers.pop()
    except IndexError:  # checking first would race with other threads
        tokenizer = _make_tokenizer()
    try:
        return tokenizer(  # type: ignore[return-value]
            encoded,
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=include_offsets,
            include_colocated=False,
        )
    finally:
        _idle_tokenizers.append(tokenizer)


def tokens(text: str) -> list[str]:
    """List the tokens that FTS5 finds in a text, in order."""
    return _tokenize(text.encode(), include_offsets=False)


def _placed_tokens(encoded: bytes) -> list[tuple[int, int, str]]:
    return _tokenize(encoded, include_offsets=True)


def _compound_parts(text: str) -> Iterator[tuple[str, int, int]]:
    """Find the parts of words like `getUserName`, with their positions."""
    for start, end in _compounds(text):
        for part in _PART.finditer(text, start, end):
            yield part.group(), part.start(), part.end()


def _compounds(text: str) -> list[tuple[int, int]]:
    kinds = text.translate(_KINDS)
    found: set[tuple[int, int]] = set()
    for change in _CHANGES:
        at = kinds.find(change)
        while at >= 0:
            start, end = _word_around(text, at)
            if end - start <= _LONGEST_COMPOUND:
                found.add((start, end))
            at = kinds.find(change, end)
    return sorted(found)


def _word_around(text: str, at: int) -> tuple[int, int]:
    start, end = at, _WORD.match(text, at).end()  # type: ignore[union-attr]
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    return start, end


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def spread(text: str) -> str:
    """Rewrite text so that FTS5's tokenizer finds the parts of identifiers and unspaced scripts.

    Pairs of characters stay adjacent, so that a phrase of pairs still matches. All other added
    parts go to the end.
    """
    extra = [part for part, _, _ in _compound_parts(text)]
    if not text.isascii():
        extra.extend(char for run in _UNSPACED_RUN.findall(text) if len(run) > 1 for char in run)
        text = _UNSPACED_RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)
        text = _EMOJI.sub(r" \g<0> ", text)
    return f"{text}\n{' '.join(extra)}" if extra else text


def spread_syntax(part: str, *, quoted: bool) -> str:
    """Rewrite part of a raw query so that runs of unspaced script become phrases of their pairs."""
    mark = "" if quoted else '"'
    return _UNSPACED_RUN.sub(lambda run: f"{mark}{' '.join(_pairs(run.group()))}{mark}", part)


def terms(text: str) -> list[str]:
    """List the terms of a text for the index, each as often as it occurs."""
    return [*tokens(spread(_without_emoji(text))), *_emoji(text)]


def _emoji(text: str) -> list[str]:
    return [] if text.isascii() else _EMOJI.findall(text)


def _without_emoji(text: str) -> str:
    return text if text.isascii() else _EMOJI.sub(" ", text)


def query_terms(text: str) -> list[str]:
    """List the terms of a question, with repetitions, without stop words if other words remain.

    A word that occurs twice counts twice: on long questions this gains .08 nDCG (CISI).
    """
    return list(_query_terms(text))


@lru_cache(16)  # each part of a search needs the terms
def _query_terms(text: str) -> tuple[str, ...]:
    words = _without_emoji(text)
    asked = _UNSPACED_RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", words)
    parts = [part for part, _, _ in _compound_parts(words)]
    found = list(_word_terms(" ".join([asked, *parts])))
    telling = [term for term, word in found if word.casefold() not in STOP_WORDS]
    telling += _emoji(text)
    return tuple(telling or (term for term, _ in found))


def is_one_word(text: str) -> bool:
    """Return whether a question is a single word, name or number: `ERR_5521`, `getUser`."""
    return len(text.split()) == 1 and not _UNSPACED_RUN.search(text)


def raw_query_terms(query: str) -> list[str]:
    """List the terms that a raw query searches for, without its columns and operators."""
    return query_terms(_OPERATORS.sub(" ", _COLUMNS.sub(" ", query)))


def _word_terms(text: str) -> Iterator[tuple[str, str]]:
    """List terms with their original words, as the tokenizer cuts them."""
    encoded = text.encode()
    for start, end, term in _placed_tokens(encoded):
        yield term, encoded[start:end].decode()


def term_spans(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Find any of the wanted terms in a text; return sorted, non-overlapping character spans."""
    sought = frozenset(wanted)
    found: set[tuple[int, int]] = set()
    if not text.isascii():
        pieces = _split_beyond_ascii(text)
        found.update(_spans_beyond_ascii(pieces, sought))
        pieces[1::2] = [" " * len(word) for word in pieces[1::2]]
        text = "".join(pieces)
    found.update(_ascii_spans(text, sought))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _split_beyond_ascii(text: str) -> list[str]:
    """Split a text at its runs with non-ASCII characters, which are every second piece."""
    pieces = _BEYOND_ASCII.split(text)
    for at in range(1, len(pieces), 2):
        before = pieces[at - 1]
        if before[-1:].isalnum():
            pieces[at - 1] = before.rstrip(_ASCII_WORD)
            pieces[at] = before[len(pieces[at - 1]) :] + pieces[at]
    return pieces


def spans_in_texts(texts: Sequence[str], wanted: Iterable[str]) -> list[list[tuple[int, int]]]:
    """Find the wanted terms in each text, as `term_spans` does, in one pass through all texts."""
    spans = iter(term_spans(_BREAK.join(texts), wanted))
    found: list[list[tuple[int, int]]] = []
    begin, span = 0, next(spans, None)
    for text in texts:
        end, own = begin + len(text), []
        while span is not None and span[1] <= end:
            own.append((span[0] - begin, span[1] - begin))
            span = next(spans, None)
        found.append(own)
        begin = end + len(_BREAK)
    return found


def _ascii_spans(text: str, sought: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Find terms in ASCII text; check only words that, or whose parts, begin like a term."""
    lowered = text.lower()
    for beginning in _beginnings(sought):
        at = lowered.find(beginning)
        while at >= 0:
            end = at + 1
            # No word and no part of a word begins at a lower-case letter after another letter.
            if not (text[at].islower() and text[at - 1 : at].isalpha()):
                start, end = _word_around(text, at)
                for low, high in _spans_within(text[start:end], sought):
                    yield start + low, start + high
            at = lowered.find(beginning, end)


@lru_cache(16)
def _beginnings(sought: frozenset[str]) -> tuple[str, ...]:
    return tuple(map(_beginning, sought))


def _beginning(term: str) -> str:
    """Return the beginning that all words of a term share.

    Porter cuts endings off, and changes the last letter in three cases: happy, happi; hoping,
    hope; usability, usabl. (Verified with 1.8 million words, real ones and combinations with
    Porter's endings.)
    """
    return (term[:-1] if term[-1] in "eil" else term) or term


@lru_cache(4096)  # the same words recur in many hits
def _spans_within(word: str, sought: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Find the parts of a word, or the whole word, that match any of the terms."""
    placed = _placed_terms(word)
    return tuple((low, high) for low, high, terms in placed if not sought.isdisjoint(terms))


@lru_cache(4096)
def _placed_terms(word: str) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """List the terms of a word and of its parts, with their positions in the word."""
    parts = [(word, 0, len(word)), *_compound_parts(word)]
    return tuple((low, high, tuple(tokens(part))) for part, low, high in parts)


def _spans_beyond_ascii(pieces: Sequence[str], sought: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Find terms in the non-ASCII words of a text: every second one of its pieces.

    The tokenizer reads all these words at once, because a call for each word takes far longer.
    """
    words = " ".join(pieces[1::2])
    # The positions behind each piece, in the text and among the words.
    in_text = list(accumulate(map(len, pieces)))
    in_words = list(accumulate(len(word) + 1 for word in pieces[1::2]))
    for low, high in (*_word_spans(words, sought), *_part_spans(words, sought)):
        at = bisect_right(in_words, low)
        moved = in_text[2 * at + 1] - in_words[at] + 1
        yield low + moved, high + moved


def _word_spans(text: str, sought: frozenset[str]) -> Iterator[tuple[int, int]]:
    # As in `terms`, a run of unspaced script or an emoji ends the preceding word.
    words = _UNSPACED_RUN.sub(lambda run: " " * len(run.group()), _without_emoji(text))
    encoded = words.encode()
    # The tokenizer gives byte offsets; count the characters from one match to the next.
    at_byte = at_char = 0
    for start, end, term in _placed_tokens(encoded):
        if term in sought:
            at_char += len(encoded[at_byte:start].decode())
            length = len(encoded[start:end].decode())
            yield at_char, at_char + length
            at_byte, at_char = end, at_char + length


def _part_spans(text: str, sought: frozenset[str]) -> Iterator[tuple[int, int]]:
    for part, start, end in _compound_parts(text):
        if not sought.isdisjoint(_placed_terms(part)[0][2]):
            yield start, end
    for emoji in _EMOJI.finditer(text):
        if emoji.group() in sought:
            yield emoji.span()
    for run in _UNSPACED_RUN.finditer(text):
        for at, pair in enumerate(_pairs(run.group())):
            if pair in sought:
                yield run.start() + at, run.start() + at + len(pair)
        for at, char in enumerate(run.group()):
            if char in sought:
                yield run.start() + at, run.start() + at + 1
