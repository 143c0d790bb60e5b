"""`index` and `watch` on the command line, and files among hits."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

import byheart
from byheart.workspace import transactions
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import Run
from tests.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture
def notes(home: Path) -> Path:
    folder = home / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "first.md").write_text("# Lighthouse\n\nThe keeper drinks cocoa.\n")
    (folder / "deep/second.md").write_text("# Harbour\n\nIt opens at six.\n")
    (folder / ".env").write_text("KEY=1\n")
    return folder


def test_an_index_says_what_became_of_the_files(run: Run, notes: Path) -> None:
    ran = run("index", "notes")
    assert (ran.code, ran.err) == (0, "")
    first, second = ran.out.splitlines()
    assert first.startswith(str(notes))
    assert second.strip() == "2 files indexed (2 chunks), 0 unchanged"
    (notes / "first.md").unlink()
    ran = run("index", "notes", "--json")
    assert {
        name: ran.json[name]
        for name in ("root", "files_indexed", "files_skipped", "files_removed", "errors")
    } == {
        "root": str(notes),
        "files_indexed": 0,
        "files_skipped": 1,
        "files_removed": 1,
        "errors": [],
    }


def test_a_hit_whose_file_changed_says_so(run: Run, notes: Path) -> None:
    run("index", "notes")
    mark = "stale: the file was changed or deleted since it was indexed"
    assert mark not in run("search", "lighthouse keeper").out
    (notes / "first.md").unlink()
    assert mark in run("search", "lighthouse keeper").out
    assert mark in run("recall", "lighthouse keeper").out
    [hit] = run("search", "lighthouse keeper", "--limit", "1", "--json").json["results"]
    assert (hit["relative_path"], hit["stale"]) == ("first.md", True)


def test_without_a_path_all_workspaces_are_looked_at_again(run: Run, notes: Path) -> None:
    ran = run("index")
    assert ran.code == 2 or "name one: byheart index PATH" in ran.err
    run("index", "notes")
    (notes / "third.md").write_text("Kelp grows by the slipway.\n")
    assert [each["files_indexed"] for each in run("index", "--json").json] == [1]


def test_a_file_that_cannot_be_read_is_named_and_the_exit_code_says_so(
    run: Run, notes: Path
) -> None:
    (notes / "broken.ipynb").write_text("no notebook")
    ran = run("index", "notes")
    assert ran.code == 1
    assert "1 not read" in ran.out
    assert "broken.ipynb" in ran.out


@pytest.mark.parametrize(
    ("file", "words"),
    [("notes/first.md", "indexed"), ("notes/.env", "left out"), ("notes/.env", "secret")],
)
def test_explain_names_the_rule(run: Run, notes: Path, file: str, words: str) -> None:
    ran = run("index", "notes", "--explain", file)
    assert ran.code == 0
    assert words in ran.out


def test_explain_knows_the_store_by_any_name_and_a_file_without_text(run: Run, notes: Path) -> None:
    (notes / "blank.md").write_text(" \n")
    assert "left out  without text" in run("index", "notes", "--explain", "notes/blank.md").out
    run("--db", "notes/memory", "index", "notes")
    ran = run("--db", "notes/memory", "index", "notes", "--explain", "notes/memory")
    assert "left out  Byheart's own store" in ran.out


def test_explain_of_a_missing_file_is_refused(run: Run, notes: Path) -> None:
    ran = run("index", "notes", "--explain", "notes/nowhere.md")
    assert ran.code == 1
    assert "nowhere.md" in ran.err


def test_explain_asks_the_rules_of_the_workspace_from_any_folder_in_it(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / ".gitignore").write_text("deep/\n")
    run("index", "notes")
    monkeypatch.chdir(notes / "deep")
    assert "left out  deep/" in run("index", "--explain", "second.md").out
    assert "indexed" in run("index", "--explain", "../first.md").out
    assert "left out  deep/" in run("index", ".", "--explain", "second.md").out


def test_explain_finds_the_folder_of_a_file_by_itself(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / ".gitignore").write_text("deep/*.md\n!deep/second.md\n")
    odd = f"{notes}/deep/{os.fsdecode(b'caf' + bytes([0xE9]))}.md"
    Path(odd).write_text("Coffee.\n")
    (notes / "other").mkdir()
    monkeypatch.chdir(notes / "other")
    ran = run("index", "--explain", f"{notes}/deep/second.md")
    assert (ran.code, ran.err) == (0, "")
    assert "indexed  !deep/second.md" in run("index", str(notes), "--explain", "deep/second.md").out
    assert "caf\\xe9.md  left out  its name is not UTF-8" in run("index", "--explain", odd).out
    for blank in ("", "  "):
        assert run("index", blank).code == 2


def test_a_workspace_that_is_not_there_is_told_and_the_others_are_indexed(
    run: Run, notes: Path, home: Path
) -> None:
    (home / "other").mkdir()
    (home / "other/a.md").write_text("Kelp grows by the slipway.\n")
    run("index", "notes")
    run("index", "other")
    notes.rename(home / "elsewhere")
    (home / "other/b.md").write_text("Gulls sleep on the roof.\n")
    ran = run("index")
    assert ran.code == 1
    assert f"{notes} cannot be looked at" in ran.err
    assert "1 file indexed" in ran.out


def test_what_is_wrong_with_a_pdf_is_said_once(run: Run, notes: Path) -> None:
    pytest.importorskip("pypdf")
    (notes / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    ran = run("index", "notes")
    assert "is a damaged PDF" in ran.out
    assert ran.err == ""


def test_a_dropped_workspace_is_forgotten(run: Run, notes: Path) -> None:
    run("index", "notes")
    assert run("index", "notes", "--drop").out == "removed notes: 2 memories forgotten\n"
    assert "Nothing found" in run("search", "cocoa").out
    ran = run("index", "notes", "--drop")
    assert ran.code == 1
    assert "in no workspace" in ran.err


def test_a_hit_shows_its_file_and_line_as_get_takes_them(run: Run, notes: Path) -> None:
    run("index", "notes")
    shown = run("search", "cocoa", "--mode", "fts").out
    assert "notes/first.md:1" in shown
    assert run("get", "notes/first.md:1").out == "# Lighthouse\n\nThe keeper drinks cocoa.\n"
    assert run("get", "notes/first.md").out == "# Lighthouse\n\nThe keeper drinks cocoa.\n"
    assert run("get", "notes/nowhere.md:3").code == 1


def test_a_line_that_is_not_there_is_refused(run: Run, notes: Path) -> None:
    run("index", "notes")
    for verb in ("get", "expand"):
        ran = run(verb, "notes/first.md:999")
        assert ran.code == 1
        assert "notes/first.md has no line 999" in ran.err
        assert "its last one is 3" in ran.err
    assert run("get", f"notes/{'x' * 300}.md:3").code == 1


def test_on_a_terminal_a_long_path_is_cut_and_in_json_it_is_whole(
    terminal: Run, run: Run, notes: Path
) -> None:
    name = f"{'long/' * 30}broken-{'x' * 80}.ipynb"
    (notes / name).parent.mkdir(parents=True)
    (notes / name).write_text("no notebook")
    (notes / "bell\x07.ipynb").write_text("no notebook")
    shown = terminal("index", "notes").out
    [line] = [line for line in shown.splitlines() if "long/long/" in line]
    assert "…" in line
    assert "xxx.ipynb" in line
    assert "bell\\x07.ipynb" in shown
    assert "\x07" not in shown
    assert {error["path"] for error in run("index", "notes", "--json").json["errors"]} == {
        name,
        "bell\x07.ipynb",
    }


def test_on_a_terminal_a_bar_shows_files_chunks_and_the_time_left(
    terminal: Run, notes: Path
) -> None:
    # So many that the bar is drawn several times, also on a fast machine.
    for number in range(900):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nBuoy number {number}.\n")
    shown = terminal("index", "notes").out
    for words in ("of 902 files", "chunks/s", " s left", "of 902 chunks embedded"):
        assert words in shown


def test_on_a_terminal_the_path_can_be_clicked(terminal: Run, notes: Path) -> None:
    terminal("index", "notes")
    shown = terminal("search", "cocoa", "--mode", "fts").out
    assert "\x1b]8;id=" in shown
    assert f"{(notes / 'first.md').as_uri()}" in shown


def test_a_path_filter_is_a_glob(run: Run, notes: Path) -> None:
    run("index", "notes")
    listed = run("list", "--path", "deep/*.md", "--json").json
    assert [Path(each["path"]).name for each in listed["memories"]] == ["second.md"]


def test_status_shows_workspaces(run: Run, notes: Path) -> None:
    run("index", "notes")
    shown = run("status").out
    assert str(notes) in shown
    assert "2 files" in shown
    assert "not watched" in shown


def test_status_says_of_a_workspace_whose_index_was_cut_short_that_it_was(
    run: Run, home: Path, notes: Path
) -> None:
    run("index", "notes")
    store = apsw.Connection(str(home / "memory.db"))
    store.execute("UPDATE workspaces SET indexed_at = NULL")
    store.close()
    assert "not yet looked at to its end" in run("status").out


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_watch_keeps_a_folder_fresh_until_ctrl_c(
    home: Path, run: Run, notes: Path, ending: signal.Signals
) -> None:
    watcher = start_program(
        *("watch", "notes", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        assert watcher.stdout is not None
        assert b'"files_indexed": 2' in watcher.stdout.readline()
        (notes / "third.md").write_text("Kelp grows by the slipway.\n")
        assert b'"files_indexed": 1' in watcher.stdout.readline()
        assert "third.md" in run("search", "kelp", "--mode", "fts").out
        assert "watched by process" in run("status").out
        watcher.send_signal(ending)
        watcher.send_signal(ending)
        assert watcher.wait(30) in (0, 130)
        assert watcher.stderr is not None
        assert b"Traceback" not in watcher.stderr.read()
    finally:
        watcher.kill()
        watcher.communicate()
    assert "not watched" in run("status").out


def test_a_second_watch_says_that_it_stands_by(home: Path, run: Run, notes: Path) -> None:
    run("index", "notes")
    with byheart.open() as store:
        number = store.workspaces.list()[0].workspace_no
        assert transactions.claim(store._storage, "default", number, "elsewhere/4711/1", 20)
    watcher = start_program("watch", "notes", stderr=subprocess.PIPE, env=dict(os.environ))
    try:
        assert watcher.stderr is not None
        assert watcher.stderr.readline().startswith(
            b"standing by: notes is watched by process 4711 already"
        )
    finally:
        watcher.kill()
        watcher.communicate()


def test_a_file_is_read_by_the_end_of_its_path_from_any_folder(run: Run, notes: Path) -> None:
    run("index", "notes")
    assert "six" in run("get", "deep/second.md:3").out
    (notes / "other/deep").mkdir(parents=True)
    (notes / "other/deep/second.md").write_text("Another.\n")
    run("index", "notes")
    ran = run("get", "deep/second.md:3")
    assert ran.code != 0
    assert "several files are called deep/second.md" in ran.err
    assert str(notes / "other/deep/second.md") in ran.err


def test_ctrl_c_during_an_index_keeps_what_is_written(home: Path, run: Run, notes: Path) -> None:
    for number in range(1_500):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nBuoy number {number}.\n" * 5)
    indexer = start_program(
        *("index", "notes", "--no-embed"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    wait_until(lambda: run("list", "--json").json["total"])
    indexer.send_signal(signal.SIGINT)
    _, errors = indexer.communicate(timeout=PATIENCE_SECONDS)
    assert indexer.returncode == 130
    assert b"Traceback" not in errors
    assert b"run the same command again" in errors
    kept = run("list", "--json").json["total"]
    assert 0 < kept < 1_502
    again = run("index", "notes", "--no-embed", "--json").json
    assert again["files_indexed"] + kept == 1_502


def test_a_watched_folder_that_is_not_there_is_refused(run: Run, notes: Path) -> None:
    ran = run("watch", "nowhere")
    assert ran.code in (1, 2)
    assert "nowhere is not there" in ran.err


def test_index_names_the_files_whose_secrets_were_replaced(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "with-secrets"
    folder.mkdir()
    (folder / "notes.md").write_text("The password for the router is hunt" + "er2.\n")
    ran = run("index", str(folder))
    assert "1 secret replaced in 1 file:" in ran.out
    assert "notes.md" in ran.out
    assert "hunter2" not in ran.out
