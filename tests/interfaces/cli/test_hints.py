"""Messages of the command line name commands, never calls of the library."""

from __future__ import annotations

from pathlib import Path

import pytest

import byheart
from byheart.embedding.hash_embedder import HashEmbedder
from tests.interfaces.cli.conftest import Ran, Run


class OwnEmbedder(HashEmbedder):
    """An embedder that only the program which opened the store has."""

    def __init__(self) -> None:
        super().__init__(32)
        self.name = "own"


@pytest.fixture
def foreign_store(home: Path) -> Path:
    """Make a store whose model the command line cannot open."""
    with byheart.open(home / "memory.db", embedder=OwnEmbedder()) as store:
        store.save("Anna drinks tea.")
    return home


def check(ran: Ran) -> None:
    assert "byheart reembed" in ran.out + ran.err
    assert "store." not in ran.out + ran.err


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "command",
    [
        ("search", "tea"),
        ("recall", "tea"),
        ("context", "chat-1", "tea"),
        ("save", "Ben drinks coffee."),
        ("index", "notes"),
        ("doctor",),
        ("doctor", "--fix"),
        ("status",),
    ],
    ids=" ".join,
)
def test_a_model_that_cannot_be_opened_is_explained_by_commands(
    run: Run, foreign_store: Path, command: tuple[str, ...], as_json: tuple[str, ...]
) -> None:
    (foreign_store / "notes").mkdir()
    (foreign_store / "notes" / "tea.md").write_text("Anna drinks green tea.", encoding="utf-8")
    if command == ("doctor", "--fix"):  # there must be vectors to make
        run("save", "Ben drinks coffee.")
    check(run(*command, *as_json))


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["search", "recall"])
def test_another_model_in_the_settings_is_explained_by_commands(
    run: Run,
    report: str,
    verb: str,
    as_json: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_MODEL", "hash-64")
    check(run(verb, "index dropped", *as_json))
