"""reStructuredText is divided at its section titles, into exact slices."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byheart.chunking import guess_format, split

DOCUMENT = """\
=====
Guide
=====

Before all.

Install
=======
Right below the line.

From ``source``
---------------

Run it::

    Not a title
    -----------

:ref:`Use <use>` it
===================

The end.
"""


def paths(content: str, words, target: int = 400) -> list[tuple[str, int, int]]:
    chunks = split(content, format="rst", tokens=words, target_tokens=target)
    assert "".join(chunk.content for chunk in chunks) == content
    return [
        (" > ".join(each.title for each in chunk.headings), chunk.start_line, chunk.end_line)
        for chunk in chunks
    ]


def test_sections_follow_the_order_in_which_their_lines_are_first_drawn(words) -> None:
    assert paths(DOCUMENT, words) == [
        ("Guide", 1, 6),
        ("Guide > Install", 7, 10),
        ("Guide > Install > From source", 11, 18),
        ("Guide > Use it", 19, 22),
    ]


def test_the_path_tells_the_format() -> None:
    assert guess_format("anything", "docs/guide.rst") == "rst"


@pytest.mark.parametrize(
    "content",
    [
        "para\n\n----\n\npara\n",
        "text goes on\nno title\n====\n",
        "=====  =====\na      b\n=====  =====\n",
        "+---+\n| a |\n+---+\n",
        "  indented\n  --------\n",
        "Long title\n--\n",
        "====\n====\n",
        "",
        "----",
    ],
)
def test_what_only_looks_like_a_title_is_none(content: str, words) -> None:
    assert {path for path, _, _ in paths(content, words)} <= {""}


def test_carriage_returns_end_lines_too(words) -> None:
    assert [each[0] for each in paths("A\r\n==\r\n\r\nx\r\rB\r==\ry\r", words)] == ["A", "B"]


pieces = st.sampled_from(
    [
        "Title",
        "====",
        "----",
        "=====",
        "",
        "",
        "text here.",
        "    code",
        " inset",
        "~~",
        "a",
        "\t",
        "é́",
    ]
)
endings = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@settings(max_examples=100, deadline=None)
@given(
    content=st.lists(st.tuples(pieces, endings).map("".join), max_size=25).map("".join),
    target=st.integers(1, 20),
)
@example(content="Title\n----\nTitle\n====\n", target=1)
def test_chunks_joined_are_the_text(words, content: str, target: int) -> None:
    chunks = split(content, format="rst", tokens=words, target_tokens=target)
    assert "".join(chunk.content for chunk in chunks) == content
    for chunk in chunks:
        assert content[chunk.start_char : chunk.end_char] == chunk.content
        assert all(heading.start_char < chunk.end_char for heading in chunk.headings)
