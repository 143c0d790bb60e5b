"""The command that a client starts: one that is still there tomorrow."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from byheart.interfaces.setup.launching import Launch, Running, exists, find_launch


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.chdir(tmp_path)


def test_an_installed_program_is_named_by_its_place(tmp_path: Path) -> None:
    called = program(tmp_path / "venv/bin/byheart")
    running = Running(str(called), str(tmp_path / "venv/bin/python"), str(tmp_path / "venv"))
    assert find_launch(running) == Launch(str(called), ("mcp",))


def test_a_link_is_named_not_what_it_leads_to(tmp_path: Path) -> None:
    target = program(tmp_path / "share/uv/tools/byheart/bin/byheart")
    link = tmp_path / "local/byheart"
    link.parent.mkdir()
    link.symlink_to(target)
    running = Running(str(link), str(target.parent / "python"), str(target.parents[1]))
    assert find_launch(running).command == str(link)


def test_a_program_called_otherwise_is_found_beside_its_python(tmp_path: Path) -> None:
    called = program(tmp_path / "venv/bin/byheart")
    running = Running("-c", str(tmp_path / "venv/bin/python"), str(tmp_path / "venv"))
    assert find_launch(running).command == str(called)


def test_without_a_program_its_python_starts_it(tmp_path: Path) -> None:
    program(tmp_path / "path/byheart")  # another one: it need not have the same version
    running = Running("-c", str(tmp_path / "python"), str(tmp_path))
    assert find_launch(running) == Launch(str(tmp_path / "python"), ("-m", "byheart", "mcp"))


@pytest.mark.parametrize("folder", ["archive-v0/x1", "environments-v2/byheart-1", "builds-v0/.tmp"])
def test_what_uvx_runs_is_started_by_uvx_again(tmp_path: Path, folder: str) -> None:
    prefix = tmp_path / "cache/uv" / folder
    called = program(prefix / "bin/byheart")
    running = Running(str(called), str(prefix / "bin/python"), str(prefix))
    assert find_launch(running) == Launch("uvx", ("byheart", "mcp"))
    uvx = program(tmp_path / "path/uvx")
    assert find_launch(running) == Launch(str(uvx), ("byheart", "mcp"))
    assert find_launch(running, shared=True) == Launch("uvx", ("byheart", "mcp"))


def test_what_pipx_runs_is_started_by_pipx_again(tmp_path: Path) -> None:
    prefix = tmp_path / ".local/pipx/.cache/0a1b"
    called = program(prefix / "bin/byheart")
    running = Running(str(called), str(prefix / "bin/python"), str(prefix))
    assert find_launch(running) == Launch("pipx", ("run", "byheart", "mcp"))


def test_what_pipx_installed_is_named_by_its_place(tmp_path: Path) -> None:
    prefix = tmp_path / ".local/pipx/venvs/byheart"
    called = program(prefix / "bin/byheart")
    running = Running(str(called), str(prefix / "bin/python"), str(prefix))
    assert find_launch(running).command == str(called)


def test_a_shared_file_gets_the_bare_name_where_that_means_the_same(tmp_path: Path) -> None:
    called = program(tmp_path / "path/byheart")
    running = Running(str(called), str(tmp_path / "python"), str(tmp_path))
    assert find_launch(running, shared=True).command == "byheart"
    assert find_launch(running).command == str(called)
    other = program(tmp_path / "venv/bin/byheart")
    running = Running(str(other), str(tmp_path / "python"), str(tmp_path))
    assert find_launch(running, shared=True).command == str(other)


def test_store_and_space_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    called = program(tmp_path / "path/byheart")
    running = Running(str(called), sys.executable, str(tmp_path))

    def args(db: str) -> tuple[str, ...]:
        return find_launch(running, db, "my work").args

    assert args("a.db") == ("mcp", "--db", str(tmp_path / "a.db"), "--space", "my work")
    assert args("~/a.db")[2] == str(tmp_path / "home/a.db")
    assert args("/a.db")[2] == "/a.db"
    assert args("postgres://host/db")[2] == "postgres://host/db"


def test_a_command_exists_by_its_place_or_by_its_name(tmp_path: Path) -> None:
    called = program(tmp_path / "path/byheart")
    assert exists(str(called))
    assert exists("byheart")
    assert not exists("byheart2")
    assert not exists(str(tmp_path))
    called.chmod(0o644)
    if os.geteuid():
        assert not exists(str(called))
    called.unlink()
    assert not exists(str(called))
