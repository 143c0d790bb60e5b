"""`byheart reembed`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import byheart
from byheart.embedding import stored_vectors
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import Run
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
def other_model(report: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the settings name another model than the one of the saved report."""
    monkeypatch.setenv("BYHEART_EMBEDDING_MODEL", "hash-64")
    return "hash-64"


def test_reembed_switches_and_says_what_became_of_the_old_vectors(
    run: Run, other_model: str
) -> None:
    before = run("search", "index dropped")
    assert "byheart reembed" in before.err
    assert "warning" not in before.err
    assert "4 of model hash-384 (the settings name hash-64)" in run("status").out
    ran = run("reembed")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "embedded 4 texts of 4 chunks",
        "the store is searched by hash-64",
        "4 vectors of other models are kept: drop them with: byheart doctor --optimize",
    ]
    assert "4 of model hash-64" in run("status").out
    assert run("search", "index dropped").err == ""
    assert run("doctor").code == 0


def test_reembed_as_json_is_what_the_library_answers(run: Run, other_model: str) -> None:
    answer = run("reembed", "--json").json
    assert (answer["model_from"], answer["model_to"]) == ("hash-384", "hash-64")
    assert (answer["switched"], answer["made"], answer["old_vectors"]) == (True, 4, 4)
    back = run("reembed", "--rollback", "--discard-old", "--json").json
    assert (back["model_to"], back["made"], back["old_vectors"]) == ("hash-384", 0, 0)


def test_reembed_without_need_says_so(run: Run, report: str) -> None:
    assert run("reembed").out == "the store is searched by hash-384 already\n"


def test_there_is_no_way_back_before_the_first_switch(run: Run, report: str) -> None:
    ran = run("reembed", "--rollback")
    assert ran.code == 1
    assert ran.err.startswith("error: there is no earlier model to go back to")
    assert "hint: " in ran.err


def test_reembed_says_what_the_embedder_lacks(
    run: Run, report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_MODEL", "hash-none")
    ran = run("reembed")
    assert ran.code == 1
    assert "the hash embedder has no model 'hash-none'" in ran.err


def test_reembed_shows_a_bar_with_rate_and_time_left_on_a_terminal(
    terminal: Run, home: Path
) -> None:
    with byheart.open() as store:
        store.save_many({"content": f"Note {n} on nothing much."} for n in range(400))
    shown = terminal("reembed", BYHEART_EMBEDDING_MODEL="hash-64")
    assert shown.code == 0
    assert "embedding" in shown.out
    assert "the store is searched by hash-64" in shown.out


def test_an_interrupted_reembed_says_how_to_go_on(home: Path) -> None:
    with byheart.open() as store:
        store.save_many({"content": f"Note {n}: " + "many words " * 60} for n in range(700))
    environment = {**os.environ, "BYHEART_EMBEDDING_MODEL": "hash-64"}
    running = start_program("reembed", stderr=subprocess.PIPE, env=environment)
    while not _vectors_beside():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 130
    assert "of 700 chunks done; the store is searched as before" in err.decode()
    assert "byheart reembed goes on from here" in err.decode()
    with byheart.open(embedding_model="hash-64") as store:
        assert store.search("note", mode="vector").index.model == "hash-384"
        assert store.admin.reembed().made < 700
        assert all(finding.ok for finding in store.admin.doctor())


def _vectors_beside() -> int:
    with byheart.open(embedding_provider="none") as store:
        return stored_vectors.count_unused(store._storage)  # type: ignore[attr-defined]
