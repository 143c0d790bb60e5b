"""What is true of the chunks of any text, whatever its format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byheart.chunking import guess_format, split
from byheart.errors import InvalidInput

FORMATS = ("markdown", "text", "code:python", "code:javascript", "code:nonesuch")
_WHITE_SPACE = (
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x1c",
    "\u00a0",
    "\t",
    "    ",
)
_MARKS = (
    *("# ", "## ", "#", "===", "---", "\n---\n", "```", "~~~", "> ", "- ", "1. ", "|", "|-|-|"),
    *("<!--", "-->", "<div>", "[a]: b", "[a", "](", "*", "_", "`", "\\"),
)
_WORDS = (
    "word ",
    "One. Two! ",
    "Dr. ",
    "。",
    "e\u0301",
    "👩‍👩‍👧",
    "🇩🇪",
    "\x00",
    "\ufeff",
    "\ud83d",
)
_CODE = ("def f():", "class A:\n", "    return 1\n", "function f() {\n", "}\n", "# c\n", "@d\n")
_AWKWARD = _WHITE_SPACE + _MARKS + _WORDS + _CODE
texts = st.one_of(
    st.lists(st.sampled_from(_AWKWARD), max_size=60).map("".join),
    st.lists(st.one_of(st.sampled_from(_AWKWARD), st.text(max_size=8)), max_size=40).map("".join),
)
any_target = st.sampled_from((1, 2, 3, 7, 20, 400))
thorough = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("format", FORMATS)
@thorough
@given(content=texts, target=any_target)
def test_joined_chunks_are_exactly_the_text(words, check, format, content, target):
    chunks = split(content, format=format, tokens=words, target_tokens=target)
    check(content, chunks, target)
    assert "".join(each.content for each in chunks) == content


@thorough
@given(content=texts)
def test_any_text_has_a_format_that_can_be_split(words, check, content):
    chunks = split(content, format=guess_format(content), tokens=words)
    check(content, chunks, 400)
    assert "".join(each.content for each in chunks) == content


@thorough
@given(content=texts, target=any_target)
def test_the_same_input_gives_the_same_chunks(words, content, target):
    first, second = (
        split(content, format="markdown", tokens=words, target_tokens=target) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", [" ", "\n", "\r\n\r\n", "\t\n \u2028 \x0c", "\n" * 5000])
def test_white_space_alone_is_one_chunk(chunk, check, format, content):
    chunks = chunk(content, format=format)
    check(content, chunks)
    assert len(chunks) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_empty_text_has_no_chunks(chunk, format):
    assert chunk("", format=format) == []


@pytest.mark.parametrize("format", FORMATS)
def test_the_tokenizer_reads_a_text_once(words, format):
    before = words.calls
    split("# a\n\nb. c\n" * 500, format=format, tokens=words)
    assert words.calls == before + 1


@pytest.mark.parametrize("format", ["", "html", "code", "code:"])
def test_an_unknown_format_is_refused_by_name(chunk, format):
    with pytest.raises(InvalidInput, match="unknown format"):
        chunk("a", format=format)


def test_a_target_below_one_is_refused(chunk):
    with pytest.raises(InvalidInput, match="target_tokens is 0"):
        chunk("a", format="text", target_tokens=0)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_change_no_boundary(chunk, ending):
    lines = ["# A", "", "one. two.", "", "```", "# x", "```", "", "B", "===", "", "- c", "- d", ""]
    plain = chunk("\n".join(lines), format="markdown", target_tokens=5)
    other = chunk(ending.join(lines), format="markdown", target_tokens=5)
    assert [each.content.replace(ending, "\n") for each in other] == [c.content for c in plain]
    assert [(c.start_line, c.end_line) for c in other] == [
        (c.start_line, c.end_line) for c in plain
    ]


def test_every_commonmark_and_gfm_example_round_trips(
    data: Path, chunk, check: Callable[..., None]
):
    for name in ("spec.json", "gfm_spec.json"):
        for example in json.loads((data / "commonmark" / name).read_text("utf-8")):
            for target in (1, 5, 400):
                content = example["markdown"]
                chunks = chunk(content, format="markdown", target_tokens=target)
                check(content, chunks, target)
                assert "".join(each.content for each in chunks) == content


def test_real_documents_round_trip(data: Path, chunk, check: Callable[..., None]):
    files = [*(data / "markdown").rglob("*.md"), *(data / "chunking_eval" / "corpora").glob("*.md")]
    assert files
    for path in files:
        with path.open(encoding="utf-8", newline="") as file:
            content = file.read()
        chunks = chunk(content, format="markdown")
        check(content, chunks, 400)
        assert "".join(each.content for each in chunks) == content
