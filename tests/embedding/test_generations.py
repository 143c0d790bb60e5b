"""The rules about the models of a store, tried on values alone."""

from __future__ import annotations

import pytest

from byheart.contracts import EmbedderSpec, KnownModel, Model, Models
from byheart.embedding import generations
from byheart.errors import Conflict

OLD, NEW = Model("old", 3), Model("new", 2)
SPEC = EmbedderSpec("hash", "hash-3")
USES_OLD = Models((KnownModel(*OLD),), active="old")
KNOWS_BOTH = Models((KnownModel(*OLD), KnownModel(*NEW)), active="old")


def test_a_store_uses_the_first_model_that_brings_vectors() -> None:
    assert generations.adopt(Models(), OLD) == USES_OLD


def test_a_store_that_uses_a_model_does_not_even_note_another_one() -> None:
    assert generations.adopt(USES_OLD, NEW) == USES_OLD
    assert generations.adopt(USES_OLD, Model("old", 4)).in_use() == OLD


def test_a_model_that_was_named_before_it_was_known_is_noted_when_it_comes() -> None:
    named = Models(active="old")
    assert named.in_use() is None
    assert generations.adopt(named, OLD) == USES_OLD
    assert generations.adopt(named, NEW) == named


def test_how_an_embedder_is_opened_again_is_kept_until_another_way_is_noted() -> None:
    noted = generations.note(Models(), OLD, SPEC)
    assert noted.spec_of(OLD) == SPEC
    assert generations.note(noted, OLD, None) == noted
    other = EmbedderSpec("hash", "other")
    assert generations.note(noted, OLD, other).spec_of(OLD) == other
    assert generations.note(noted, Model("old", 9), other) == noted


def test_the_next_model_is_recorded_unless_it_is_in_use_already() -> None:
    begun = generations.begin(USES_OLD, NEW, has_vectors=False)
    assert begun == Models(KNOWS_BOTH.known, active="old", next="new")
    assert generations.begin(begun, OLD, has_vectors=True).next is None


def test_other_dimensions_under_one_name_are_refused_while_there_are_vectors() -> None:
    wider = Model("new", 5)
    with pytest.raises(Conflict, match="of 2 dimensions under the name new"):
        generations.begin(KNOWS_BOTH, wider, has_vectors=True)
    begun = generations.begin(KNOWS_BOTH, wider, has_vectors=False)
    assert begun.find("new") == wider
    assert begun.next == "new"


@pytest.mark.parametrize(
    ("lacking", "most", "may"), [(0, 0, True), (1, 0, False), (3, 3, True), (9, None, True)]
)
def test_a_switch_is_refused_while_too_many_chunks_lack_vectors(
    lacking: int, most: int | None, may: bool
) -> None:
    assert generations.may_switch(lacking, most) is may


def test_a_switch_remembers_the_model_before_and_ends_the_wait_for_the_next() -> None:
    begun = generations.begin(USES_OLD, NEW, has_vectors=False)
    switched = generations.switch(begun, NEW)
    assert (switched.in_use(), switched.previous, switched.next) == (NEW, "old", None)
    assert generations.switch(switched, NEW) == switched
    back = generations.switch(switched, OLD)
    assert (back.in_use(), back.previous) == (OLD, "new")


def test_vectors_of_the_next_model_are_unused_only_if_it_is_given_up() -> None:
    known = (*KNOWS_BOTH.known, KnownModel("older", 3))
    models = Models(known, active="old", next="new", previous="older")
    assert generations.unused(models, next_too=False) == {"older"}
    assert generations.unused(models, next_too=True) == {"older", "new"}
    assert generations.drop_unused(models, next_too=False).next == "new"
    given_up = generations.drop_unused(models, next_too=True)
    assert (given_up.active, given_up.next, given_up.previous) == ("old", None, None)
