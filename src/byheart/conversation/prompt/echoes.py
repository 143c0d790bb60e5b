"""Find echoes: sentences of a text that only repeat what the prompt contained before.

A reply that quotes a memory is no second memory. The reply is compared sentence by sentence. A
sentence is an echo if its words occur in the prompt in the same order, as a whole or in part, with
a word or two changed. It is no echo if it has a name, a number or a "not" of its own, because then
it says something else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from byheart.conversation.prompt.control_marks import unquote
from byheart.conversation.prompt.delimiting import PASSAGE, PINNED, PREAMBLE, TAGS
from byheart.language import distinct_words as particulars
from byheart.startup.late_patterns import late_pattern

# The share of a sentence's runs of _RUN_WORDS words that the prompt must contain. Two people who
# state one fact in their own words share a tenth of such runs. A quotation with one word in ten
# changed shares more than two thirds.
_RUN_WORDS, _ECHOED_SHARE = 3, 0.6
# A shorter sentence is an echo only as a whole text or next to another echo, because "Sounds good!"
# is a common phrase.
_LEAST_WORDS = 4
# A sentence counts as a source if it has this share of the best source's matching runs. At most
# _MOST_HOLDERS sentences are recorded per run: a run that occurs in more of them, as in the lines
# of a log, does not identify a source.
_SOURCE_SHARE, _MOST_HOLDERS = 0.3, 32
# Only this many characters of a text are examined.
_LONGEST = 200_000

_UNSPACED = "\u0e00-\u0eff\u1100-\u11ff\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = late_pattern(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
# Possessive repetitions that match only from their beginning keep this pattern linear.
_SENTENCE_END = late_pattern(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)\s*|[。！？]+[」』”）]*\s*|\n\s*"
)
# The citation of a passage: its id, and the brackets and labels around it.
_ID = r"(?:mem_[0-9a-z]{26}|(?:mem_)?0[0-9a-z]{9})(?:@\d+)?(?:#\d+(?:-\d+)?)?"
_CITATION = late_pattern(
    r"[\[(【]?\s{0,2}(?:(?:id|source)\s{0,2}[:=]\s{0,2})?"
    rf"\"?{_ID}\"?\s{{0,2}}[\])】]?",
    re.IGNORECASE,
)
# Other programs use tags of these names too. Byheart's tags follow its preamble, or have an id in
# Byheart's format.
_OPENS = late_pattern(rf"<({'|'.join(TAGS)})(?: [a-z]+=(?:\"[^\"\n]*\"|[^\s\"<>]+)){{0,12}}>(?=\n)")
_BEGINS = late_pattern(
    rf"{re.escape(PREAMBLE.rstrip())}\s*|(?=<(?:{PASSAGE}|{PINNED}) id=\"?{_ID}[\s\">])"
)


class Span(NamedTuple):
    """Mark a stretch of a text by its character offsets."""

    start: int
    end: int


class _Sentence(NamedTuple):
    span: Span
    text: str
    words: tuple[str, ...]


def find_quotations(text: str) -> list[tuple[Span, str]]:
    """Find Byheart's quotations in a text: their spans with delimiters, and original texts."""
    found: list[tuple[Span, str]] = []
    unclosed: set[str] = set()
    at = 0
    while (begins := _BEGINS.search(text, at, _LONGEST)) is not None:
        start, at = begins.start(), begins.end()
        if at > start:
            found.append((Span(start, at), ""))
        while (opens := _OPENS.match(text, at, _LONGEST)) is not None:
            closes = f"\n</{opens[1]}>"
            end = -1 if closes in unclosed else text.find(closes, opens.end(), _LONGEST)
            if end < 0:
                unclosed.add(closes)  # later opening tags have no closing tag either
                break
            inside, after = text[opens.end() + 1 : end], end + len(closes)
            at = after + text.startswith("\n", after)
            found.append((Span(opens.start(), at), unquote(inside)))
        at = max(at, start + 1)
    return found


