"""`byheart get` and `byheart expand`: exact text behind an id."""

from __future__ import annotations

from pathlib import Path

import byheart
from byheart.model import to_wire
from tests.interfaces.cli.conftest import REPORT, Run


def test_get_gives_the_text_byte_for_byte(process: Run, library: byheart.MemoryStore) -> None:
    text = "  Grüße\r\naus 東京 🗼\x1b[31m\x00\n\n no newline at the end"
    saved = library.save(text)
    assert process("get", saved.memory_id).raw == text.encode()


def test_get_takes_the_id_of_a_chunk(run: Run, report: str) -> None:
    assert run("get", f"{report}#2").out == REPORT


def test_get_as_json_is_the_whole_memory(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    assert run("get", report, "--json").json == to_wire(library.get(report))


def test_an_unknown_id_is_a_failure_with_a_hint(run: Run) -> None:
    ran = run("get", "mem_unknown")
    assert ran.code == 1
    assert "hint: look for it with" in ran.err


def test_get_does_not_look_into_another_space(run: Run, report: str) -> None:
    assert run("--space", "other", "get", report).code == 1


def test_output_writes_a_file_with_front_matter(run: Run, home: Path, report: str) -> None:
    ran = run("get", report, "--output", "copy.md")
    assert ran.out.startswith("wrote  copy.md (")
    written = (home / "copy.md").read_text()
    assert written.startswith(f'---\nmemory_id: "{report}"\n')
    assert written.endswith(REPORT)


def test_output_without_metadata_is_the_text_alone(run: Run, home: Path, report: str) -> None:
    answer = run("get", report, "-o", "copy.md", "--no-include-metadata", "--json").json
    assert answer["file_size_bytes"] == len(REPORT)
    assert (home / "copy.md").read_text() == REPORT


def test_output_to_a_dash_is_stdout(run: Run, home: Path, report: str) -> None:
    assert run("get", report, "--output", "-").out == run("get", report).out
    assert not (home / "-").exists()


def test_output_replaces_a_file_only_when_told_to(run: Run, home: Path, report: str) -> None:
    (home / "copy.md").write_text("mine")
    ran = run("get", report, "--output", "copy.md")
    assert ran.code == 2
    assert (home / "copy.md").read_text() == "mine"
    assert run("get", report, "--output", "copy.md", "--overwrite", "--include-metadata").code == 0
    assert (home / "copy.md").read_text().endswith(REPORT)


def test_expand_gives_the_stretch_around_a_chunk(
    run: Run, library: byheart.MemoryStore, report: str
) -> None:
    assert run("expand", f"{report}#1").out == REPORT
    near = library.expand(f"{report}#1", around=1)
    assert run("expand", f"{report}#1", "--around", "1").out == near.expanded_content
    assert run("expand", f"{report}#1", "--around", "0", "--json").json == to_wire(
        library.expand(f"{report}#1", around=0)
    )


def test_expand_of_an_unknown_chunk_is_a_failure(run: Run, report: str) -> None:
    assert run("expand", f"{report}#99").code == 1
    assert run("expand", "nonsense").code == 2
    assert run("expand", report, "--json").json["chunk_id"] == f"{report}#0"


def test_the_first_letters_of_an_id_are_enough_if_no_other_begins_so(
    run: Run, library: byheart.MemoryStore
) -> None:
    first = library.save("The first text.").memory_id
    assert run("get", first[:12]).out == "The first text."
    assert run("expand", f"{first[:12]}#0", "--json").json["memory_id"] == first
    second = library.save("The second text.").memory_id
    both = next(n for n in range(4, 30) if first[: n + 1] != second[: n + 1])
    ran = run("get", first[:both])
    assert ran.code == 2
    assert f"several memories have ids that begin with {first[:both]}" in ran.err
    assert f"type more letters: {first[:14]}, {second[:14]}" in ran.err
    assert run("get", "mem_0").code == 1, "too short to mean one memory"
    assert run("--space", "other", "get", first[:12]).code == 1


def test_every_command_takes_the_first_letters_of_an_id(
    run: Run, library: byheart.MemoryStore
) -> None:
    saved = library.save("A text that goes through much.").memory_id
    for command in ("pin", "unpin", "history", "forget", "restore"):
        assert run(command, saved[:14]).code == 0, command
    assert run("update", saved[:14], "--title", "New").code == 0
    other = library.save("Another text, about something else.").memory_id
    assert run("supersede", saved[:14], other).code == 0
    assert library.get(saved).superseded_by == other
    assert run("merge", other, saved[:14]).code == 0
