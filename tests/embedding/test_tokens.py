"""Tokens are found where they are, however long or odd the text."""

from __future__ import annotations

import itertools
import pickle
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.embedding.estimated_tokens import EstimatedTokens
from byheart.embedding.model_tokens import PIECE_CHARACTERS, ModelTokens
from tests.growth import grows_in_line


@pytest.fixture(scope="module")
def tokens(minilm):
    return ModelTokens(minilm.files().tokenizer)


def test_estimated_tokens_are_short_words_pieces_of_long_ones_and_single_signs():
    text = "one twelve, 你好 x_y"
    parts = [
        text[a:b].strip()
        for a, b in itertools.pairwise([*EstimatedTokens().token_starts(text), 99])
    ]
    assert parts == ["one", "twelv", "e", ",", "你", "好", "x", "_", "y"]


@given(st.text())
def test_estimated_tokens_cover_every_visible_character(text):
    starts = list(EstimatedTokens().token_starts(text))
    assert starts == sorted(set(starts))
    assert bool(starts) == bool(text.strip())


@pytest.mark.model
@pytest.mark.parametrize(
    "text",
    [
        "The office was painted white and blue, and its windows looked out on the harbour.",
        "def tokenize(text): return [match.start() for match in TOKEN.finditer(text)]",
        "机器学习是人工智能的一个分支，它让计算机从数据中学习。",
    ],
)
def test_the_estimate_is_near_the_truth_and_not_below_it(tokens, text):
    estimate, real = len(EstimatedTokens().token_starts(text)), len(tokens.token_starts(text))
    assert 0.95 * real <= estimate <= 1.5 * real


@pytest.mark.model
def test_offsets_are_characters_not_bytes(tokens):
    assert list(tokens.token_starts("héé 你好 😀 end")) == [0, 4, 5, 7, 9]


@pytest.mark.model
def test_the_files_own_truncation_is_off(tokens):
    assert len(tokens.token_starts("word " * 1000)) == 1000


@pytest.mark.model
def test_cutting_a_long_text_into_pieces_changes_no_token(tokens):
    text = "".join(f"number {index} of 你好, tokenization! " for index in range(2000))
    assert len(text) > 5 * PIECE_CHARACTERS
    whole = tokens._encode(text)
    assert list(tokens.token_starts(text)) == [start for start, _ in whole.offsets]


@pytest.mark.model
def test_a_word_too_long_for_the_vocabulary_is_read_in_pieces(tokens):
    word = "abc" * 100
    starts = list(tokens.token_starts(f"before {word} after"))
    assert len(starts) > len(word) / 8
    assert starts[0] == 0
    assert starts[-1] == len(f"before {word} ")
    assert tokens._unknown not in tokens.ids(word)


@pytest.mark.model
@given(st.text(), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_offsets_ascend_within_the_text_and_count_what_the_model_reads(tokens, text, repeats):
    text = text * repeats
    starts = list(tokens.token_starts(text))
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)
    assert len(starts) >= len(tokens.ids(text))


@pytest.mark.model
@pytest.mark.parametrize("unit", ["lorem ipsum ", "x", "你"])
def test_time_grows_in_line_with_the_text_even_without_white_space(tokens, unit):
    def prepare(times):
        return partial(tokens.token_starts, unit * (40_000 * times // len(unit)))

    assert grows_in_line(prepare)


@pytest.mark.model
def test_half_a_surrogate_pair_does_no_harm(tokens):
    assert list(tokens.token_starts("a \ud800 b")) == [0, 4]


ODD = st.sampled_from(
    [
        *"ab C.,-_'\n\t\r\x00\x1c漢字ñßกé😀",
        "\u0301",
        "\u00a0",
        "\u2028",
        "[SEP]",
        "[unk]",
        "x" * 120,
    ]
)


@pytest.mark.model
@settings(max_examples=300, deadline=None)
@given(st.lists(ODD | st.text(max_size=8), max_size=40).map("".join))
def test_a_text_has_the_tokens_of_its_words(tokens, text):
    assert list(tokens._count_piece(text)) == list(tokens._read(text))


@pytest.mark.model
def test_more_words_than_are_remembered_are_counted_as_well(tokens):
    text = " ".join(f"w{number}" for number in range(30_000))
    assert len(tokens._count_piece(text)) == len(tokens._read(text))
    assert len(tokens._count_piece("w1 w2 w1")) == len(tokens._read("w1 w2 w1"))


@pytest.mark.model
def test_a_counter_that_was_sent_to_another_process_counts_the_same(minilm):
    text = "héé 你好 😀 tokenisation [SEP] " + "a" * 300
    sent = pickle.loads(pickle.dumps(minilm.counter_to_send()))
    assert list(sent.token_starts(text)) == list(minilm.token_starts(text))


@pytest.mark.model
def test_each_text_of_the_largest_batch_is_counted_once(minilm):
    """A batch is cut into chunks first, then into windows."""
    tokens = ModelTokens(minilm.files().tokenizer)
    batch = [f"text {number} of the batch" for number in range(1_024)]
    for text in (*batch, *batch):
        tokens.token_starts(text)
    assert tokens._piece_starts.cache_info().misses == len(batch)
