"""Links: sentences of real documentation that point to a section, from the folder `markdown`.

The sentence is the question and the section the answer, as its author had it in mind. The sentence
is cut from the text that is saved. Each book is asked twice: with the words of the link, which
often are those of the heading, and without.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sections import Asked, Span, make_set
from sets import Document, RetrievalSet

from byheart.chunking.markdown import Titles, find_markdown_blocks
from byheart.chunking.ruler import Ruler
from byheart.contracts import TokenCounter

FOLDER = "markdown"
UNNAMED = "_unnamed"
_LEAST_WORDS = 6  # beside the link, or too little is asked
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1", re.MULTILINE | re.DOTALL)
_WIKI_LINK = re.compile(r"(?<![!`])\[\[([^\]|#]*)(?:#([^\]|]+))?(?:\|([^\]]+))?\]\]")
_LINK = re.compile(r"(?<!!)\[([^\]\[]+)\](?:\[([^\]]+)\]|\(([^)\s]+)\))")
_DEFINITION = re.compile(r"^\[([^\]]+)\]: (\S+)", re.MULTILINE)
_LOCAL = re.compile(r"([\w-]*)(?:\.html)?#([\w-]+)")
_HEADING = re.compile(r"#+ (.+)")
_SEAM = re.compile(
    r"\n\s*(?:\n|(?:[-*+]|\d+\.) |[|#]+ ?)+|\s\|\s|(?<=[.?!])[”\")*_]*\s+(?=[A-Z“\"`*_\[(])"
)
_MARKUP = re.compile(
    r"<!--.*?-->|!\[\[.*?\]\]|\[![\w-]+\]|\]\(\S*?\)|[*`\[]|^[-*+>|#\s]+|(?<=\n)>", re.DOTALL
)
_BETWEEN_WORDS = re.compile(r"[\W_]+")


class Link(NamedTuple):
    """A link in a page: where it stands, the words it shows, the page and section it points to."""

    start: int
    end: int
    shown: str
    page: str
    section: str


Book = Mapping[str, str]
FindLinks = Callable[[str], Iterator[Link]]


def find_wiki_links(text: str) -> Iterator[Link]:
    """Find links such as `[[Page#Section|words]]`."""
    for match in _WIKI_LINK.finditer(text):
        page, section, words = match[1], match[2] or "", match[3]
        shown = words or " > ".join(filter(None, (page, section)))
        yield Link(*match.span(), shown, page.rpartition("/")[2], section)


def find_links(text: str) -> Iterator[Link]:
    """Find links such as `[words][name]` and `[words](page.html#section)`."""
    targets = {match[1]: match[2] for match in _DEFINITION.finditer(text)}
    for match in _LINK.finditer(text):
        local = _LOCAL.fullmatch(match[3] or targets.get(match[2], ""))
        yield Link(*match.span(), match[1], *(local.groups() if local else ("", "")))


BOOKS: Mapping[str, FindLinks] = {"obsidian-help": find_wiki_links, "rust-book": find_links}


def read_link_sets(
    data: Path, names: Sequence[str] | None, tokens: TokenCounter
) -> Iterator[RetrievalSet]:
    """Read the books that are wanted and there, asked with and without the words of links."""
    for name, find in BOOKS.items():
        wanted = [each for each in (name, name + UNNAMED) if names is None or each in names]
        pages = sorted((data / FOLDER / name).rglob("*.md")) if wanted else []
        # Links name no folder: of pages with one name, the last is taken.
        book = {page.stem: page.read_text(encoding="utf-8") for page in pages}
        if book:
            yield from (_ask(each, book, find, tokens) for each in wanted)


def _ask(name: str, book: Book, find: FindLinks, tokens: TokenCounter) -> RetrievalSet:
    found = {page: _find_sentences(page, text, find, book) for page, text in book.items()}
    shorter = {page: _cut_out(text, list(found[page])) for page, text in book.items()}
    documents = [Document(page, _title(page, text), text, None) for page, text in shorter.items()]
    asked = [
        Asked(without if name.endswith(UNNAMED) else whole, answers)
        for page, sentences in found.items()
        for whole, without, answers in (
            _put(book[page], span, links, shorter, find) for span, links in sentences.items()
        )
        if answers and len(without.split()) >= _LEAST_WORDS
    ]
    return make_set(name, documents, asked, tokens)


def _find_sentences(page: str, text: str, find: FindLinks, book: Book) -> dict[Span, list[Link]]:
    """Find the sentences that point to a section of the book, with the links that do."""
    links = list(find(text))
    fences = [match.span() for match in _FENCE.finditer(text)]
    seams = [
        (start, end)
        for start, end in (match.span() for match in _SEAM.finditer(text))
        if not any(link.start < end and start < link.end for link in links)
    ]
    begins, ends = [0, *(after for _, after in seams)], [*(at for at, _ in seams), len(text)]
    found: dict[Span, list[Link]] = defaultdict(list)
    for link in links:
        target = link._replace(page=link.page or page)
        fenced = any(start <= link.start < end for start, end in fences)
        if link.section and target.page in book and not fenced:
            begin = begins[bisect_right(begins, link.start) - 1]
            found[begin, ends[bisect_left(ends, link.end)]].append(target)
    return found


def _cut_out(text: str, spans: Sequence[Span]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def _title(page: str, text: str) -> str:
    """Give the heading that a page begins with, or else its name."""
    heading = _HEADING.match(text)
    return heading[1] if heading else page


def _put(
    text: str, span: Span, links: Sequence[Link], book: Book, find: FindLinks
) -> tuple[str, str, list[tuple[str, Span]]]:
    """Give a sentence as it is read, the same without the words of its links, and its answers."""
    answers = [
        (link.page, section)
        for link in links
        for section in find_sections(book[link.page], link.section)
    ]
    named = {(link.start, link.end) for link in links}
    inside = [each for each in find(text) if span[0] <= each.start and each.end <= span[1]]
    return _read(text, span, inside, set()), _read(text, span, inside, named), answers


def _read(text: str, span: Span, links: Sequence[Link], hidden: set[Span]) -> str:
    parts, at = [], span[0]
    for link in links:
        shown = "" if (link.start, link.end) in hidden else link.shown
        parts += [text[at : link.start], shown]
        at = link.end
    parts.append(text[at : span[1]])
    return " ".join(_MARKUP.sub("", "".join(parts)).split())


def find_sections(text: str, name: str) -> list[Span]:
    """Find the section of a page with some name, with what stands below it."""
    wanted = _plain(name.rpartition("#")[2])
    titles = Titles()
    blocks = list(find_markdown_blocks(Ruler(text, ()), titles))
    for heading in dict.fromkeys(each for block in blocks for each in block.headings):
        [shown] = titles.read([heading])
        if _plain(shown.title) == wanted:
            inside = [number for number, each in enumerate(blocks) if heading in each.headings]
            after = blocks[inside[-1] + 1 :]
            return [(heading.start_char, after[0].start if after else len(text))]
    return []


def _plain(title: str) -> str:
    return _BETWEEN_WORDS.sub(" ", title).strip().lower()