class Emitted:
    """Index the sentences that were put into a prompt by their runs of words."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._whole: dict[tuple[str, ...], int] = {}
        self._sources: list[set[str]] = []
        self._particulars: list[set[str]] = []
        self._alone: set[tuple[str, ...]] = set()
        self._holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for text in texts:
            self.add(text)

    def add(self, text: str, source: str | None = None) -> None:
        """Add another text of the prompt, and the id of the memory that it is from, if any."""
        sentences = list(_sentences(text))
        if len(sentences) == 1:
            self._alone.add(sentences[0].words)
        for sentence in sentences:
            if sentence.words not in self._whole:
                self._add_sentence(sentence)
            if source is not None:
                self._sources[self._whole[sentence.words]].add(source)

    def _add_sentence(self, sentence: _Sentence) -> None:
        at = self._whole[sentence.words] = len(self._particulars)
        for run in set(_runs(sentence.words)):
            if len(self._holders[run]) < _MOST_HOLDERS:
                self._holders[run].append(at)
        self._particulars.append(particulars.words_of(sentence.text))
        self._sources.append(set())

    def find_echoes(self, text: str) -> list[Span]:
        """Find the sentences of a text that repeat the prompt, and Byheart's quotations in it."""
        quoted, said = self._read(text)
        known = [self._has(each) for each in said]
        repeated = [
            each.span
            for at, each in enumerate(said)
            if known[at] or (each.words in self._whole and any(known[max(0, at - 1) : at + 2]))
        ]
        return _join(sorted((*quoted, *repeated)))

    def find_sources(self, text: str) -> set[str]:
        """Name the memories that a text repeats a sentence of; short phrases do not count."""
        _, said = self._read(text)
        sources: set[str] = set()
        for each in said:
            if len(each.words) >= _LEAST_WORDS and self._has(each):
                sources |= self._sources[self._nearest(each)]
        return sources

    def _read(self, text: str) -> tuple[list[Span], list[_Sentence]]:
        """Find Byheart's quotations in a text, and the sentences outside of them."""
        quoted = [span for span, _ in find_quotations(text)]
        sentences = _sentences(text[:_LONGEST]) if self._whole else ()
        return quoted, list(_outside(quoted, sentences))

    def _nearest(self, echo: _Sentence) -> int:
        """Find the sentence that an echo shares most with."""
        if echo.words in self._whole:
            return self._whole[echo.words]
        counts = Counter(at for run in _runs(echo.words) for at in self._holders.get(run, ()))
        return min(counts, key=lambda at: (-counts[at], at))

    def _has(self, sentence: _Sentence) -> bool:
        if len(sentence.words) < _LEAST_WORDS:
            return sentence.words in self._alone
        if sentence.words in self._whole:
            return True
        runs = list(_runs(sentence.words))
        holders = [held for run in runs if (held := self._holders.get(run))]
        if len(holders) < _ECHOED_SHARE * len(runs):
            return False
        if len(holders) == len(runs):
            return True
        counts = Counter(at for held in holders for at in held)
        least = _SOURCE_SHARE * max(counts.values())
        sources = (self._particulars[at] for at, count in counts.items() if count >= least)
        return not particulars.adds(sentence.text, set[str]().union(*sources))


def _sentences(text: str) -> Iterator[_Sentence]:
    """Cut a text after each sentence and each line; skip pieces without words."""
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    for start, end in pairwise(ends):
        # A reply may repeat a control mark in its broken form.
        said = _CITATION.sub(" ", unquote(text[start:end]))
        words = tuple(word.casefold() for word in _WORD.findall(said))
        if words:
            yield _Sentence(Span(start, end), said, words)


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for at in range(len(words) - _RUN_WORDS + 1):
        yield tuple(words[at : at + _RUN_WORDS])


def _outside(quoted: Sequence[Span], sentences: Iterable[_Sentence]) -> Iterator[_Sentence]:
    """Skip sentences that overlap a quotation; quotations are in order and do not overlap."""
    ends = [span.end for span in quoted]
    for sentence in sentences:
        at = bisect_right(ends, sentence.span.start)
        if at == len(quoted) or quoted[at].start >= sentence.span.end:
            yield sentence


def _join(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
