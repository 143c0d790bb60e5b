import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.extraction import summarize
from byheart.extraction.summary import SCANNED_CHARS

SENTENCES = {
    "Ship on Friday at noon. Then rest.": "Ship on Friday at noon.",
    "a line that goes\non in the next. More.": "a line that goes on in the next.",
    "no full stop at all": "no full stop at all",
    "Python 3.11 is out now. Update.": "Python 3.11 is out now.",
    "Dr. Smith, e.g., met J. Doe here. Next.": "Dr. Smith, e.g., met J. Doe here.",
    "Hello! The meeting moved to Friday. Bye.": "Hello! The meeting moved to Friday.",
    "今天决定使用数据库。第二句话。": "今天决定使用数据库。",
}

MARKDOWN = {
    "heading": "# Deploy guide\n\nThe real text begins.",
    "setext heading": "Deploy guide\n============\n\nThe real text begins.",
    "setext subheading": "Deploy guide\n---\nThe real text begins.",
    "front matter": "---\ntitle: Deploy guide\n---\nThe real text begins.",
    "TOML front matter": "+++\ntitle = 'x'\n+++\nThe real text begins.",
    "fence": "```sh\nrm -rf build\n```\nThe real text begins.",
    "long fence": "````\n```\nrm\n```\n````\nThe real text begins.",
    "indented code": "    rm -rf build\n\nThe real text begins.",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n\nThe real text begins.",
    "HTML": "<p align=center><img src=x></p>\n\nThe <b>real</b> text begins.",
    "comment": "<!-- a note\nto self -->\nThe real text begins.",
    "badge": "[![build](http://a/b.svg)](http://a)\n\nThe real text begins.",
    "bullet": "- The real text begins.\n- And goes on.",
    "task": "* [x] The real text begins.",
    "number": "1. The real text begins.",
    "quote": "> The real text begins.",
    "rule": "***\n\nThe real text begins.",
    "emphasis": "The **real** _text_ ~~begins~~.",
    "link": "The [real](http://x.y/z) [text][1] [[page|begins]].",
    "code span": "The `real` text begins.",
    "whitespace": "The   real\ttext\u00a0 begins.",
    "byte order mark": "\ufeff# Guide\n\nThe real text begins.",
}

FALLBACKS = {
    "# Only a heading #": "Only a heading",
    "# Learning C#": "Learning C#",
    "```py\nimport os\n```": "import os",
    "~~~\nnever closed": "never closed",
    "---\nkey: value\n---\n": "--- key: value ---",
    "!!! ???": "!!! ???",
    "\n" * 30_000 + "late": "late",
}


@pytest.mark.parametrize(("content", "summary"), SENTENCES.items())
def test_the_summary_is_the_first_real_sentence(content: str, summary: str) -> None:
    assert summarize(content) == summary


@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_is_read_past_and_not_shown(name: str) -> None:
    assert summarize(MARKDOWN[name]) == "The real text begins."


@pytest.mark.parametrize(("content", "summary"), FALLBACKS.items())
def test_a_text_without_sentences_is_summarized_by_what_it_has(content: str, summary: str) -> None:
    assert summarize(content) == summary


def test_names_with_underscores_are_not_taken_for_emphasis() -> None:
    assert summarize("call __init__ and user_name_of(x) now") == (
        "call __init__ and user_name_of(x) now"
    )


def test_a_long_sentence_loses_its_fillers_before_its_end() -> None:
    words = " ".join(f"w{number}" for number in range(18))
    assert summarize(f"I think that it is very {words}.") == f"it is {words}."


def test_a_sentence_that_stays_too_long_is_cut_at_twenty_words() -> None:
    words = [f"w{number}" for number in range(30)]
    assert summarize(" ".join(words)) == " ".join(words[:20]) + "…"


def test_a_text_without_spaces_is_cut_by_characters() -> None:
    assert summarize("中" * 200) == "中" * 60 + "…"
    assert summarize("a" * 5000) == "a" * 240 + "…"


def test_blank_content_has_an_empty_summary() -> None:
    assert summarize(" \n\t ") == ""


@given(st.text(alphabet=st.sampled_from("ab. \n#-*_`|<>[]()!~=中\t&;1"), max_size=200) | st.text())
def test_a_summary_is_one_short_line_and_never_empty_for_any_text(content: str) -> None:
    summary = summarize(content)
    assert len(summary.split()) <= 20
    assert len(summary) <= 241
    assert "\n" not in summary
    assert bool(summary) == bool(content.strip())


@pytest.mark.parametrize(
    "unit",
    ["a", "a ", "[", "[a](", "*a", "_", "`", "<!--", "<a ", "- ", "> ", "|-", "\n", "= -", "."],
)
def test_of_a_megabyte_of_anything_the_beginning_is_summarized(unit: str) -> None:
    content = unit * (1_000_000 // len(unit))
    assert summarize(content) == summarize(content[:SCANNED_CHARS])
