"""However a text is made, it becomes chunks of sensible size, and not too many of them."""

from __future__ import annotations

import pytest

from byheart.chunking import code, markdown, packing
from byheart.errors import TooManyChunks

SCRAPS = {
    "headings": ("markdown", "# a\n"),
    "headings of every level": ("markdown", "# a\n## b\n### c\n#### d\n##### e\n###### f\n"),
    "headings with a word below": ("markdown", "# a\n\nb\n\n"),
    "underlined headings": ("markdown", "a\n=\n\n"),
    "links in headings": ("markdown", "# [a](b)\n"),
    "list items": ("markdown", "- a\n"),
    "tables": ("markdown", "|a|b|\n|-|-|\n\n"),
    "fences": ("markdown", "```\n```\n"),
    "breaks": ("markdown", "***\n\n"),
    "quotes": ("markdown", "> a\n\n"),
    "paragraphs": ("text", "a\n\n"),
    "titles": ("rst", "a\n==\n\n"),
    "definitions": ("code:python", "def a(): pass\n"),
    "classes": ("code:python", "class A:\n    def b(self): pass\n\n"),
    "lines of a language without a grammar": ("code:nonesuch", "a\n\n"),
}


@pytest.mark.parametrize("case", SCRAPS)
def test_scraps_share_chunks(chunk, check, words, case):
    kind, unit = SCRAPS[case]
    content = unit * (11_000 if "every level" in case else 3_000)
    chunks = chunk(content, format=kind)
    check(content, chunks)
    tokens = len(words.token_starts(content))
    assert tokens / len(chunks) > 50


def test_a_document_with_a_few_short_sections_keeps_them_apart(chunk):
    content = "".join(f"## Term {number}\n\nA word or two.\n\n" for number in range(900))
    chunks = chunk(content, format="markdown")
    assert [each.header_path for each in chunks] == [f"Term {number}" for number in range(900)]


def test_sections_that_share_a_chunk_are_filed_under_the_first(chunk):
    chunks = chunk("intro\n\n" + "# a\n" * 1_400 + "# b\n\n" + "word " * 300, format="markdown")
    assert chunks[0].header_path == ""
    assert {each.header_path for each in chunks[1:-1]} == {"a"}
    assert chunks[-1].header_path == "b"
    sections = [each.section for each in chunks]
    assert len(set(sections)) == len(sections)


def test_subsections_that_share_a_chunk_stay_in_their_section(chunk):
    below = "### x\n" * 1_300
    chunks = chunk(f"# A\n\none\n\n## B\n\n{below}## C\n\n{below}", format="markdown")
    assert {each.section[-1].title for each in chunks} == {"A", "B", "C"}
    assert all(each.header_path.startswith("A") for each in chunks)
    order = [each.section for each in chunks]
    assert order == sorted(order, key=order.index)  # no section is in two places


def test_short_sections_share_chunks_where_there_are_too_many_of_them(chunk, check):
    content = "".join(
        f"## Term {number}\n\n" + "Some words. " * 8 + "\n\n" for number in range(500)
    )
    assert len(chunk(content, format="markdown")) == 500
    chunks = chunk(content, format="markdown", max_chunks=100)
    check(content, chunks, 400)
    assert len(chunks) <= 100


def test_a_text_of_too_many_chunks_is_refused_with_advice(chunk):
    with pytest.raises(TooManyChunks, match="more than 20 chunks") as refusal:
        chunk("one two three. " * 400, format="text", target_tokens=40, max_chunks=20)
    assert "max_chunks" in refusal.value.hint
    assert len(chunk("one. " * 400, format="text", target_tokens=40, max_chunks=20)) == 20


def test_a_list_longer_than_a_chunk_keeps_its_headings(chunk):
    chunks = chunk("# A\n\n## B\n\n" + "- one two three\n" * 300, format="markdown")
    assert len(chunks) > 2
    assert {each.header_path for each in chunks} == {"A > B"}


LONG = "\n\n".join(
    [
        "# First\n\nSome [text][there].",
        "\n".join(f"- item {number}\n\n  more of {number}" for number in range(30)),
        "```\n# no heading\n\n~~~\n```",
        "## [Second][there]\n\n" + "\n".join(f"line {number}" for number in range(30)),
        "| a | b |\n|---|---|\n" + "\n".join(f"| c | {number} |" for number in range(30)),
        "> quoted\n> - list\n>\n> end",
        "<div>\n# no heading either\n</div>",
        "    code\n\n    more code",
        "## Third\n\nend",
        "[there]: /url",
    ]
)


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 13, 40])
def test_markdown_that_is_read_in_pieces_has_the_same_sections(chunk, monkeypatch, lines):
    whole = chunk(LONG, format="markdown")
    monkeypatch.setattr(markdown, "_PIECE_LINES", lines)
    assert chunk(LONG, format="markdown") == whole


def test_dense_markdown_is_read_as_paragraphs_in_the_end(chunk, check, monkeypatch):
    monkeypatch.setattr(markdown, "_PIECE_LINES", 100)
    monkeypatch.setattr(markdown, "_LEAST_WORK", 1_000)
    content = "- a\n" * 20_000
    made = []
    parse = markdown._parser().parse
    monkeypatch.setattr(
        markdown._parser(), "parse", lambda *given: made.append(parse(*given)) or made[-1]
    )
    chunks = chunk(content, format="markdown")
    check(content, chunks, 400)
    assert sum(map(len, made)) < len(content) / 2


def test_long_code_is_parsed_in_pieces_with_the_same_definitions(chunk, check, monkeypatch):
    content = "".join(
        f"class C{number}:\n\n    def m(self):\n        return {number}\n\n\n"
        f"def f{number}(x):\n    return x\n\n\n"
        for number in range(80)
    )
    whole = chunk(content, format="code:python", target_tokens=12)
    monkeypatch.setattr(code, "_PIECE_CHARS", 700)
    pieces = chunk(content, format="code:python", target_tokens=12)
    check(content, pieces, 12)
    assert [each.headings for each in pieces] == [each.headings for each in whole]


def test_many_pieces_are_joined_without_changing_what_a_chunk_may_hold(chunk, check, monkeypatch):
    content = "# A\n\n" + "One two. " * 900 + "\n\n" + "- three\n" * 900
    monkeypatch.setattr(packing, "_MANY_PIECES", 50)
    chunks = chunk(content, format="markdown")
    check(content, chunks, 400)
    assert {each.header_path for each in chunks} == {"A"}
