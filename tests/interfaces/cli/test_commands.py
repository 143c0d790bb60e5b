"""The verbs as a whole: help, flags, what holds everywhere, and the reference."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import byheart
from byheart.interfaces.cli.commands import GROUPS, VERBS
from byheart.interfaces.cli.commands import byheart as program
from byheart.interfaces.cli.reference import render_reference
from byheart.interfaces.cli.verb import Verb, VerbGroup
from byheart.store import MemoryStore
from byheart.verbs.admin import AdminVerbs
from tests.interfaces.cli.conftest import PROGRAM, REPORT, Run
from tests.transfer.foreign import samples

ROOT = Path(__file__).parents[3]


def every_command(
    group: click.Group = program, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


COMMANDS = dict(every_command())
EXAMPLES = [
    example
    for command in COMMANDS.values()
    if isinstance(command, Verb)
    for example in command.examples
]


def test_the_table_says_of_each_verb_what_its_help_says() -> None:
    for name, entry in VERBS.items():
        assert (COMMANDS[(name,)].help or "").split("\n")[0] == entry.purpose


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_a_purpose_and_examples(
    run: Run, path: tuple[str, ...]
) -> None:
    for flag in ("--help", "-h"):
        ran = run(*path, flag)
        assert ran.code == 0
        lines = ran.out.splitlines()
        assert lines[0].startswith(f"Usage: byheart {' '.join(path)}")
        assert lines[2].strip().endswith(".")
        assert f"byheart {' '.join(path)}" in ran.out.split("Examples:")[1]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_both_spellings_in_whichever_context_a_command_is_first_used(
    path: tuple[str, ...],
) -> None:
    option = COMMANDS[path].get_help_option(click.Context(COMMANDS[path]))
    assert option is not None
    assert option.opts == ["-h", "--help"]


def write_files_of_others(home: Path) -> None:
    """Write what the examples name: a transcript, an export and an event of other programs."""
    line = samples.claude_line("user", 1, "What do we have to do today?")
    samples.lines(home / ".claude" / "projects" / "p" / "s.jsonl", [line])
    said = samples.chatgpt_message("p", "user", 1_750_001_001, "What bird is this?")
    talk = {**samples.CHATGPT[1], "mapping": {"p": samples.chatgpt_node("p", None, said)}}
    samples.pack(home / "chatgpt-export.zip", conversations=[talk])
    samples.document(home / "event.json", {"session_id": "s1", "source": "startup"})


def make_workspaces(run: Run, home: Path) -> None:
    """Make the folders that the examples name, and index them."""
    for name in ("notes/tea.md", "notes/.env", "src/app.py"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("Anna likes tea.\n" * 42)
    for name in ("notes", "src"):
        assert run("index", name).code == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_in_the_help_work(run: Run, home: Path, report: str, example: str) -> None:
    if example.startswith("byheart model") and "path" not in example:
        pytest.skip("needs the model: see test_model.py")
    if {"mcp", "open", "serve", "watch", "worker"} & set(
        example.split()
    ) and "setup" not in example:
        pytest.skip("they end with their clients, or never: see the tests of each")
    if "postgresql://" in example:
        pytest.skip("needs a server: see test_copy.py")
    (home / "report.md").write_text(REPORT)
    (home / "facts.jsonl").write_text('{"content": "Anna likes tea."}\n')
    write_files_of_others(home)
    if "index" in example or "src/" in example:
        make_workspaces(run, home)
    if "--rollback" in example:
        with byheart.open(embedding_model="hash-64") as other:
            other.admin.reembed()
    if example.startswith("byheart context"):
        run("log", "s1", "user", "What did we decide?")
    if "$RECEIPT" in example:
        with byheart.open() as other:
            example = example.replace("$RECEIPT", str(other.context("s1", "tea").receipt_id))
    if "token revoke" in example:
        run("token", "create", "laptop")
    example = example.replace("$ID", report)
    if "$NEW" in example:
        example = example.replace("$NEW", run("save", "What holds now.").out.strip())
    if any(sign in example for sign in ("|", " > ", "$(")):
        shell = f"""
            byheart() {{ {shlex.join(PROGRAM)} "$@"; }}
            git() {{ echo 'commit 123'; }}
            {example}
        """
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
    else:
        ran = run(*shlex.split(example)[1:])
        # The embedder of the tests knows no meaning, so nothing related may be found.
        unrelated = "nothing here seems to answer this" in ran.out + ran.err
        assert (ran.code, ran.err if not unrelated else "") == (0, "")


def test_byheart_alone_shows_its_help(run: Run) -> None:
    assert run().code == 0
    assert run().out == run("--help").out


def test_a_group_alone_shows_its_verbs(run: Run) -> None:
    ran = run("config")
    assert ran.code == 2
    assert ran.err == run("config", "--help").out


def test_version_is_that_of_the_package(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version").out == f"byheart {version('byheart')}\n"


def test_help_needs_neither_numpy_nor_rich_nor_the_store(home: Path) -> None:
    code = (
        "import sys; from byheart.interfaces.cli.commands import byheart\n"
        "try: byheart.main(sys.argv[1:])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    for arguments in (["--help"], ["search", "--help"], ["completion", "bash"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        loaded = set(done.stderr.split())
        assert "click" in loaded
        assert not loaded & {"numpy", "rich", "onnxruntime", "apsw", "byheart.store"}
        assert len(loaded) < 350, "what is shown at once loads little"


# --- Flags are parameters ---------------------------------------------------------------------

# The others are those of every door: tests/interfaces/test_operations.py.
METHODS = {
    "doctor": AdminVerbs.doctor,
    "export": MemoryStore.export,
    "import": MemoryStore.import_,
    "backup": AdminVerbs.backup,
    "reembed": AdminVerbs.reembed,
}
NOT_FLAGS = {"self", "space", "on_progress"}


@pytest.mark.parametrize("verb", METHODS)
def test_every_parameter_has_a_flag_of_its_name_and_default(verb: str) -> None:
    command = COMMANDS[(verb,)]
    options = {param.name: param for param in command.params}
    arguments = [param.name or "" for param in command.params if isinstance(param, click.Argument)]
    values = command.make_context(verb, arguments).params
    for name, parameter in inspect.signature(METHODS[verb]).parameters.items():
        if name in NOT_FLAGS or isinstance(options.get(name), click.Argument):
            continue
        assert f"--{name.replace('_', '-')}" in options[name].opts
        assert values[name] == parameter.default, name


def test_search_takes_the_other_names_of_mode_and_limit() -> None:
    options = {param.name: param.opts for param in COMMANDS[("search",)].params}
    assert "--source" in options["mode"]
    assert "--top-k" in options["limit"]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_the_flags_for_every_command(path: tuple[str, ...]) -> None:
    flags = {flag for param in COMMANDS[path].params for flag in param.opts}
    assert {"--db", "--space", "--json", "--debug"} <= flags


# --- What holds everywhere --------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
def test_flags_for_every_command_stand_before_the_verb_or_after_it(
    run: Run, home: Path, before: bool
) -> None:
    def place(*rest: str) -> tuple[str, ...]:
        flags = ("--db", "other.db", "--space", "work", "--json")
        return (*flags, *rest) if before else (*rest, *flags)

    assert run(*place("save", "kept apart")).json["status"] == "created"
    assert run(*place("status")).json["space"] == "work"
    assert run(*place("list")).json["total"] == 1
    assert run("list", "--json").json["total"] == 0
    with byheart.open(home / "other.db", space="work") as store:
        assert store.list().memories[0].content == "kept apart"


def test_a_flag_after_the_verb_wins_over_the_same_before_it(run: Run) -> None:
    run("--space", "a", "save", "text", "--space", "b")
    assert run("--space", "b", "list", "--json").json["total"] == 1
    assert run("--space", "a", "list", "--json").json["total"] == 0


def test_flags_reach_the_verbs_of_a_group(run: Run) -> None:
    for arguments in (
        ("--space", "x", "config", "get", "space"),
        ("config", "--space", "x", "get", "space"),
        ("config", "get", "space", "--space", "x"),
    ):
        assert run(*arguments).out == "x\n"


def test_the_reference_is_what_the_verbs_say() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == render_reference(), (
        "run: python -m byheart.interfaces.cli.reference > docs/cli.md"
    )


def test_the_reference_names_every_command_and_flag() -> None:
    text = render_reference()
    for path, command in COMMANDS.items():
        assert f"## byheart {' '.join(path)}\n" in text
        for param in command.params:
            if isinstance(param, click.Option):
                assert all(flag in text for flag in param.opts)


def test_groups_have_examples_as_well() -> None:
    assert all(
        command.examples for command in COMMANDS.values() if isinstance(command, VerbGroup | Verb)
    )


def test_version_names_byheart_and_its_parts(run: Run) -> None:
    own = importlib.metadata.version("byheart")
    assert run("version").out.startswith(f"byheart {own}\npython {platform.python_version()}, ")
    said = run("version", "--json").json
    assert (said["version"], said["parts"]["apsw"]) == (own, importlib.metadata.version("apsw"))


def test_help_lists_every_command_once_under_a_heading(run: Run) -> None:
    shown = run("--help").out
    for heading, verbs in GROUPS.items():
        section = shown.partition(f"{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line[2] != " "] == list(verbs)
