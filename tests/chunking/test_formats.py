"""The format of a text is known by its path, or else by what it contains."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from byheart.chunking import guess_format
from byheart.chunking.markdown import has_markdown_structure

PIECES = (
    *("#", "# a", "##x", "a", "b c", "\n", "\r\n", "\r", " ", "    ", "\t", "> "),
    *("- ", "---", "===", "1. ", "2)", "12", "```", "~~~", "|", "a|b\n-|-\n", "a|b\n:-|-:\n"),
    *(
        "<div>",
        "<!--",
        "* ",
        "+",
        "[a]: b",
        "\\",
        "\0",
        "\ufeff",
        "\u2028",
        "\x0b",
        "\u3000",
        "٣. ",
    ),
)
STRUCTURE = {"heading_open", "fence", "table_open", "bullet_list_open", "ordered_list_open"}


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("a/README.MD", "markdown"),
        ("notes.txt", "text"),
        ("src\\main.py", "code:python"),
        ("x.test.tsx", "code:tsx"),
        ("Dockerfile", "code:dockerfile"),
        ("lib/x.h", "code:c"),
    ],
)
def test_a_known_path_decides(path, format):
    assert guess_format("# anything", path) == format


@pytest.mark.parametrize("path", [None, "LICENSE", "c", "file.unknown"])
def test_without_a_known_path_the_content_decides(path):
    assert guess_format("# Title\n\ntext", path) == "markdown"
    assert guess_format("Just a line of text.", path) == "text"


@pytest.mark.parametrize(
    "content",
    [
        "# A",
        "A\n===\n",
        "- a\n- b\n",
        "1. a\n2. b\n",
        "x\n\n```\ny\n```\n",
        "|a|b|\n|-|-|\n|c|d|\n",
        "---\na: b\n---\ntext",
    ],
)
def test_markdown_structure_makes_markdown(content):
    assert guess_format(content) == "markdown"


@pytest.mark.parametrize("structure", ["# Title\n\ntext", "```\ncode\n```\n"])
def test_structure_after_pages_of_prose_makes_markdown(structure):
    prose = "It was on the 3rd - or 4th - of May, as some say.\n\n" * 1_000
    assert guess_format(prose) == "text"
    assert guess_format(prose + structure) == "markdown"


@pytest.mark.parametrize("line", ["```", "- retrying", "1. try", "-----", "# comment"])
def test_a_line_of_a_long_log_that_looks_like_markdown_makes_none(line):
    log = "12:00:01 INFO worker started and went on with the work\n" * 1_000
    assert guess_format(f"{log}{line}\n{log}") == "text"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("#!/usr/bin/env python3\nprint(1)\n", "code:python"),
        ("#!/bin/sh\necho a\n", "code:bash"),
        ("# A comment\nimport re\n\n\ndef f(a):\n    return a\n", "code:python"),
        ("class A:\r\n    x = 1\r\n", "code:python"),
        ("<?php\necho 1;\n", "code:php"),
        ("// x\n#include <stdio.h>\nint main() {}\n", "code:cpp"),
        ("package main\n\nfunc main() {}\n", "code:go"),
    ],
)
def test_source_code_beyond_doubt_is_recognised(content, format):
    assert guess_format(content) == format


@pytest.mark.parametrize(
    "content",
    [
        "",
        "import taxes are rising. From here on class matters: it does.",
        "2 * 3 = 6, #hashtag, a - b, *emphasis* and `code`",
        "The class was called: def leppard\n\nand so on",
        "package deals\nare good",
    ],
)
def test_prose_is_text(content):
    assert guess_format(content) == "text"


def test_markdown_with_code_in_fences_stays_markdown():
    assert guess_format("# Title\n\n```python\ndef f():\n    return 1\n```\n") == "markdown"


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_structure_is_seen_where_the_parser_sees_it(content):
    assume(not content.startswith(("---", "+++")))  # front matter, which is none of the parser's
    tokens = MarkdownIt("commonmark").enable("table").parse(content)
    assert has_markdown_structure(content) == bool({each.type for each in tokens} & STRUCTURE)


YAML = (
    "# Who may deploy\n# and where\nteams:\n  core:\n    - anna\n    - ben\n\n# Later\nhosts: []\n"
)
SHELL = "# Tools\nsudo apt-get install jq\n\n# Build\nif [ -d out ]; then\n  rm -r out\nfi\n"
SETTINGS = "# Licensed under MIT\n# by the authors\n\n# Where to listen\nport = 80\nhost = here\n"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (YAML, "code:yaml"),
        (SHELL, "code:bash"),
        (SETTINGS, "code:plain"),
        ("/*\n * Terms:\n * - one\n */\nint a;\nint b;\n", "code:plain"),
    ],
)
def test_comments_of_code_are_no_headings(content, format):
    assert guess_format(content) == format


@pytest.mark.parametrize(
    "content",
    [
        "# Deploying\n\nRun the script and wait for the answer of the server.\n\n    make deploy\n",
        "# Settings\n\n```yaml\nport: 80\nhost: here\n```\n",
        "# Contacts\n\nAnna: she knows the people and more.\nBen: ask him about the bills.\n",
        "---\n# For reference\ntitle: {{ title }}\n---\n# {{ title }}\n",
        "# Operators\n\n|name|note|\n|---|---|\n|Add;|yes;|\n",
    ],
)
def test_markdown_with_words_or_marks_of_its_own_stays_markdown(content):
    assert guess_format(content) == "markdown"
