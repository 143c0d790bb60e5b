"""The fuzz target of the Python API, for a few seconds."""

from __future__ import annotations

from tests.fuzz import python


def test_only_errors_of_ours_come_out_of_any_verb_and_the_store_stays_sound() -> None:
    report = python.run(seconds=6, seed=1)
    assert report.tried > 100
    assert report.failures == []


def test_every_verb_is_called() -> None:
    assert {"save", "search", "context", "import_", "export", "doctor"} <= {*python.public_verbs()}
