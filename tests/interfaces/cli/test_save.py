"""`byheart save`: text, stdin, files, and every field."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart.interfaces.cli.save import save_command
from byheart.model import to_wire
from tests.forked_program import start_program
from tests.interfaces.cli.conftest import REPORT, Ran, Run
from tests.waiting import PATIENCE_SECONDS


def test_save_prints_the_id_alone_in_a_pipe(run: Run, library: byheart.MemoryStore) -> None:
    ran = run("save", "Anna", "likes", "tea.")
    assert ran.code == 0
    assert library.get(ran.out.rstrip("\n")).content == "Anna likes tea."


def test_save_as_json_is_what_the_library_answers(run: Run, library: byheart.MemoryStore) -> None:
    answer = run("save", "Anna likes tea.", "--json").json
    assert answer == {**to_wire(library.save("Anna likes tea.")), "status": "created"}
    assert run("save", "Anna likes tea.", "--json").json["status"] == "unchanged"


def test_every_field_can_be_given(run: Run, library: byheart.MemoryStore) -> None:
    given = {
        "kind": "fact",
        "title": "Drinks",
        "summary": "What Anna drinks",
        "source": "chat",
        "session_id": "s1",
        "agent_id": "coder",
        "session_iter": 2,
        "task_code": "T-7",
        "path": "notes/anna.md",
        "importance": 7.5,
        "origin": "tool",
        "language": "en-GB",
    }
    flags = [
        part
        for name, value in given.items()
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
    flags += ["-t", "people, drinks", "-t", "tea", "-e", "Anna", "--metadata", '{"a": [1, null]}']
    memory = library.get(run("save", "Anna likes tea.", *flags).out.strip())
    assert {name: getattr(memory, name) for name in given} == given
    assert set(memory.tags) == {"people", "drinks", "tea"}
    assert memory.entities == ("Anna",)
    assert memory.metadata == {"a": [1, None]}
    named = {param.name for param in save_command.params if param.name in memory.__slots__}
    others = ("tags", "entities", "metadata", "created_at", "expires_at", "space")
    assert named == {*given, *others, "valid_from", "valid_until"}


def test_session_iter_may_be_written_with_a_v(run: Run, library: byheart.MemoryStore) -> None:
    memory = library.get(run("save", "x", "--session-iter", "v3").out.strip())
    assert memory.session_iter == 3


def test_expiry_is_a_number_of_days_or_a_moment(run: Run, library: byheart.MemoryStore) -> None:
    kept = library.get(run("save", "one", "--ttl-days", "1.5").out.strip())
    assert kept.expires_at is not None
    assert (kept.expires_at - kept.created_at).total_seconds() == pytest.approx(1.5 * 86400)
    kept = library.get(run("save", "two", "--expires-at", "2040-01-02T03:04:05Z").out.strip())
    assert to_wire(kept.expires_at) == "2040-01-02T03:04:05.000000Z"


def test_a_dated_text_keeps_its_date(run: Run, library: byheart.MemoryStore) -> None:
    dated = library.get(run("save", "one", "--created-at", "2024-05-06").out.strip())
    assert to_wire(dated.created_at) == "2024-05-06T00:00:00.000000Z"
    assert [each.memory_id for each in library.list(created_before="2025-01-01").memories] == [
        dated.memory_id
    ]


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_text_is_read_from_stdin_byte_for_byte(
    run: Run, library: byheart.MemoryStore, arguments: tuple[str, ...]
) -> None:
    text = "  Grüße\r\naus 東京 🗼\n\n"
    saved = run("save", *arguments, stdin=text.encode())
    assert library.get(saved.out.strip()).content == text


def test_an_empty_pipe_is_refused(run: Run) -> None:
    ran = run("save", stdin="")
    assert ran.code == 2
    assert "content is blank" in ran.err


def test_stdin_that_is_not_utf_8_is_refused_with_the_place(run: Run) -> None:
    ran = run("save", "-", stdin=b"caf\xe9")
    assert ran.code == 2
    assert "stdin is not UTF-8 text: byte 3 is 0xe9" in ran.err
    assert "iconv" in ran.err


def test_on_a_terminal_save_without_text_is_a_usage_error_and_does_not_wait(
    terminal: Run,
) -> None:
    ran = terminal("save")
    assert ran.code == 2
    assert "there is nothing to save" in ran.out


@pytest.mark.skipif(sys.platform == "win32", reason="has no file without end")
def test_a_file_without_end_is_refused(run: Run) -> None:
    ran = run("save", "--file", "/dev/zero")
    assert ran.code == 2
    assert "/dev/zero cannot be read: it is a device" in ran.err


def test_a_file_is_saved_byte_for_byte_under_its_name_and_path(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    (home / "report.md").write_bytes(REPORT.replace("\n", "\r\n").encode())
    memory = library.get(run("save", "--file", "report.md").out.strip())
    assert memory.content == REPORT.replace("\n", "\r\n")
    assert (memory.title, memory.path) == ("report.md", (home / "report.md").as_posix())


def test_a_title_and_a_path_of_ones_own_win_over_the_files(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    (home / "report.md").write_text(REPORT)
    saved = run("save", "-f", "report.md", "--title", "March", "--path", "x/y.md")
    memory = library.get(saved.out.strip())
    assert (memory.title, memory.path) == ("March", "x/y.md")


def test_several_files_are_saved_together(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    (home / "a.txt").write_text("first")
    (home / "b.txt").write_text("second")
    answer = run("save", "-f", "a.txt", "-f", "b.txt", "--tags", "both", "--json").json
    contents = [library.get(each["memory_id"]).content for each in answer]
    assert contents == ["first", "second"]
    assert len(run("save", "-f", "a.txt", "-f", "b.txt").out.split()) == 2


def test_if_one_file_cannot_be_saved_it_is_named_and_nothing_is(
    run: Run, home: Path, library: byheart.MemoryStore
) -> None:
    (home / "a.txt").write_text("first")
    (home / "latin.txt").write_bytes(b"caf\xe9")
    for bad, reason in (
        ("latin.txt", "latin.txt is not UTF-8 text"),
        ("missing.txt", "missing.txt cannot be read"),
        (".", ". is a folder"),
    ):
        ran = run("save", "-f", "a.txt", "-f", bad)
        assert ran.code == 2
        assert reason in ran.err
    assert library.list().total == 0


def test_a_blank_file_is_called_by_its_name(run: Run, home: Path) -> None:
    (home / "a.txt").write_text("first")
    (home / "blank.txt").write_text(" \n")
    assert "error: blank.txt: content is blank" in run("save", "-f", "a.txt", "-f", "blank.txt").err


def test_one_title_for_several_files_is_refused(run: Run, home: Path) -> None:
    (home / "a.txt").write_text("first")
    ran = run("save", "-f", "a.txt", "-f", "a.txt", "--title", "Both")
    assert ran.code == 2
    assert "--title applies to one text" in ran.err


def test_without_an_embedder_a_save_says_that_vectors_are_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    ran = run("save", "text")
    assert ran.code == 0
    assert ran.err.startswith("warning: 1 chunk could not be embedded")
    assert "embedding is switched off" in ran.err
    ran = run("save", "another text", "--json")
    assert (ran.json["pending_vectors"], ran.err) == (1, "")
    assert ran.json["degraded"].startswith("embedding is switched off")


def test_a_text_that_was_given_twice_lacks_its_vectors_once(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_EMBEDDING_PROVIDER", "none")
    (home / "a.txt").write_text("the same")
    (home / "b.txt").write_text("the same")
    ran = run("save", "-f", "a.txt", "-f", "b.txt")
    assert ran.err.startswith("warning: 1 chunk could not be embedded")


# --- Long texts ---------------------------------------------------------------------------------

LONG = "".join(f"## Section {n}\n\nSome words about topic {n} go here.\n\n" for n in range(6000))


def start_to_save(*arguments: str, stdin: bytes | None = None) -> subprocess.Popen[Any]:
    pipe = subprocess.PIPE
    running = start_program(
        "save", *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(os.environ)
    )
    assert running.stdin is not None
    running.stdin.write(stdin or b"")
    running.stdin.close()
    running.stdin = None
    return running


def interrupt_while_embedding(running: subprocess.Popen[Any], library: byheart.MemoryStore) -> Ran:
    """Press Ctrl-C as soon as some of the vectors are made."""
    deadline = time.monotonic() + 60
    while library.status().vectors == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    return Ran(running.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_ctrl_c_while_a_long_text_is_embedded_keeps_it_and_saving_it_again_goes_on(
    run: Run, home: Path, library: byheart.MemoryStore, way: str
) -> None:
    (home / "long.md").write_text(LONG)
    arguments, stdin = {"file": (("--file", "long.md"), None), "stdin": ((), LONG)}[way]
    ran = interrupt_while_embedding(
        start_to_save(*arguments, stdin=stdin.encode() if stdin else None), library
    )
    assert (ran.code, ran.out) == (130, "")
    *progress, interrupted, missing = filter(None, ran.err.splitlines())
    assert all(line.startswith("saving: ") for line in progress)  # after some seconds
    assert interrupted == "interrupted: 1 memory kept; run the same command again to go on"
    assert missing.endswith("until byheart doctor --fix makes the vectors")
    made, index = library.status().vectors, library.status().index
    assert 0 < made < 6000 == index.chunks
    assert index.pending_vectors == 6000 - made
    assert library.search("topic 5999", mode="fts").results[0].chunk_index == 5999

    again = run("save", *arguments, "--json", stdin=stdin).json
    assert (again["status"], again["pending_vectors"]) == ("unchanged", 0)
    assert library.status().vectors == 6000
    assert all(finding.ok for finding in library.admin.doctor())


def test_on_a_terminal_a_bar_shows_how_far_the_vectors_of_a_long_text_are(
    terminal: Run, home: Path
) -> None:
    (home / "long.md").write_text(LONG)
    ran = terminal("save", "--file", "long.md", COLUMNS="100")
    assert ran.code == 0
    assert "of 6,000 chunks embedded" in ran.out
    assert "chunks/s" in ran.out
    assert " left" in ran.out
    assert "saved" in ran.out


def test_a_secret_is_told_on_stderr_and_kept(run: Run, library: byheart.MemoryStore) -> None:
    said = "The password for the router is hunt" + "er2."
    ran = run("save", said)
    assert library.get(ran.out.strip()).content == said
    assert "1 secret saved as given: 1 password" in ran.err
    assert f"byheart forget --hard {ran.out.strip()}" in ran.err
    assert run("save", said, "--json").json["secrets_found"] == {"password": 1}
    assert "saved as given" in run("log", "s1", "user", said).err
    assert "secret" not in run("save", "The router is in the hall.").err


def test_a_file_of_too_many_chunks_is_refused_with_advice(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_MAX_CHUNKS", "3")
    file = home / "long.txt"
    file.write_text("Plain words fill this passage. " * 300)
    ran = run("save", "--file", str(file))
    assert ran.code == 2
    assert "more than 3 chunks" in ran.err
    assert "save it in parts, or raise max_chunks" in ran.err
