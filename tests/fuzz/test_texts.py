"""The fuzz target of texts, for a few seconds."""

from __future__ import annotations

from tests.fuzz import texts


def test_hostile_texts_become_exact_and_sensible_chunks() -> None:
    report = texts.run(seconds=8, seed=1)
    assert report.tried > 0
    assert report.failures == []
