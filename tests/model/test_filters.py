"""Filters from what callers say."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from byheart.errors import InvalidInput
from byheart.model import Filter
from byheart.model.filters import FILTER_FIELDS, make_filter


def test_nothing_given_restricts_nothing() -> None:
    assert make_filter({}, "home") == Filter(space="home")


def test_a_space_of_its_own_wins_over_the_default() -> None:
    assert make_filter({"space": "away"}, "home").space == "away"
    assert make_filter({"space": None}, "home").space == "home"


@pytest.mark.parametrize(
    ("given", "hint"),
    [({"tag": ["a"]}, "tags"), ({"sesion_id": "s"}, "session_id"), ({"zzz": 1}, "allowed: kind")],
)
def test_an_unknown_field_is_refused_with_the_nearest(given: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidInput, match="unknown filter") as refusal:
        make_filter(given, "home")
    assert hint in refusal.value.hint


def test_every_field_of_a_filter_can_be_given_but_those_of_the_inside() -> None:
    assert {each.name for each in fields(Filter)} - set(FILTER_FIELDS) <= {
        "superseded",
        "forgotten",
    }
