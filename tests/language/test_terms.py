import unicodedata
from collections.abc import Callable, Iterator

import apsw
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from byheart.language.terms import (
    STOP_WORDS,
    is_one_word,
    query_terms,
    spans_in_texts,
    spread,
    term_spans,
    terms,
    tokens,
)
from tests.growth import grows_in_line

texts = st.text(st.characters(codec="utf-8"), max_size=80)


def test_terms_are_those_of_porter_and_unicode61() -> None:
    assert terms("Running programs; the CAFÉS prefer Preferences") == [
        *("run", "program", "the", "cafe", "prefer", "prefer"),
    ]


def test_running_is_found_by_run_but_runner_is_another_word() -> None:
    assert terms("running") == terms("run")
    assert terms("runner") != terms("run")


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("kebab-case", ["kebab", "case"]),
        ("HTTPServer", ["http", "server"]),
        ("src/storage/parser.py", ["src", "storag", "parser", "py"]),
        ("utf8", ["utf", "8"]),
        ("parseJSON2Html", ["pars", "json", "2", "html"]),
    ],
)
def test_an_identifier_is_indexed_by_its_parts(identifier: str, parts: list[str]) -> None:
    assert set(parts) <= set(terms(identifier))


def test_an_identifier_is_indexed_as_a_whole_too() -> None:
    assert "getusernam" in terms("getUserName")


@pytest.mark.parametrize("query", ["記憶", "憶", "長期記憶", "기억", "ความ"])
def test_text_in_unspaced_scripts_is_indexed_by_its_parts(query: str) -> None:
    text = "代理的長期記憶系統。에이전트의 장기기억 저장소。ความทรงจำ"
    assert set(query_terms(query)) <= set(terms(text))


def test_stop_words_are_left_out_of_a_question_when_others_remain() -> None:
    assert query_terms("What are the user's coding preferences?") == ["user", "code", "prefer"]


def test_a_question_of_stop_words_alone_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_a_word_that_is_asked_twice_counts_twice() -> None:
    assert query_terms("zebra apple zebras Apple") == ["zebra", "appl", "zebra", "appl"]


@pytest.mark.parametrize("query", ["", "   ", "???", "—…!", "\0\x01"])
def test_a_query_without_words_has_no_terms(query: str) -> None:
    assert query_terms(query) == []


EMOJI = frozenset(map(chr, [*range(0x2300, 0x2C00), *range(0x1F000, 0x1FB00)]))


@pytest.mark.parametrize("emoji", ["🙂", "🎉", "⭐", "❤️", "🧠", "👍"])
def test_an_emoji_is_a_word(emoji: str) -> None:
    assert query_terms(emoji) == [emoji[0]]
    assert terms(f"well done {emoji}!") == ["well", "done", emoji[0]]
    assert terms(f"Well{emoji}done") == ["well", "done", emoji[0]]
    assert term_spans(f"Well{emoji} done", query_terms(emoji)) == [(4, 5)]


def test_a_hand_is_found_in_every_colour() -> None:
    assert set(query_terms("👍")) < set(terms("fine 👍🏽"))


def test_decomposed_accents_give_the_same_terms_as_composed_ones() -> None:
    composed = "résumés naïve Ångström"
    decomposed = unicodedata.normalize("NFD", composed)
    assert query_terms(composed) == query_terms(decomposed) == terms(composed) == terms(decomposed)


@given(texts)
def test_every_term_of_a_question_is_a_term_of_the_same_text(text: str) -> None:
    assert set(query_terms(text)) <= set(terms(text))


@given(texts)
def test_a_question_has_no_terms_only_if_the_text_has_none(text: str) -> None:
    assert bool(query_terms(text)) == bool(terms(text))


