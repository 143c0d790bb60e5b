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
    assert rows["chunk_tokens"].split(maxsplit=2)[1:] == ["file", "300"]
    assert rows["embedding_provider"].split()[:2] == ["embedding_provider", "environment"]
    assert rows["space"].split() == ["space", "flag", "x"]
    assert rows["enabled"].split() == ["enabled", "default", "true"]


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


def test_a_key_like_no_other_is_refused_alike_by_get_and_set(run: Run) -> None:
    for arguments in (("get", "nope"), ("set", "nope", "1")):
        ran = run("config", *arguments)
        assert ran.code == 2
        assert "there is no setting 'nope'" in ran.err
        assert "hint: see every setting with: byheart config list" in ran.err


def test_a_setting_that_another_speaks_against_is_refused_and_not_written(
    run: Run, home: Path
) -> None:
    run("config", "set", "chunk_tokens", "50")
    before = (home / "config.toml").read_text()
    ran = run("config", "set", "overlap_tokens", "60")
    assert (ran.code, ran.out) == (2, "")
    assert "overlap_tokens is 60, not less than chunk_tokens, which is 50" in ran.err
    assert "the file was left as it is" in ran.err
    assert (home / "config.toml").read_text() == before
    assert run("config", "list").code == 0


def test_a_setting_that_a_variable_speaks_against_is_refused_and_not_written(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_CHUNK_TOKENS", "50")
    assert run("config", "set", "overlap_tokens", "60").code == 2
    assert not (home / "config.toml").exists()
    monkeypatch.setenv("BYHEART_CHUNK_TOKENS", "1000")
    assert run("config", "set", "overlap_tokens", "400").code == 2  # no other shell could begin
    assert not (home / "config.toml").exists()


def test_a_setting_that_another_needs_is_not_removed(run: Run, home: Path) -> None:
    text = "[memory]\nchunk_tokens = 1000\noverlap_tokens = 400\n"
    (home / "config.toml").write_text(text)
    ran = run("config", "unset", "chunk_tokens")
    assert ran.code == 2
    assert "overlap_tokens is 400, not less than chunk_tokens, which is 400" in ran.err
    assert (home / "config.toml").read_text() == text


def test_the_hint_on_an_unknown_key_in_the_file_mends_it(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[memory]\nspce = "x"\n"a b" = 1\n')
    for key, hint in {
        "spce": "did you mean space? take it out with: byheart config unset spce",
        "a b": "hint: take it out with: byheart config unset 'a b'",
    }.items():
        ran = run("config", "list")
        assert ran.code == 2
        assert hint in ran.err
        assert run("config", "unset", key).code == 0
    assert run("config", "list").code == 0
    (home / "config.toml").write_text("[server]\nport = 1\n")
    assert "take the table server out of the file" in run("config", "list").err


def test_a_name_that_cannot_be_is_said_to_be_none(run: Run) -> None:
    err = run("config", "set", "allowed_origins", "example.com").err
    assert "'example.com' is not an origin such as https://example.com" in err
    assert "'a b' is not a host name" in run("config", "set", "allowed_hosts", "a b").err


def test_path_is_where_the_file_is(run: Run, home: Path) -> None:
    assert run("config", "path").out == f"{home / 'config.toml'}\n"
    assert run("config", "path", "--json").json == {"path": str(home / "config.toml")}


def test_a_broken_file_is_named(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("chunk_tokens = ")
    ran = run("status")
    assert ran.code == 2
    assert "config.toml is not valid TOML" in ran.err
