"""`export`, `import` and `backup` on the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import byheart
from byheart.interfaces.cli import export_import
from byheart.transfer.foreign import FOREIGN
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import Run
from tests.transfer.foreign import samples
from tests.waiting import PATIENCE_SECONDS


def test_an_export_goes_to_a_file_and_from_there_into_another_store(
    run: Run, home: Path, report: str
) -> None:
    ran = run("export", "all.jsonl")
    assert (ran.code, ran.out) == (0, "exported 1 memory to all.jsonl\n")
    ran = run("--db", "other.db", "import", "all.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "imported 1 memory\n", "")
    assert run("--db", "other.db", "import", "all.jsonl").out == (
        "imported 0 memories, 1 there already\n"
    )
    with byheart.open("other.db") as store, byheart.open() as first:
        assert store.get(report).content == first.get(report).content
        assert all(finding.ok for finding in store.admin.doctor())


def test_an_export_goes_through_a_pipe(process: Run, report: str) -> None:
    exported = process("export", "-", "--vectors")
    assert (exported.code, exported.err) == (0, "")
    assert process("export", "--vectors").raw == exported.raw
    ran = process("--db", "other.db", "import", "-", stdin=exported.raw)
    assert (ran.code, ran.out, ran.err) == (0, "imported 1 memory\n", "")
    assert process("--db", "other.db", "export", "-", "--vectors").raw == exported.raw


def test_chosen_memories_are_exported_alone_with_their_history(run: Run, report: str) -> None:
    other = run("save", "Another note.", "--json").json["memory_id"]
    run("update", other, "Another note, changed.")
    ran = run("export", "some.jsonl", "--memory-id", other[:-4])
    assert (ran.code, ran.out) == (0, "exported 1 memory to some.jsonl\n")
    assert run("--db", "other.db", "import", "some.jsonl").out == "imported 1 memory\n"
    with byheart.open("other.db") as store, byheart.open() as first:
        assert store.history(other) == first.history(other)
        assert store.list().total == 1
    assert run("export", "none.jsonl", "--memory-id", "mem_nothing").code == 1
    assert run("export", "none.jsonl", "--memory-id", other, "--all-spaces").code == 2


def test_as_json_the_answers_are_those_of_the_library(run: Run, report: str) -> None:
    assert run("export", "all.jsonl", "--json").json == {
        "path": "all.jsonl",
        "format": "jsonl",
        "memories": 1,
        "entities": run("export", "x.jsonl", "--json").json["entities"],
        "tombstones": 0,
        "vectors": False,
        "damaged": [],
    }
    assert run("--db", "other.db", "import", "all.jsonl", "--no-embed", "--json").json == {
        "imported": 1,
        "updated": 0,
        "unchanged": 0,
        "refused": 0,
        "skipped": [],
        "pending_vectors": 4,
        "degraded": None,
        "format": "jsonl",
        "files": {"jsonl": 1},
        "dry_run": False,
        **dict.fromkeys(("sessions", "turns", "memories", "redacted", "shortened"), 0),
        "left_out": {},
        "remarks": [],
    }
    assert set(run("backup", "copy.db", "--json").json) == {"path", "size_bytes", "kind"}


def test_stdout_is_for_one_thing_only(run: Run, report: str) -> None:
    for arguments in (("export", "--json"), ("export", "-", "--format", "markdown")):
        ran = run(*arguments)
        assert ran.code == 2
        assert "name a PATH" in ran.err


def test_a_terminal_is_not_flooded_unless_asked(terminal: Run, report: str) -> None:
    ran = terminal("export")
    assert ran.code == 2
    assert "byheart export -" in ran.out
    assert "byheart-export" in terminal("export", "-").out


def test_a_damaged_line_is_named_or_skipped(run: Run, home: Path) -> None:
    run("save", "one")
    run("save", "two")
    run("export", "all.jsonl")
    lines = (home / "all.jsonl").read_text().splitlines()
    lines[-2] = lines[-2][:-9]
    (home / "all.jsonl").write_text("\n".join(lines) + "\n")
    ran = run("--db", "other.db", "import", "all.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: all.jsonl line {len(lines) - 1}: it is not JSON")
    assert "what came before it is kept (1 new or changed)" in ran.err
    assert "leave it out with --on-error skip" in ran.err
    ran = run("--db", "other.db", "import", "all.jsonl", "--on-error", "skip")
    assert ran.code == 0
    assert ran.out == "imported 0 memories, 1 there already, 2 skipped\n"
    assert f"warning: all.jsonl line {len(lines) - 1}: it is not JSON" in ran.err


def test_what_was_forgotten_for_good_is_refused_unless_forced(run: Run, report: str) -> None:
    run("export", "all.jsonl")
    run("forget", report, "--hard", "--yes")
    assert "1 refused: forgotten for good (--force takes them in)" in run("import", "all.jsonl").out
    assert run("import", "all.jsonl", "--force").out == "imported 1 memory\n"


def test_plain_lines_and_markdown_are_taken_in(run: Run, home: Path) -> None:
    (home / "facts.jsonl").write_text('{"content": "one", "kind": "fact"}\n')
    assert run("import", "facts.jsonl").out == "imported 1 memory\n"
    assert run("export", "vault", "--format", "markdown").out == "exported 1 memory to vault\n"
    [path] = (home / "vault" / "fact").iterdir()
    path.write_text(path.read_text().replace("\none", "\ntwo"))
    assert run("import", "vault").out == "imported 0 memories, 1 changed\n"
    assert run("search", "two", "--json").json["results"][0]["kind"] == "fact"


def test_what_does_not_exist_is_named_and_no_store_is_made_for_it(run: Run, home: Path) -> None:
    ran = run("--db", "new.db", "import", "missing.jsonl")
    assert ran.code == 2
    assert "missing.jsonl cannot be read" in ran.err
    assert not (home / "new.db").exists()


def test_without_a_provider_the_import_says_what_is_missing(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("save", "one")
    run("export", "all.jsonl")
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    ran = run("--db", "other.db", "import", "all.jsonl")
    assert (ran.code, ran.out) == (0, "imported 1 memory\n")
    assert "1 chunk can be found by keyword only" in ran.err


def test_a_backup_is_a_store_and_replaces_nothing_unasked(run: Run, report: str) -> None:
    assert run("backup", "copy.db").out.startswith("copied to ")
    assert run("--db", "copy.db", "get", report).code == 0
    ran = run("backup", "copy.db")
    assert ran.code == 2
    assert "exists already" in ran.err
    assert "allow it with --overwrite" in ran.err
    assert run("backup", "copy.db", "--overwrite").code == 0


def test_ctrl_c_says_how_to_go_on_and_running_it_again_does(run: Run, home: Path) -> None:
    with byheart.open() as store:
        store.save_many({"content": f"text number {number}"} for number in range(1200))
    run("export", "all.jsonl")
    running = start_program(
        *("--db", "other.db", "import", "all.jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if (home / "other.db").exists():
            with byheart.open("other.db") as other:
                if other.list(limit=1).total:
                    break
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert (running.returncode, out) == (130, b"")
    assert err.decode() == "\ninterrupted: run the same command again to go on\n"
    answer = run("--db", "other.db", "import", "all.jsonl", "--json").json
    assert answer["imported"] + answer["unchanged"] == 1200
    assert answer["unchanged"] > 0
    run("--db", "other.db", "export", "again.jsonl")
    assert (home / "again.jsonl").read_bytes() == (home / "all.jsonl").read_bytes()


def test_on_a_terminal_a_bar_shows_how_far_it_is(terminal: Run, home: Path) -> None:
    with (home / "facts.jsonl").open("w") as file:
        for number in range(600):
            file.write(json.dumps({"content": f"fact {number}"}) + "\n")
    ran = terminal("import", "facts.jsonl", COLUMNS="100")
    assert ran.code == 0
    assert "importing" in ran.out
    assert " left" in ran.out
    assert "imported 600 memories" in ran.out
    assert "exporting" in terminal("export", "all.jsonl", COLUMNS="100").out


# --- Files of other programs ----------------------------------------------------------------------


def test_a_transcript_is_counted_first_and_then_imported(run: Run, home: Path) -> None:
    path = str(samples.write_claude_code(home / "claude").relative_to(home))
    ran = run("--db", "new.db", "import", path, "--dry-run")
    assert ran.out == "claude-code: 7 turns of 1 session and 1 memory; would import 8\n"
    assert "1 secret taken out" in ran.err
    assert "left out: 2 meta, 1 output of Read, 2 records, 1 sidechain, 1 thinking" in ran.err
    assert not (home / "new.db").exists()
    ran = run("--db", "new.db", "import", "claude", "--no-embed")
    assert ran.out == "claude-code: 7 turns of 1 session and 1 memory; imported 8\n"
    ran = run("--db", "new.db", "import", "claude")
    assert ran.out == (
        "claude-code: 7 turns of 1 session and 1 memory; imported 0, 8 there already\n"
    )
    assert "taken out" not in ran.err


def test_notes_that_are_not_taken_as_they_were_meant_are_counted_in_a_warning(
    run: Run, home: Path
) -> None:
    (home / "vault" / ".obsidian").mkdir(parents=True)
    for name in "abcd":
        (home / "vault" / f"{name}.md").write_text("---\ntitle: {{title}}\n---\nText.")
    for name in ("x.bin", "y.bin"):
        (home / "vault" / name).write_bytes(b"\0")
    ran = run("import", "vault", "--dry-run")
    assert (ran.code, ran.out) == (0, "obsidian: 4 memories; would import 4\n")
    assert "warning: front matter kept as text in 4 notes: a.md (it is not YAML: found" in ran.err
    assert ran.err.rstrip().endswith(", … (see --json)")
    assert "left out: 2 other files" in ran.err


def test_a_dry_run_that_stops_does_not_say_that_anything_is_kept(run: Run, home: Path) -> None:
    (home / "notes").mkdir()
    (home / "notes" / "a.md").write_text("fine")
    (home / "notes" / "b.md").write_bytes(b"caf\xe9")
    ran = run("import", "notes", "--dry-run")
    assert ran.code == 2
    assert "correct it and run this again" in ran.err
    assert "kept" not in ran.err


def test_as_json_an_import_says_what_it_found(run: Run, home: Path) -> None:
    samples.write_claude(home / "export")
    answer = run("import", "export", "--json").json
    assert (answer["format"], answer["sessions"], answer["turns"]) == ("claude", 1, 3)
    assert answer["left_out"] == {"empty message": 1, "other file": 1}


def test_a_mixed_folder_is_told_by_the_formats_in_it(run: Run, home: Path) -> None:
    samples.write_claude(home / "all")
    samples.write_graph(home / "all")
    ran = run("import", "all", "--dry-run")
    assert ran.out == ("claude, mcp-memory: 3 turns of 1 session and 9 memories; would import 12\n")
    answer = run("import", "all", "--json").json
    assert (answer["format"], answer["files"]) == ("mixed", {"claude": 3, "mcp-memory": 1})


def test_what_cannot_be_imported_is_refused_and_changes_nothing(run: Run, home: Path) -> None:
    samples.write_chatgpt(home)
    (home / "diary.txt").write_text("Dear diary")
    (home / "empty.json").touch()
    for arguments, told in (
        (("conversations.json", "--format", "claude"), "it looks like chatgpt"),
        (("diary.txt",), "diary.txt is of no known format"),
        (("empty.json",), "empty.json is empty"),
        (("empty.json", "--format", "chatgpt"), "empty.json: it is empty"),
    ):
        ran = run("import", *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert told in ran.err
    assert run("list", "--json").json["total"] == 0


def test_a_format_that_is_not_known_is_refused_with_all_that_are(run: Run, home: Path) -> None:
    (home / "x.json").write_text("{}")
    ran = run("import", "x.json", "--format", "unknown")
    assert ran.code == 2
    assert all(name in ran.err for name in FOREIGN)


def test_the_formats_of_the_command_line_are_those_of_the_library() -> None:
    assert export_import.FOREIGN == FOREIGN


def test_a_line_that_cannot_be_read_is_named(run: Run, home: Path) -> None:
    path = samples.write_codex(home / "codex")
    with path.open("a") as file:
        file.write("{oops\n")
    ran = run("import", "codex")
    assert ran.code == 2
    assert re.search(r"rollout-.*\.jsonl line 13: it is not JSON", ran.err)
    assert "--on-error skip" in ran.err
    ran = run("import", "codex", "--on-error", "skip")
    assert ran.code == 0
    assert "1 skipped" in ran.out


def test_a_name_cannot_take_the_terminal_over(run: Run, home: Path) -> None:
    path = samples.write_codex(home / "codex")
    path.write_text(path.read_text() + "{oops\n")
    path.rename(path.with_name("bell\x07.jsonl"))
    ran = run("import", "codex", "--on-error", "skip")
    assert ran.code == 0
    assert "bell\\x07.jsonl line 13" in ran.err
    assert "\x07" not in ran.err


def test_a_plain_export_has_a_dry_run_too(run: Run, home: Path, report: str) -> None:
    run("export", "all.jsonl")
    ran = run("--db", "other.db", "import", "all.jsonl", "--dry-run")
    assert (ran.out, ran.err) == ("would import 1 memory\n", "")
    assert not (home / "other.db").exists()
    assert run("import", "all.jsonl", "--dry-run").out == (
        "would import 0 memories, 1 there already\n"
    )
    run("export", "vault", "--format", "markdown")
    [file] = (home / "vault").rglob("*.md")
    file.write_text(file.read_text() + "changed\n")
    assert run("import", "vault", "--dry-run").out == "would import 0 memories, 1 changed\n"
    (home / "facts.jsonl").write_text('{"content": "one fact"}\n{"content": "one fact"}\n')
    assert run("import", "facts.jsonl", "--dry-run").out == (
        "would import 1 memory, 1 there already\n"
    )
    with byheart.open() as store:
        assert len(store.list().memories) == 1
