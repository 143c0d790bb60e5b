"""`byheart model`: the model's files."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from tests.interfaces.cli.conftest import Run

# Asked for before any test moves the home folder.
CACHE = str(platformdirs.user_cache_path("byheart", appauthor=False))


def test_status_fails_while_the_model_is_missing(run: Run) -> None:
    ran = run("model", "status")
    assert ran.code == 1
    assert ran.out.startswith("✗  sentence-transformers/all-MiniLM-L6-v2  ")
    assert "byheart model download" in ran.out
    answer = run("model", "status", "--json")
    assert (answer.code, answer.json["ready"], answer.json["folder"]) == (1, False, None)


def test_path_is_the_folder_for_models(run: Run, home: Path) -> None:
    assert run("model", "path").out == f"{home / 'cache' / 'byheart' / 'models'}\n"
    assert run("model", "path", "--json").json["path"].startswith(str(home))


def test_a_provider_that_keeps_its_own_models_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "ollama")
    for verb in ("status", "download", "path"):
        ran = run("model", verb)
        assert ran.code == 2
        assert "ollama, which keeps its own models" in ran.err


def test_a_download_without_any_source_fails_with_the_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_MODEL_PATH", "/no/such/folder")
    ran = run("model", "download")
    assert ran.code == 1
    assert "/no/such/folder" in ran.err


@pytest.mark.parametrize("run_in", ["run", "terminal"])
def test_without_the_model_a_save_says_that_it_looks_for_it_and_goes_on(
    home: Path, request: pytest.FixtureRequest, run_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "onnx")
    monkeypatch.setenv("BYHEART_MODEL_PATH", "/no/such/folder")
    ran = request.getfixturevalue(run_in)("save", "text")
    assert ran.code == 0
    assert "getting the embedding model: this happens once" in ran.out + ran.err
    assert "could not be embedded" in ran.out + ran.err


@pytest.mark.model
def test_a_model_that_is_there_is_not_downloaded_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_CACHE_DIR", CACHE)
    run("model", "download")
    ran = run("model", "download")
    assert ran.code == 0
    assert ran.err == "it is there already\n"
    assert ran.out.startswith("✓  sentence-transformers/all-MiniLM-L6-v2  ready\n")
    status = run("model", "status", "--verify", "--json")
    assert (status.code, status.json["ready"], status.json["dimensions"]) == (0, True, 384)
    assert run("model", "path").out.strip() == status.json["folder"]


@pytest.mark.model
def test_with_the_model_a_question_finds_an_answer_without_a_shared_word(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_CACHE_DIR", CACHE)
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "onnx")
    run("save", "Anna has a dog called Biscuit.")
    run("save", "Our invoices are due thirty days after delivery.")
    answer = run("search", "what is the name of her pet?", "--json").json
    assert answer["results"][0]["chunk_content"] == "Anna has a dog called Biscuit."
    assert answer["degraded"] is None


@pytest.mark.model
def test_a_model_is_packed_and_installed_without_a_network(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.zip"
    monkeypatch.setenv("BYHEART_CACHE_DIR", CACHE)
    packed = run("model", "pack", str(path), "--json").json
    refused = run("model", "pack", str(path))
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    monkeypatch.setenv("BYHEART_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("BYHEART_OFFLINE", "true")
    wrong = run("model", "install", str(path), "--sha256", "00")
    assert (wrong.code, "has the SHA-256" in wrong.err) == (1, True)
    installed = run("model", "install", str(path), "--sha256", packed["sha256"])
    assert installed.out.startswith("✓  sentence-transformers/all-MiniLM-L6-v2  ready")
    assert run("model", "status", "--verify").code == 0
