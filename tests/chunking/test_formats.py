"""The format of a text is known by its path, or else by what it contains."""

from __future__ import annotations

import pytest

from byheart.chunking import guess_format


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
