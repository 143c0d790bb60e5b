"""Plain text is split at paragraphs, sentences, words and, at last, characters."""

from __future__ import annotations

import pytest


def pieces(chunk, content, target):
    return [each.content for each in chunk(content, format="text", target_tokens=target)]


def test_short_paragraphs_share_a_chunk(chunk):
    assert len(chunk("One.\n\nTwo.\n\nThree.\n", format="text")) == 1


def test_paragraphs_stay_whole_when_they_fit(chunk):
    first, second = pieces(chunk, "One two. Three four.\n\n  Five six. Seven eight.\n", 8)
    assert first == "One two. Three four.\n\n"
    assert second == "  Five six. Seven eight.\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("One two. Three four.", ["One two. ", "Three four."]),
        ("One two! (Three four?) Five six.", ["One two! ", "(Three four?) ", "Five six."]),
        ("One two!\nThree four.", ["One two!\n", "Three four."]),
        ("He said “one two.” Then three.", ["He said “one two.” ", "Then three."]),
        ("一二三。四五六！七八九？", ["一二三。", "四五六！", "七八九？"]),
        ("「一二。」三四。", ["「一二。」", "三四。"]),
    ],
)
def test_a_long_paragraph_is_split_at_sentence_ends(chunk, words, content, expected):
    target = max(len(words.token_starts(each)) for each in expected)
    assert pieces(chunk, content, target) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "We met Dr. Smith and Mrs. Jones there. ",
        "Use a tool, e.g. Git or make, i.e. Make it so. ",
        "It is 3.14 or v1.2.3 at a.b.c then. ",
        "The U.S. Army and J. R. Tolkien agree. ",
        "It stops ... and goes on. ",
    ],
)
def test_an_abbreviation_or_number_does_not_end_a_sentence(chunk, sentence):
    for piece in pieces(chunk, sentence * 6, 24):
        assert piece.startswith(sentence[:6])


def test_a_sentence_without_end_is_split_between_words(chunk):
    assert all(piece.endswith(" ") for piece in pieces(chunk, "word " * 1000, 100))


def test_lines_are_kept_whole_where_there_are_no_sentences(chunk):
    assert all(piece.endswith("\n") for piece in pieces(chunk, "a log line\n" * 500, 100))


@pytest.mark.parametrize("format", ["text", "markdown", "code:python"])
def test_megabytes_without_a_space_are_split_at_characters(chunk, check, format):
    content = "x" * 5_000_000
    chunks = chunk(content, format=format)
    check(content, chunks, 400)
    assert max(len(each.content) for each in chunks) <= 400 * 16


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "👍🏽", "❤️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\r\n"])
def test_what_reads_as_one_character_is_not_split(chunk, cluster):
    # An even run of flags cannot be told from its middle: letters stand between.
    chunks = pieces(chunk, (cluster + "x") * 500, 7)
    assert all(piece.count(cluster) + piece.count("x") == len(piece.replace(cluster, "x"))
               for piece in chunks)  # fmt: skip
