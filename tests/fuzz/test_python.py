"""The fuzz target of the Python API, for a few seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import python


def test_only_errors_of_ours_come_out_of_any_verb_and_the_store_stays_sound() -> None:
    report = python.run(seconds=6, seed=1)
    assert report.tried > 100
    assert report.failures == []


def test_nothing_is_written_outside_of_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    python.run(seconds=4, seed=2)
    assert sorted(tmp_path.rglob("*")) == [here, home]
    assert Path.cwd() == here


def test_every_verb_is_called() -> None:
    assert {"save", "search", "context", "import_", "export", "admin.doctor"} <= {
        *python.public_verbs()
    }
