"""Spans: questions whose answers are marked to the character, from the folder `chunking_eval`.

Two of its five corpora have headings. They are written as Markdown here: Wikipedia's, which are
marked (` = = Section = = `), and those of papers, which are lines without an end by themselves.
"""

from __future__ import annotations

import csv
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sections import Asked, make_set
from sets import Document, RetrievalSet

from byheart.contracts import TokenCounter

FOLDER = "chunking_eval"
_WIKI_HEADING = re.compile(r"^ (=(?: =)*) (.+?) \1 $", re.MULTILINE)
_PAPER = re.compile(r"^PMID: ", re.MULTILINE)
_OUTER = (
    "Introduction|Background|Results|Discussion|Conclusions?|Methods|Materials and Methods"
    "|Supporting Information|Abbreviations|==== Refs"
)
# Others come after an empty line or the heading above, and a paragraph follows at once.
_PAPER_HEADING = re.compile(
    rf"^(?P<outer>{_OUTER})$|(?:(?<=\n\n)|(?<=\nResults\n))"
    r"(?!PMID|Figure|Table|Dataset|Box)[A-Z][^\n]{1,98}[^\s.:;,](?=\n[“\"(A-Z])",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Headed:
    """A corpus with Markdown headings: its documents, and where each began in the original.

    `inserted` tells where in the original, in order, characters were added.
    """

    documents: Sequence[Document]
    starts: Sequence[int]
    inserted: Sequence[int] = ()

    def place(self, start: int, end: int) -> tuple[str, tuple[int, int]]:
        """Find a stretch of the original: its document, and the stretch there."""
        at = bisect_right(self.starts, start) - 1
        begin = self._shift(self.starts[at])
        # What was added where a stretch begins belongs to it; where it ends, to what follows.
        stop = end + bisect_left(self.inserted, end)
        return self.documents[at].name, (self._shift(start) - begin, stop - begin)

    def _shift(self, offset: int) -> int:
        return offset + bisect_right(self.inserted, offset)


def head_wiki(text: str) -> Headed:
    """Write Wikipedia's headings as Markdown, in as many characters as before."""

    def rewrite(match: re.Match[str]) -> str:
        if " ; " in match[2]:  # the legend of a table
            return match[0]
        heading = f"{'#' * match[1].count('=')} {match[2]}"
        return heading.ljust(len(match[0]))

    # A paragraph is a line, and begins with a blank.
    headed = _WIKI_HEADING.sub(rewrite, text).replace("\n ", "\n\n")
    starts = [match.start() for match in re.finditer(r"^# ", headed, re.MULTILINE)]
    parts = [headed[start:end] for start, end in pairwise([*starts, len(headed)])]
    titles = [part[2 : part.index("\n")].strip() for part in parts]
    return Headed(
        [Document(title, title, part, None) for title, part in zip(titles, parts, strict=True)],
        starts,
    )


def head_papers(text: str) -> Headed:
    """Mark the headings of papers; those of the usual order are above the others."""
    marks = [
        (match.start(), "# " if match["outer"] else "## ")
        for match in _PAPER_HEADING.finditer(text)
    ]
    starts = [match.start() for match in _PAPER.finditer(text)]
    documents = []
    for number, (start, end) in enumerate(pairwise([*starts, len(text)])):
        within = [each for each in marks if start <= each[0] < end]
        edges = [start, *(at for at, _ in within), end]
        parts = [text[begin:after] for begin, after in pairwise(edges)]
        headed = parts[0] + "".join(
            mark + part for (_, mark), part in zip(within, parts[1:], strict=True)
        )
        documents.append(Document(f"paper {number}", None, headed, None))
    return Headed(documents, starts, [at for at, mark in marks for _ in mark])


CORPORA: Mapping[str, Callable[[str], Headed]] = {"wikitexts": head_wiki, "pubmed": head_papers}


def read_span_sets(
    data: Path, names: Sequence[str] | None, tokens: TokenCounter
) -> Iterator[RetrievalSet]:
    """Read the sets of marked spans that are wanted and there."""
    folder = data / FOLDER
    for name, head in CORPORA.items():
        if folder.is_dir() and (names is None or name in names):
            with (folder / "corpora" / f"{name}.md").open(encoding="utf-8", newline="") as file:
                headed = head(file.read())
            asked = list(_read_questions(folder / "questions_df.csv", name, headed))
            yield make_set(name, headed.documents, asked, tokens)


def _read_questions(path: Path, corpus: str, headed: Headed) -> Iterator[Asked]:
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["corpus_id"] == corpus:
                spans = json.loads(row["references"])
                answers = [headed.place(each["start_index"], each["end_index"]) for each in spans]
                yield Asked(row["question"], answers)
