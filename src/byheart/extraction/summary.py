"""Summarize the beginning of a text in one line."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from byheart.extraction.vocabulary import UNSPACED
from byheart.startup.late_patterns import late_pattern

MAX_WORDS = 20
MAX_CHARS = 240
MAX_UNSPACED_CHARS = 60
SCANNED_CHARS = 20_000
# "Hello!" alone says nothing: a sentence with fewer words is joined to the next one.
LEAST_WORDS = 3

_FENCE = late_pattern(r" {0,3}(`{3,}|~{3,})")
_HEADING = late_pattern(r" {0,3}#{1,6}(?:[ \t]+|$)")
_RULE_OR_UNDERLINE = late_pattern(r"[ \t]*(?:=+|-{2,}|(?:[-*_][ \t]*){3,})[ \t]*$")
_TABLE_ROW = late_pattern(r"[ \t]*\||[-: \t]+\|[-:| \t]*$")
_INDENTED = late_pattern(r" {4}|\t")
_REFERENCE = late_pattern(r" {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S")
_MARKS = late_pattern(r"[ \t]*(?:>[ \t]?)*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")
_ITEM = late_pattern(r"[ \t]*(?:>[ \t]?)*(?:[-*+•]|\d{1,9}[.)])[ \t]+")

# Every repetition is bounded, so that no text can make a pattern run away.
# Each match contains the first text. Searching for it first is faster than trying the pattern.
_INLINE = (
    ("<", late_pattern(r"<!--.{0,500}?-->"), " "),
    ("<", late_pattern(r"<(https?://[^<>\s]{1,500})>"), r"\1"),
    ("<", late_pattern(r"</?[A-Za-z][^<>]{0,300}>"), " "),
    ("![", late_pattern(r"!\[[^\[\]]{0,300}\]\([^()]{0,500}\)"), " "),
    ("[", late_pattern(r"\[([^\[\]]{0,300})\]\([^()]{0,500}\)"), r"\1"),
    ("[[", late_pattern(r"\[\[(?:[^\[\]|]{1,200}\|)?([^\[\]|]{1,200})\]\]"), r"\1"),
    ("[", late_pattern(r"\[([^\[\]]{1,300})\]\[[^\[\]]{0,200}\]"), r"\1"),
    ("`", late_pattern(r"`{1,3}([^`]{1,300})`{1,3}"), r"\1"),
    ("*", late_pattern(r"(?<![\w*])(\*{1,3})(?=\S)([^*]{1,300})(?<=\S)\1(?![\w*])"), r"\2"),
    (
        "_",
        late_pattern(r"(?<!\w)(?!__[a-z0-9]+__)(_{1,3})(?=\S)([^_]{1,300})(?<=\S)\1(?!\w)"),
        r"\2",
    ),
    ("~~", late_pattern(r"~~(?=\S)([^~]{1,300})(?<=\S)~~"), r"\1"),
    ("\\", late_pattern(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)
_SENTENCE_END = late_pattern(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”）]*")
_ABBREVIATION = late_pattern(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|ca|approx|fig|mr|mrs|ms|dr|prof|st|jr|sr|inc|ltd|z\.b)"
    r"|\b[A-Z]|^\d{1,3})\.$",
    re.IGNORECASE,
)
_FILLERS = late_pattern(
    r"\b(?:very|really|quite|rather|somewhat|actually|basically|essentially|literally"
    r"|I (?:think|believe)(?: that)?|in my opinion|it (?:seems|appears)(?: that)?)\b,?\s*",
    re.IGNORECASE,
)
_UNSPACED = late_pattern(f"[{UNSPACED}]")

_BlockKind = Literal["prose", "heading", "other"]


class _Block(NamedTuple):
    kind: _BlockKind
    text: str


def summarize(content: str) -> str:
    """Return the first real sentence in at most 20 words, or "" if the content is blank."""
    head = content[:SCANNED_CHARS].lstrip("\ufeff")
    if not head.strip():  # the text begins with more blank lines than are scanned
        head = content.strip()[:SCANNED_CHARS]
    blocks = list(_blocks(head))
    for kind in ("prose", "heading", "other"):
        for block in blocks:
            if block.kind == kind and re.search(r"\w", text := _plain(block.text)):
                return _shorten(_first_sentence(text))
    # The text has only marks, front matter or symbols, so show these.
    return _shorten(" ".join(head.split()))


def _blocks(text: str) -> Iterator[_Block]:
    """Split a text into paragraphs, list items, headings and other blocks."""
    lines = _after_front_matter(text.splitlines())
    prose: list[str] = []
    fence = ""
    for line in [*lines, ""]:
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            kind: _BlockKind = "other"
        else:
            fence = mark[1] if mark else ""
            kind = "other" if mark else _kind_of(line, after_prose=bool(prose))
        underline = _RULE_OR_UNDERLINE.match(line)
        if prose and (kind != "prose" or _ITEM.match(line) or not line.strip()):
            # "Title" above "=====" or "-----" is a heading, not a sentence.
            yield _Block("heading" if underline and not fence else "prose", " ".join(prose))
            prose = []
        if kind == "prose" and line.strip():
            prose.append(_MARKS.sub("", line, count=1))
        elif not mark and not underline and line.strip():
            yield _Block(kind, _heading_text(line) if kind == "heading" else line)


def _kind_of(line: str, *, after_prose: bool) -> _BlockKind:
    if _HEADING.match(line):
        return "heading"
    code = _INDENTED.match(line) and not after_prose and not _ITEM.match(line)
    if code or any(each.match(line) for each in (_RULE_OR_UNDERLINE, _TABLE_ROW, _REFERENCE)):
        return "other"
    return "prose"


def _heading_text(line: str) -> str:
    title = _HEADING.sub("", line, count=1).rstrip()
    without_closing = title.rstrip("#")
    return without_closing if without_closing.endswith((" ", "\t")) else title


def _after_front_matter(lines: list[str]) -> list[str]:
    if lines and lines[0].strip() in ("---", "+++"):
        for number, line in enumerate(islice(lines, 1, None), start=1):
            if line.rstrip() in (lines[0].strip(), "..."):
                return lines[number + 1 :]
    return lines


def _plain(text: str) -> str:
    """Remove Markdown and HTML from running text."""
    for mark, pattern, replacement in _INLINE:
        if mark in text:
            text = pattern.sub(replacement, text)
    return " ".join(html.unescape(text).split())


def _first_sentence(text: str) -> str:
    for end in _SENTENCE_END.finditer(text):
        sentence = text[: end.end()]
        if _ABBREVIATION.search(sentence[-12:]):
            continue
        if len(sentence.split()) >= LEAST_WORDS or _UNSPACED.search(sentence):
            return sentence
    return text


def _shorten(sentence: str) -> str:
    if len(sentence.split()) > MAX_WORDS:
        sentence = " ".join(_FILLERS.sub("", sentence).split())
    words = sentence.split()
    short = " ".join(words[:MAX_WORDS])
    unspaced = len(_UNSPACED.findall(short)) * 2 > len(short)
    short = short[: MAX_UNSPACED_CHARS if unspaced else MAX_CHARS]
    return short if len(short) == len(sentence) else short.rstrip(" ,;:.–—-") + "…"