@given(texts, st.data())
def test_every_span_is_within_the_text_and_stems_to_a_wanted_term(
    text: str, data: st.DataObject
) -> None:
    known = sorted(set(terms(text)))
    assume(known)
    wanted = set(data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)))
    spans = term_spans(text, wanted)
    end_before = -1
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert start > end_before  # sorted, and touching spans are one
        end_before = end
        # Of touching parts, as in `ÆbA`, each has a term, and all of them together may not; and
        # part of a compound is one term even where scripts meet, as in `aBÙ㐀`.
        stretches = _stretches(text[start:end])
        assert any(wanted.intersection([*terms(each), *tokens(each)]) for each in stretches)
    assert spans  # what is indexed can be shown


@given(st.lists(texts, max_size=4), st.data())
def test_spans_in_several_texts_are_those_of_each_text_alone(
    several: list[str], data: st.DataObject
) -> None:
    known = sorted({term for text in several for term in terms(text)})
    assume(known)
    wanted = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    assert spans_in_texts(several, wanted) == [term_spans(text, wanted) for text in several]


def _stretches(text: str) -> Iterator[str]:
    """Give a text and all of its parts, the longest first."""
    for length in range(len(text), 0, -1):
        yield from (text[at : at + length] for at in range(len(text) - length + 1))


ENDINGS = (
    *("", "s", "es", "ies", "sses", "eed", "ed", "ing", "y", "e", "ate", "ational", "tional"),
    *(
        "ency",
        "ancy",
        "izer",
        "ably",
        "ally",
        "ently",
        "ously",
        "ization",
        "ation",
        "ator",
        "alism",
    ),
    *(
        "iveness",
        "fulness",
        "ousness",
        "ality",
        "ivity",
        "bility",
        "icate",
        "ative",
        "alize",
        "ical",
    ),
    *("ful", "ness", "ance", "ence", "er", "able", "ible", "ement", "ion", "ism", "ll", "logy"),
)


@given(
    st.text("abehijlosty", min_size=1, max_size=4), st.lists(st.sampled_from(ENDINGS), max_size=2)
)
def test_a_word_is_shown_whatever_porter_cuts_off_it(stem: str, endings: list[str]) -> None:
    word = stem + "".join(endings)
    assert term_spans(f"An {word}, {word.title()}.", terms(word)) == [
        (3, 3 + len(word)),
        (5 + len(word), 5 + 2 * len(word)),
    ]


@given(texts)
def test_no_span_is_found_for_terms_the_text_does_not_have(text: str) -> None:
    assert term_spans(text, {"zzzzunheardof"}) == []


def test_spans_mark_the_words_of_a_text_in_any_script() -> None:
    text = "Zoë's café: 長期記憶, getUserName 🙂 cafés"
    shown = [text[low:high] for low, high in term_spans(text, query_terms("café 記憶 user"))]
    assert shown == ["café", "記憶", "User", "cafés"]


def test_spreading_leaves_plain_text_as_it_is() -> None:
    assert spread("Plain words, in spaces.") == "Plain words, in spaces."


@given(texts)
def test_spread_text_gives_fts5_the_terms_of_the_index(text: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, row)")
    connection.execute("INSERT INTO t VALUES (?)", (spread(text),))
    stored = {row[0] for row in connection.execute("SELECT term FROM v")}
    assert stored - EMOJI == {term for term in terms(text) if "\0" not in term} - EMOJI


@pytest.mark.parametrize("unit", ["a", "A", "ab1", "aB", "長", "é", "a_", "1", "\0", "e\u0301"])
def test_the_time_to_find_terms_grows_with_the_text_and_no_faster(unit: str) -> None:
    def prepare(times: int) -> Callable[[], object]:
        text = unit * 2000 * times
        return lambda: (terms(text), query_terms(text), term_spans(text, ["zzz"]))

    assert grows_in_line(prepare, least_seconds=0.0005)


def test_stop_words_are_lower_case() -> None:
    assert all(word == word.casefold() for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("ERR_5521", True),
        (" getUser ", True),
        ("two words", False),
        ("", False),
        ("東京の天気", False),
    ],
)
def test_a_question_of_one_word_is_told_from_one_without_spaces(text: str, one: bool) -> None:
    assert is_one_word(text) is one
