"""A prompt is kept in a file until it is stored."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import byheart
from byheart.interfaces.hooks import spool
from byheart.settings import Settings, load_settings

# No process has this number.
GONE = 2**22 + 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(spool, "spool_folder", lambda: tmp_path / "spool")
    return tmp_path / "spool"


@pytest.fixture
def settings(path: Path) -> Settings:
    return load_settings({"db_path": str(path), "embedding_provider": "hash"})


def spooled(settings: Settings, text: str, session_id: str = "s1") -> Path:
    """Spool a prompt as a hook does that was killed afterwards."""
    path = spool.keep_prompt(settings, session_id, text, "shop")
    assert path is not None
    written, _, _ = path.stem.partition("-")
    return path.rename(path.with_name(f"{written}-{GONE}.json"))


def prompts(store: byheart.MemoryStore) -> list[str]:
    return [each.content for each in store.sessions.transcript("s1").turns]


def test_a_prompt_whose_hook_was_killed_is_stored_by_the_next_once(
    store: byheart.MemoryStore, settings: Settings, folder: Path
) -> None:
    path = spooled(settings, "where is the key?")
    text = path.read_text()
    spool.store_waiting(store, settings)
    assert prompts(store) == ["where is the key?"]
    assert not list(folder.iterdir())
    path.write_text(text)  # as if the process had ended before it removed the file
    spool.store_waiting(store, settings)
    assert prompts(store) == ["where is the key?"]


def test_a_stored_prompt_has_the_time_at_which_it_was_said(
    store: byheart.MemoryStore, settings: Settings, folder: Path
) -> None:
    path = spooled(settings, "an old question")
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "at": "2030-01-02T03:04:05+00:00"}))
    spool.store_waiting(store, settings)
    [turn] = store.sessions.transcript("s1").turns
    assert turn.created_at.isoformat() == "2030-01-02T03:04:05+00:00"


def test_only_the_owner_can_read_it(settings: Settings, folder: Path) -> None:
    path = spooled(settings, "private")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_prompts_of_running_hooks_and_of_other_stores_are_left_alone(
    store: byheart.MemoryStore, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(load_settings({"db_path": "/elsewhere.db"}), "of another store")
    spooled(load_settings({"db_path": settings.db_path, "space": "other"}), "of another space")
    assert spool.keep_prompt(settings, "s1", "still at work", None)
    monkeypatch.setattr(spool.os, "getpid", lambda: 1)
    spool.store_waiting(store, settings)
    assert prompts(store) == []
    assert len(list(folder.iterdir())) == 3


def test_a_file_that_cannot_be_read_stops_nothing(
    store: byheart.MemoryStore, settings: Settings, folder: Path
) -> None:
    path = spooled(settings, "broken")
    path.write_text("{")
    spooled(settings, "whole")
    spool.store_waiting(store, settings)
    assert prompts(store) == ["whole"]
