"""Filters from what callers say."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

from byheart.errors import InvalidInput
from byheart.model import Filter
from byheart.model.filters import FILTER_FIELDS, filter_fields, make_filter
from byheart.store import MemoryStore


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


def test_search_and_list_have_every_field_as_a_parameter_with_its_default() -> None:
    for verb in (MemoryStore.search, MemoryStore.list):
        parameters = inspect.signature(verb).parameters
        defaults = {name: parameters[name].default for name in FILTER_FIELDS}
        assert make_filter(defaults, "home") == Filter(space="home")


def test_the_fields_of_a_filter_are_picked_out_of_all_that_was_given() -> None:
    assert filter_fields({"kind": "fact", "limit": 3, "space": None}) == {
        "kind": "fact",
        "space": None,
    }
