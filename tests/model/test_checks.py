import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import InvalidInput
from byheart.model import checks as fields

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("given_as", [2, "2", "v2", "V2", " v2 "])
def test_session_iter_2_and_v2_are_all_the_number_2(given_as: object) -> None:
    assert fields.check_session_iter(given_as) == 2


@pytest.mark.parametrize("wrong", ["", "two", "v", "v-1", "2.5", -1, 2.0, True, 10**9, [2]])
def test_what_is_no_iteration_is_refused_with_examples(wrong: object) -> None:
    with pytest.raises(InvalidInput, match='such as 2, "2" or "v2"'):
        fields.check_session_iter(wrong)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-03-14", datetime(2026, 3, 14, tzinfo=UTC)),
        (date(2026, 3, 14), datetime(2026, 3, 14, tzinfo=UTC)),
        ("2026-03-14T09:30:00Z", NOW),
        ("2026-03-14T11:30:00+02:00", NOW),
        ("2026-03-14T09:30:00.123456Z", NOW + timedelta(microseconds=123456)),
        (datetime(2026, 3, 14, 9, 30), NOW),
        (datetime(2026, 3, 14, 4, 30, tzinfo=timezone(timedelta(hours=-5))), NOW),
    ],
)
def test_a_moment_is_read_as_utc_unless_it_says_otherwise(written: object, meant: datetime) -> None:
    assert fields.check_moment("at", written) == meant


@pytest.mark.parametrize(
    "wrong", ["yesterday", "2026-13-01", "", 1742000000, "0001-01-01T00:00+05:00"]
)
def test_a_bad_date_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="at "):
        fields.check_moment("at", wrong)


@pytest.mark.parametrize("days", [1, 0.5, 30, 365])
def test_ttl_days_is_exact(days: float) -> None:
    assert fields.check_expiry(days, None, NOW) == NOW + timedelta(days=days)


def test_no_ttl_and_no_moment_is_permanent() -> None:
    assert fields.check_expiry(None, None, NOW) is None


@pytest.mark.parametrize("kind", ["note", "working_memory", "my-kind", "v2", "a_b-c"])
def test_any_lower_case_slug_is_a_kind(kind: str) -> None:
    assert fields.check_kind(kind) == kind


@pytest.mark.parametrize("wrong", ["Note", "a b", "_x", "x_", "a__b", "9", "ü", "", "a\n", None])
def test_what_is_no_slug_is_no_kind(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="kind"):
        fields.check_kind(wrong)


@pytest.mark.parametrize("wrong", [11, -0.1, math.nan, math.inf, "5", True, None])
def test_a_number_out_of_bounds_is_refused_with_the_bounds(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="from 0 to 10"):
        fields.check_number("importance", wrong, 0, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"x": math.nan},
        {"x": math.inf},
        {"x": object()},
        {1: "x"},
        ["x"],
        "x",
        {"x": "\ud800"},
        {"x": b"bytes"},
        {"x": "y" * 1_000_001},
    ],
    ids=lambda value: repr(value)[:20],
)
def test_metadata_that_json_cannot_carry_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        fields.check_metadata(wrong)


def test_metadata_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    with pytest.raises(InvalidInput, match="metadata"):
        fields.check_metadata(loop)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values, max_size=5))
def test_metadata_that_json_can_carry_comes_through_unchanged(metadata: dict[str, Any]) -> None:
    assert fields.check_metadata(metadata) == metadata


def test_labels_keep_their_order_and_lose_their_doubles() -> None:
    assert fields.check_labels("tags", ["b", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize(
    "wrong", ["one", 5, [""], [" "], ["a\nb"], ["x" * 201], [None], map(str, range(101))]
)
def test_bad_labels_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="tags"):
        fields.check_labels("tags", wrong)


def test_an_unknown_field_is_refused_with_the_nearest_that_exists() -> None:
    with pytest.raises(InvalidInput, match="did you mean session_id"):
        fields.check_names(["sesion_id"], ("session_id", "kind"), "field")


def test_an_unknown_choice_is_refused_with_all_that_are_allowed() -> None:
    with pytest.raises(InvalidInput, match=r"did you mean hybrid.*allowed: hybrid, vector, fts"):
        fields.check_choice("mode", "hybird", ("hybrid", "vector", "fts"))


class _Unshowable:
    def __repr__(self) -> str:
        raise ValueError("even its name is refused")


@pytest.mark.parametrize("value", [_Unshowable(), [_Unshowable()], "x" * 100_000])
def test_an_error_names_any_value_in_few_words(value: object) -> None:
    for check in (fields.check_bool, fields.check_callback):
        with pytest.raises(InvalidInput) as refused:
            check("flag", value)
        assert len(refused.value.message) < 500


@pytest.mark.parametrize(
    "refused",
    [
        lambda: fields.check_memory_id("memory_id", "mem_a@2"),
        lambda: fields.check_labels("tags", [str(n) for n in range(fields.MOST_LABELS + 1)]),
        lambda: fields.check_query(7),
        lambda: fields.check_query("x" * (fields.LONGEST_QUERY + 1)),
    ],
    ids=["id of a text", "too many labels", "no text", "too long a query"],
)
def test_a_refused_value_comes_with_a_hint(refused: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        refused()
    assert caught.value.hint
