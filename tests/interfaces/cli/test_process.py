"""The program among other programs: pipes, locales, start-up."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import byheart
from tests.interfaces.cli.conftest import PROGRAM, Run


def test_the_installed_command_runs(home: Path) -> None:
    script = Path(sys.executable).with_name("byheart")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("byheart ")


def test_exit_codes_reach_the_shell(executed: Run) -> None:
    assert executed("get", "mem_unknown").code == 1
    assert executed("nonsense").code == 2


def test_a_reader_that_has_read_enough_is_no_error(
    home: Path, library: byheart.MemoryStore
) -> None:
    library.save_many({"content": f"a memory with number {number} " * 5} for number in range(1000))
    for verb in ("list --limit 1000", "list --limit 1000 --json", "search memory -n 1000"):
        command = f"set -o pipefail; {shlex.join(PROGRAM)} {verb} | head -c 10"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), verb


def test_get_into_a_closed_pipe_is_silent(home: Path, library: byheart.MemoryStore) -> None:
    saved = library.save("many words " * 100_000)
    command = f"set -o pipefail; {shlex.join(PROGRAM)} get {saved.memory_id} | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "many words", "")


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_text_is_utf_8_whatever_the_locale(executed: Run, locale: dict[str, str]) -> None:
    text = "Grüße aus 東京 🗼"
    saved = executed("save", text, **locale)
    assert saved.code == 0
    assert text in executed("search", "東京", "--json", **locale).out
    assert "東京" in executed("get", "東京", **locale).err


def test_stdin_is_read_as_utf_8_whatever_the_locale(
    executed: Run, library: byheart.MemoryStore
) -> None:
    saved = executed("save", stdin="Grüße".encode(), LC_ALL="C", PYTHONUTF8="0")
    assert library.get(saved.out.strip()).content == "Grüße"


def test_json_is_one_document_and_nothing_else(run: Run, report: str) -> None:
    for arguments in (
        ("save", "text", "--json"),
        ("search", "index", "--json"),
        ("get", report, "--json"),
        ("expand", f"{report}#0", "--json"),
        ("list", "--json"),
        ("sessions", "--json"),
        ("status", "--json"),
        ("doctor", "--json"),
        ("config", "list", "--json"),
    ):
        ran = run(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert ran.json is not None
        assert ran.out.count("\n") == 1


def test_nothing_is_written_into_the_working_folder(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work").mkdir()
    monkeypatch.chdir(home / "work")
    run("save", "text")
    run("search", "text")
    assert list((home / "work").iterdir()) == []
