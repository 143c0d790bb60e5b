"""How entities are named and merged, tried on values alone."""

from __future__ import annotations

import pytest

from byheart.contracts import EntityRow
from byheart.errors import Conflict
from byheart.memory import entities
from byheart.model.spellings import choose_spelling

ANT, BEE = EntityRow(1, "Ant", ("Formica",)), EntityRow(2, "Bee")


def test_the_longer_spelling_of_a_name_is_kept() -> None:
    assert choose_spelling("Straße", "STRASSE") == "STRASSE"
    assert choose_spelling("STRASSE", "Straße") == "STRASSE"


def test_of_two_spellings_of_one_length_the_known_one_is_kept() -> None:
    assert choose_spelling("Ant", "ANT") == "Ant"


def test_the_old_name_of_a_renamed_entity_becomes_an_alias() -> None:
    assert entities.rename(ANT, None, "Emmet", "ant") == EntityRow(1, "Emmet", ("Formica", "Ant"))


def test_an_alias_that_becomes_the_name_is_no_alias_any_more() -> None:
    assert entities.rename(ANT, ANT, "FORMICA", "ant") == EntityRow(1, "FORMICA", ("Ant",))


def test_another_spelling_of_the_name_itself_is_no_alias() -> None:
    assert entities.rename(ANT, ANT, "ANT", "ant") == EntityRow(1, "ANT", ("Formica",))


def test_the_name_of_another_entity_is_refused() -> None:
    with pytest.raises(Conflict) as refused:
        entities.rename(ANT, BEE, "Bee", "my ant")
    assert refused.value.hint == 'make one of the two: store.entities.merge("my ant", into="Bee")'


def test_the_spellings_of_merged_entities_become_aliases_of_the_target() -> None:
    merged, absorbed = entities.merge([ANT], BEE, "bee")
    assert merged == EntityRow(2, "Bee", ("Formica", "Ant"))
    assert absorbed == [1]


def test_a_target_that_is_one_of_the_sources_takes_the_spelling_asked_for() -> None:
    merged, absorbed = entities.merge([ANT, BEE], ANT, "FORMICA")
    assert merged == EntityRow(1, "FORMICA", ("Ant", "Bee"))
    assert absorbed == [2]


def test_the_first_entity_takes_a_name_that_no_entity_has() -> None:
    merged, absorbed = entities.merge([BEE, ANT, ANT], None, "Insect")
    assert merged == EntityRow(2, "Insect", ("Bee", "Formica", "Ant"))
    assert absorbed == [1]
