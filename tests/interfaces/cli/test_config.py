"""`byheart config`: settings, where they come from, and changing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.settings import describe_settings, setting_keys
from tests.interfaces.cli.conftest import Run


def test_list_shows_every_setting_with_its_source(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("[memory]\nchunk_tokens = 300\n")
    rows = {
        line.split()[0]: line for line in run("--space", "x", "config", "list").out.splitlines()
    }
    assert set(rows) == {"KEY", *setting_keys()}
    assert rows["chunk_tokens"].split(maxsplit=2)[1:] == ["300", f"file {home / 'config.toml'}"]
    assert rows["embedding_provider"].endswith("environment BYHEART_EMBEDDING_PROVIDER")
    assert rows["space"].split() == ["space", "x", "flag"]
    assert rows["enabled"].split() == ["enabled", "true", "default"]


def test_list_as_json_has_the_same_rows(run: Run) -> None:
    rows = run("config", "list", "--json").json
    assert [(row["key"], row["source"]) for row in rows] == [
        (row.key, row.source) for row in describe_settings()
    ]


def test_list_hides_secrets_and_warns_of_unknown_variables(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345")
    monkeypatch.setenv("BYHEART_CHUNK_TOKNS", "1")
    ran = run("config", "list")
    assert "sk-12345" not in ran.out
    assert "BYHEART_CHUNK_TOKNS is no setting: did you mean BYHEART_CHUNK_TOKENS?" in ran.err


def test_a_setting_is_set_read_and_removed(run: Run, home: Path) -> None:
    assert run("config", "get", "chunk_tokens").out == "400\n"
    assert (
        run("config", "set", "chunk_tokens", "300").out
        == f"chunk_tokens is set in {home / 'config.toml'}\n"
    )
    assert run("config", "get", "chunk_tokens").out == "300\n"
    assert run("config", "get", "chunk_tokens", "--json").json["source"].startswith("file ")
    assert "is removed from" in run("config", "unset", "chunk_tokens").out
    assert "was not set in" in run("config", "unset", "chunk_tokens").out
    assert run("config", "unset", "chunk_tokens", "--json").json == {
        "key": "chunk_tokens",
        "removed": False,
    }
    assert run("config", "get", "chunk_tokens").out == "400\n"


def test_setting_what_the_environment_overrides_warns(run: Run) -> None:
    ran = run("config", "set", "embedding_provider", "none")
    assert ran.code == 0
    assert "environment BYHEART_EMBEDDING_PROVIDER wins" in ran.err
    assert run("config", "set", "chunk_tokens", "200", "--json").json["value"] == 200


def test_a_misspelt_key_is_met_with_the_nearest(run: Run) -> None:
    for arguments in (
        ("get", "chunk_tokns"),
        ("set", "chunk_tokns", "1"),
        ("unset", "chunk_tokns"),
    ):
        ran = run("config", *arguments)
        assert ran.code == 2
        assert "did you mean chunk_tokens?" in ran.err


def test_path_is_where_the_file_is(run: Run, home: Path) -> None:
    assert run("config", "path").out == f"{home / 'config.toml'}\n"
    assert run("config", "path", "--json").json == {"path": str(home / "config.toml")}


def test_a_broken_file_is_named(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("chunk_tokens = ")
    ran = run("status")
    assert ran.code == 2
    assert "config.toml is not valid TOML" in ran.err
