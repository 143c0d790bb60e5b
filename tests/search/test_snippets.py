import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.language.terms import query_terms, terms
from byheart.search.snippets import Snippet, make_snippet

FILLER = "Lorem ipsum dolor sit amet consectetur. " * 60
MIDDLE = FILLER + "Here the needle lies hidden. " + FILLER


def plain(snippet: Snippet) -> str:
    return snippet.text.strip("…")


def marked(snippet: Snippet) -> list[str]:
    return [snippet.text[start:end] for start, end in snippet.marks]


def test_a_short_text_is_shown_whole_with_its_matches_marked() -> None:
    snippet = make_snippet("A needle, two needles.", ["needl"], 500)
    assert snippet == ("A needle, two needles.", ((2, 8), (14, 21)))
    assert make_snippet("\n\n  A needle", ["needl"], 500) == ("A needle", ((2, 8),))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("set STRIPE_SECRET_KEY here", ["STRIPE_SECRET_KEY"]),
        ("the stripe-secret.key file", ["stripe-secret.key"]),
        ("a secret, a key", ["secret", "key"]),
    ],
)
def test_the_parts_of_one_word_are_one_mark(text: str, shown: list[str]) -> None:
    assert marked(make_snippet(text, query_terms("STRIPE_SECRET_KEY"), 500)) == shown


def test_a_snippet_centres_on_the_match() -> None:
    snippet = make_snippet(MIDDLE, ["needl"], 200)
    assert marked(snippet) == ["needle"]
    assert 60 < snippet.marks[0][0] < 140
    assert snippet.text.startswith("…")
    assert snippet.text.endswith("…")


def test_a_match_at_the_very_start_or_end_is_shown() -> None:
    first = make_snippet("needle " + FILLER, ["needl"], 100)
    assert first.text.startswith("needle Lorem")
    last = make_snippet(FILLER + "needle", ["needl"], 100)
    assert last.text.endswith("needle")
    assert marked(first) == marked(last) == ["needle"]


def test_the_stretch_with_most_matches_is_chosen() -> None:
    text = "needle " + FILLER + "needle and thread and needle " + FILLER
    snippet = make_snippet(text, ["needl", "thread"], 120)
    assert "needle and thread and needle" in snippet.text
    assert marked(snippet) == ["needle", "thread", "needle"]


def test_without_a_match_what_is_nearest_is_shown() -> None:
    snippet = make_snippet(MIDDLE, ["nothing"], 200, lambda: 0.5)
    assert snippet.text.startswith("…")
    assert snippet.text.endswith("…")
    assert "needle" in snippet.text
    last = make_snippet(MIDDLE, ["nothing"], 200, lambda: 1.0)
    assert MIDDLE.strip().endswith(plain(last))


def test_without_a_match_the_start_is_shown() -> None:
    snippet = make_snippet(FILLER, ["nothing"], 100)
    assert snippet.text.startswith("Lorem ipsum")
    assert snippet.marks == ()
    assert len(snippet.text) <= 101


@pytest.mark.parametrize("length", [40, 200, 500, 5000])
def test_a_snippet_is_no_longer_than_asked_for(length: int) -> None:
    assert len(plain(make_snippet(MIDDLE, ["needl"], length))) <= length


def test_cuts_fall_between_words() -> None:
    body = plain(make_snippet(MIDDLE, ["needl"], 200)).split()
    assert set(body) <= set(MIDDLE.split())


words = st.lists(
    st.sampled_from(
        ["needle", "hay", "café", "長期記憶", "getUserName", "🙂", "\n\n", "x" * 90, "…"]
    ),
    max_size=120,
).map(" ".join)


@given(words, st.sampled_from(["needle", "café", "記憶", "user", "missing"]), st.integers(40, 300))
def test_a_snippet_is_a_marked_slice_of_the_text(text: str, query: str, length: int) -> None:
    wanted = query_terms(query)
    snippet = make_snippet(text, wanted, length)
    body = snippet.text
    assert len(body) <= length + 2
    inner = body.removeprefix("…").removesuffix("…").strip("…").strip()
    assert inner in text
    assert all(set(wanted) & set(terms(word)) for word in marked(snippet))
    if set(wanted) & set(terms(text)):
        assert snippet.marks
