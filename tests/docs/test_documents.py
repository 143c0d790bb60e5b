"""What the documents say is run, and what they list is there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.forked_program import start_program

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "src/byheart/interfaces/mcp/tools.json"
# What differs from run to run: ids, times and the digits behind a score.
MASKS = (
    (r"mem_[0-9a-z]{26}", "mem_…"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "time"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", "time"),
    (r"(score|similarity|confidence) -?\d\.\d+", r"\1 …"),
)


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text.strip()


@pytest.mark.model
@pytest.mark.parametrize(
    "name",
    ["README.md", "docs/python.md", "docs/conversations.md", "docs/importing.md", "docs/models.md"],
)
def test_the_python_of_a_document_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(name, "python"))
    assert code
    exec(compile(code, name, "exec"), {})
    assert (tmp_path / "memory.db").exists()


@pytest.mark.model
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_a_document_shows_what_the_command_line_prints(name: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "BYHEART_DB_PATH": str(tmp_path / "memory.db"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    steps = re.split(r"^\$ ", "".join(blocks(name, "console")), flags=re.MULTILINE)[1:]
    assert steps
    for step in steps:
        command, _, expected = step.partition("\n")
        # What people read first is run as they would run it: by a shell, which finds the program.
        start = partial(subprocess.Popen, command, shell=True)
        if name != "README.md" and command.startswith("byheart "):
            start = partial(start_program, *shlex.split(command)[1:])
        options = {"cwd": tmp_path, "env": environment, "text": True}
        with start(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as running:
            shown, _ = running.communicate()
        assert (running.returncode, masked(shown)) == (0, masked(expected)), command


def test_the_architecture_names_every_room_and_file_at_the_top() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^  ([\w/]+(?:\.py|/))", text, re.MULTILINE))
    top = ROOT / "src" / "byheart"
    there = {each.name for each in top.glob("*.py")}
    there |= {f"{each.parent.name}/" for each in top.glob("*/__init__.py")}
    assert {name.split("/")[0] + ("/" if "/" in name else "") for name in drawn} == there


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_wheel_knows_its_public_names() -> None:
    import byheart

    assert len(byheart.__all__) <= 20
    for name in byheart.__all__:
        assert getattr(byheart, name) is not None
    with pytest.raises(AttributeError):
        _ = byheart.nothing_of_that_name


def test_coming_from_names_only_tools_and_commands_that_exist() -> None:
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    tools = {each["name"] for each in json.loads(TOOLS.read_text(encoding="utf-8"))}
    here = [line.rpartition(" | ")[2] for line in text.splitlines() if line.startswith("|")]
    named = set(re.findall(r"`(memory_[a-z]+)`", "\n".join(here)))
    assert len(named) >= 8
    assert named - {"memory_id"} <= tools
    commands = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in re.findall(r"`byheart ([a-z]+)", text):
        assert f"## byheart {command}\n" in commands, command
