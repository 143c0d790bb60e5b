"""`byheart completion`: what shells need, and what they are offered."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.conftest import Run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == 0
    assert f"_BYHEART_COMPLETE={shell}_complete" in ran.out


def test_the_bash_script_is_valid(run: Run) -> None:
    script = run("completion", "bash").out
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_an_unknown_shell_is_refused(run: Run) -> None:
    assert run("completion", "tcsh").code == 2


def test_a_missing_shell_is_asked_for_in_one_line(run: Run) -> None:
    told = run("completion")
    assert told.code == 2
    assert "Missing argument 'SHELL'. Choose from: bash, zsh, fish\n" in told.err


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "data/bash-completion/completions/byheart"),
        ("fish", "config/fish/completions/byheart.fish"),
        ("zsh", ".zfunc/_byheart"),
    ],
)
def test_install_writes_it_to_where_the_shell_looks(
    run: Run, home: Path, shell: str, place: str
) -> None:
    ran = run("completion", shell, "--install")
    assert ran.out.startswith(f"wrote {home / place}: ")
    assert (home / place).read_text() in run("completion", shell).out
    assert run("completion", shell, "--install", "--json").json["path"] == str(home / place)


def test_verbs_flags_and_values_are_completed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_BYHEART_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("byheart", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return [line.partition(",")[2] for line in run().out.splitlines()]

    assert complete("sea") == ["search"]
    assert set(complete("se")) >= {"search", "sessions", "serve"}
    assert "--session-id" in complete("search", "--se")
    assert complete("search", "--mode", "h") == ["hybrid"]
    assert complete("save", "--kind", "rep") == ["report", "report_observation"]
    assert complete("config", "get", "chunk") == ["chunk_tokens"]
