import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.language.terms import query_terms, terms
from byheart.search.snippets import make_snippet

FILLER = "Lorem ipsum dolor sit amet consectetur. " * 60
MIDDLE = FILLER + "Here the needle lies hidden. " + FILLER


def plain(snippet: str) -> str:
    return snippet.replace("**", "").strip("…")


def test_a_short_text_is_shown_whole_with_its_matches_marked() -> None:
    assert (
        make_snippet("A needle, two needles.", ["needl"], 500) == "A **needle**, two **needles**."
    )


def test_a_snippet_centres_on_the_match() -> None:
    snippet = make_snippet(MIDDLE, ["needl"], 200)
    at = snippet.index("**needle**")
    assert 60 < at < 140
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_a_match_at_the_very_start_or_end_is_shown() -> None:
    assert make_snippet("needle " + FILLER, ["needl"], 100).startswith("**needle** Lorem")
    assert make_snippet(FILLER + "needle", ["needl"], 100).endswith("**needle**")


def test_the_stretch_with_most_matches_is_chosen() -> None:
    text = "needle " + FILLER + "needle and thread and needle " + FILLER
    assert "**needle** and **thread** and **needle**" in make_snippet(
        text, ["needl", "thread"], 120
    )


def test_without_a_match_what_is_nearest_is_shown() -> None:
    snippet = make_snippet(MIDDLE, ["nothing"], 200, lambda: 0.5)
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert "needle" in snippet
    last = make_snippet(MIDDLE, ["nothing"], 200, lambda: 1.0)
    assert MIDDLE.strip().endswith(plain(last))


def test_without_a_match_the_start_is_shown() -> None:
    snippet = make_snippet(FILLER, ["nothing"], 100)
    assert snippet.startswith("Lorem ipsum")
    assert "**" not in snippet
    assert len(snippet) <= 101


@pytest.mark.parametrize("length", [40, 200, 500, 5000])
def test_a_snippet_is_no_longer_than_asked_for_besides_its_marks(length: int) -> None:
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
    body = snippet.replace("**", "")
    assert len(body) <= length + 2
    inner = body.removeprefix("…").removesuffix("…").strip("…").strip()
    assert inner in text
    assert snippet.count("**") % 2 == 0
    if set(wanted) & set(terms(text)):
        assert "**" in snippet
