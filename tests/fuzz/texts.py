"""Hostile texts of every format: whatever they are made of, splitting them is cheap and exact."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

from byheart.chunking import guess_format, split
from byheart.embedding.hash_embedder import HashEmbedder
from byheart.errors import TooManyChunks
from byheart.model import Chunk
from tests.fuzz.report import Report

_LANGUAGES = (
    *("bash", "c", "cpp", "csharp", "go", "java", "javascript", "kotlin", "lua", "php", "python"),
    *("ruby", "rust", "scala", "swift", "tsx", "typescript", "nonesuch"),
)
FORMATS = ("markdown", "text", "rst", *(f"code:{language}" for language in _LANGUAGES))

_MARKDOWN = (
    *(
        "# a\n",
        "## b\n",
        "a\n=\n",
        "a\n---\n",
        "- a\n",
        "- ",
        "1. ",
        "> ",
        ">a\n\n",
        "```\n",
        "~~~\n",
    ),
    *("```\n```\n", "|a|b|\n", "|-|-|\n", "***\n\n", "[a]: b\n", "[", "![", "](", "*a ", "__", "`"),
    *("<a>\n", "<!--", "-->", "<script>\n", "    a\n", "\t", "&amp;", "\\", "+++\n", "---\n"),
)
_CODE = (
    *(
        "a<",
        "<a",
        "<!--",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "'",
        '"',
        "`",
        '"""',
        "/*",
        "*/",
        "//",
        "#",
    ),
    *("def a(): pass\n", "class A:\n", "  b\n", "if a:\n", "x = 1;\n", "fn a() {\n", "a?b:", "->"),
    *("=>", "<<EOF\n", "EOF\n", "$(", "${", "<?php\n", "?>", "#if a\n", "#endif\n", "a.b.", "@a\n"),
    *(
        "template<class T> ",
        "a=",
        "a+",
        "a,",
        "a::",
        "not ",
        "lambda: ",
        "i++ ",
        "\\\n",
        "%{",
        "|a| ",
    ),
)
_PROSE = (
    *("a", "word ", "A word. ", ". ", "...", "\n", "\n\n", "\r", "\r\n", " ", "\t", "\f", "\u2028"),
    *(
        "\u0301",
        "\u200d",
        "\U0001f600",
        "\U0001f1e9",
        "北京大学",
        "。",
        "สวัสดี",
        "7",
        "_",
        "-",
        "=\n",
    ),
    *("a\n==\n\n", "==\na\n==\n", ".. a::\n\n", "x" * 300, "\x00", "\ufeff", "é", "ﬁ", "\udc80"),
)
UNITS = (*_MARKDOWN, *_CODE, *_PROSE)

MOST_CHUNKS = 20_000
# No chunk but the last of a section needs to be smaller than this on average, unless the whole
# text is small.
_LEAST_MEAN_TOKENS, _FEW_CHUNKS = 12, 300
_CHARS = 20_000
# Four times the text may take four times as long; noise, garbage and doubling sizes, as much again.
_TIMES, _ALLOWED, _LEAST_SECONDS = 4, 16, 0.25


def run(seconds: float, seed: int) -> Report:
    """Split generated texts until the time is over, and report the seed of each that fails."""
    report = Report()
    until = time.monotonic() + seconds
    for number in range(seed, seed + 1_000_000_000):
        if time.monotonic() >= until:
            break
        report.tried += 1
        report.failures.extend(f"seed {number}: {problem}" for problem in examine(number))
    return report


def examine(seed: int) -> Iterator[str]:
    """Make one text by its number, and say what is wrong with its chunks."""
    chance = random.Random(seed)
    format_ = chance.choice(FORMATS)
    little = make_text(chance, _CHARS)
    guess_format(little)
    seconds, chunks = _split(little, format_)
    yield from _problems(little, chunks)
    if chance.random() < 0.2:
        # What is slow once may have been a pause of the machine.
        much = little * _TIMES
        taken = min(_split(much, format_)[0] for _ in range(2))
        if taken > max(_LEAST_SECONDS, _ALLOWED * seconds):
            yield f"{format_}: {len(much):,} characters took {taken:.2f} s, a quarter {seconds:.2f}"


def make_text(chance: random.Random, chars: int) -> str:
    """Repeat a few scraps in one of several ways, up to a length."""
    units = chance.sample(UNITS, chance.choice((1, 1, 2, 3, 6)))
    way = chance.choice(("repeat", "runs", "mix", "nest", "lines"))
    if way == "repeat":
        unit = "".join(units)
        return unit * (chars // len(unit))
    if way == "runs":
        share = chars // len(units)
        return "".join(unit * (share // len(unit)) for unit in units)
    if way == "nest":
        depth = chance.choice((20, 200, 5_000))
        opened = "".join(units) * depth + "a" + "".join(reversed(units)) * depth + "\n"
        return (opened * (chars // len(opened) + 1))[:chars]
    end = "\n" if way == "lines" else ""
    parts: list[str] = []
    size = 0
    while size < chars:
        parts.append(chance.choice(units) + end)
        size += len(parts[-1])
    return "".join(parts)


def _split(text: str, format_: str) -> tuple[float, Sequence[Chunk] | None]:
    started = time.thread_time()
    try:
        chunks = split(text, format=format_, tokens=HashEmbedder(), max_chunks=MOST_CHUNKS)
    except TooManyChunks:
        return time.thread_time() - started, None
    return time.thread_time() - started, chunks


def _problems(text: str, chunks: Sequence[Chunk] | None) -> Iterator[str]:
    if chunks is None:
        yield f"{len(text):,} characters became more than {MOST_CHUNKS:,} chunks"
        return
    if "".join(chunk.content for chunk in chunks) != text:
        yield "the chunks, joined, are not the text"
    if text.strip() and not all(chunk.content.strip() for chunk in chunks):
        yield "a chunk is blank"
    tokens = sum(chunk.token_count for chunk in chunks)
    if len(chunks) > _FEW_CHUNKS and tokens < _LEAST_MEAN_TOKENS * len(chunks):
        yield f"{len(chunks):,} chunks have {tokens:,} tokens"
