"""Windows hold the whole chunk, in order, and never more than the model reads."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.windows import window_texts
from tests.growth import grows_in_line

WORDS = st.sampled_from(
    ["a", "the", "window", "tokenization", "antidisestablishmentarianism", "naïve", "你好世界",
     "ไทยแลนด์", "한국어", "😀🚀", "foo_bar(baz)", "x" * 130, "\n\n", "--", "…", "3.14159", "[SEP]"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(WORDS, max_size=120).map(" ".join),
    st.lists(WORDS, max_size=60).map("".join),
)


class WordCounter:
    """Counts words, which makes the expected windows easy to write down."""

    def token_starts(self, text):
        return [match.start() for match in re.finditer(r"\S+", text)]


def windows(text, **options):
    given = {"before": "", "header": "", "tokens": WordCounter(), "window_tokens": 8, **options}
    return window_texts(text, **given)


def test_a_chunk_that_fits_is_one_window():
    assert windows("one two three") == ["one two three"]


def test_a_longer_chunk_is_cut_into_the_fewest_windows_of_equal_size():
    text = " ".join(f"w{number}" for number in range(18))
    assert [len(each.split()) for each in windows(text)] == [6, 6, 6]
    assert "".join(windows(text)) == text


def test_every_window_starts_with_the_header():
    text = " ".join(f"w{number}" for number in range(12))
    assert [each.split()[:2] for each in windows(text, header="Title Part")] == [
        ["Title", "Part"],
        ["Title", "Part"],
    ]


def test_a_long_header_is_cut_to_a_quarter_of_the_window():
    (only,) = windows("text", header="one two three four")
    assert only == "one two\n\ntext"


def test_the_end_of_the_text_before_is_shown_where_there_is_room():
    (only,) = windows("five six seven", before="one two three four ", overlap_tokens=2)
    assert only == "three four five six seven"


def test_the_text_before_never_costs_a_further_window():
    full = "1 2 3 4 5 6 7"
    assert windows(full, before="one two three ") == ["three " + full]
    assert windows(full + " 8", before="one two three ") == [full + " 8"]


def test_a_word_longer_than_a_window_is_the_only_one_to_be_broken():
    class Letters:
        def token_starts(self, text):
            return [index for index, letter in enumerate(text) if not letter.isspace()]

    assert windows("abcdefghij kl mn", tokens=Letters(), window_tokens=4) == [
        "abcd",
        "efgh",
        "ij kl ",
        "mn",
    ]


def check_windows(tokens, window_tokens, text, before, header):
    """Find every part of the text once and in order, and give the tokens of the longest window."""
    texts = window_texts(
        text, before=before, header=header, tokens=tokens, window_tokens=window_tokens
    )
    assert texts == window_texts(
        text, before=before, header=header, tokens=tokens, window_tokens=window_tokens
    )
    bare = window_texts(text, before="", header="", tokens=tokens, window_tokens=window_tokens)
    assert "".join(bare) == text
    rest = text
    for index, each in enumerate(texts):
        # What a window ends with is the next part of the chunk; the first may show more before it.
        size = next(n for n in range(min(len(rest), len(each)), -1, -1) if each.endswith(rest[:n]))
        assert size > 0 or not rest
        rest = rest[size:]
        assert index == 0 or len(each) - size < window_tokens * 40
    assert rest == ""
    return max((len(tokens.token_starts(each)) for each in texts), default=0)


@given(text=TEXTS, before=TEXTS, header=st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_nothing_is_lost_and_nothing_is_too_long_by_estimate(text, before, header):
    assert check_windows(EstimatedTokens(), 24, text, before, header) <= 24


@pytest.mark.model
@given(text=TEXTS, before=TEXTS, header=st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_nothing_is_lost_and_nothing_is_too_long_for_the_real_tokenizer(
    minilm, text, before, header
):
    assert check_windows(minilm, 32, text, before, header) <= 32


def test_time_grows_in_line_with_the_text():
    def prepare(times):
        return partial(windows, "lorem ipsum " * 8_000 * times, window_tokens=254)

    assert grows_in_line(prepare)
