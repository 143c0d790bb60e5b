"""Hints name operations; each interface spells them in its own way."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from byheart.errors import Do, Hint, NotFound, Option, Placeholder, join_hints, spell_hint
from byheart.interfaces.cli.commands import byheart
from byheart.interfaces.commands import spell_command
from byheart.interfaces.mcp.hints import spell_tool
from byheart.interfaces.rest.hints import spell_on_page, spell_request
from byheart.model import Finding, to_wire
from byheart.store import MemoryStore
from tests.store_verbs import every_verb

SOURCE = Path(inspect.getfile(MemoryStore)).parent
# People use these; a person on the store's own machine logs in to the web page.
LOCAL = tuple(f"interfaces/{name}/" for name in ("cli", "hooks", "setup", "web"))
COMMANDS = byheart.list_commands(click.Context(byheart))
# Texts of these names are often hints: `join_hints` and `Hint(…)` combine them with others.
MAY_BE_HINTS = {"degraded", "message", "refusal", "remark", "unavailable"}
NAMES_COMMAND = re.compile(rf"byheart (?:{'|'.join(COMMANDS)})\b")


class Site(NamedTuple):
    """A place where an operation is named."""

    place: str
    do: Do


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Parse the files of the engine, and of the interfaces over the network."""
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        if not path.startswith(LOCAL):
            yield path, ast.parse(file.read_text(encoding="utf-8"))


def sites() -> Iterator[Site]:
    """Find the operations that are named, with a value for what is known only at run time."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Do":
                verb, *values = map(value_of, node.args)
                options = {str(each.arg): value_of(each.value) for each in node.keywords}
                yield Site(f"{path}:{node.lineno}", Do(verb, *values, **options))


def value_of(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else "mem_1"


def texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Find the texts of a file that are no docstrings."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield node


SITES = list(sites())


def test_no_text_that_the_network_may_show_names_a_command() -> None:
    found = [
        f"{path}:{text.lineno}: {text.value}"
        for path, tree in trees()
        for text in texts(tree)
        if NAMES_COMMAND.search(str(text.value))
    ]
    assert not found
    assert len(SITES) > 50


def test_no_hint_loses_its_operations_in_a_formatted_text() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue)
        for each in ast.walk(node.value)
        if getattr(each, "id", "") in ("Do", "Hint") or getattr(each, "attr", "") == "hint"
        if ast.unparse(each) != "problem.hint"  # it is spelled already
    ]
    assert not found


def test_no_reason_loses_its_operations_when_texts_are_combined() -> None:
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) or makes_plain_text(node)
        for each in ast.walk(node)
        if getattr(each, "attr", "") in MAY_BE_HINTS
        or getattr(each, "id", "") in MAY_BE_HINTS - {"message"}
    ]
    assert not found


def makes_plain_text(node: ast.AST) -> bool:
    """Tell whether a call is `"…".join(…)`, which makes plain text even of hints."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and isinstance(node.func.value, ast.Constant)
    )


@pytest.mark.parametrize("site", SITES, ids=[site.place for site in SITES])
def test_every_named_operation_exists_in_python_and_on_the_command_line(site: Site) -> None:
    if not site.do.is_command:
        signature = inspect.signature(every_verb()[site.do.verb])
        signature.bind(None, *site.do.values, **site.do.options)
    name, *words = shlex.split(spell_command(site.do))
    assert name == "byheart"
    assert parse(words)


@pytest.mark.parametrize("site", SITES, ids=[site.place for site in SITES])
def test_no_command_is_shown_over_the_network(site: Site) -> None:
    for spelling in (spell_request, spell_tool):
        assert not re.search(r"byheart|--|store\.", spelling(site.do))


@pytest.mark.parametrize("site", SITES, ids=[site.place for site in SITES])
def test_a_person_on_the_page_gets_a_place_on_it_or_a_command_and_no_request(site: Site) -> None:
    spelled = spell_on_page(site.do)
    assert not re.search(r"\b(GET|POST|PATCH|DELETE)\b|[{}]|store\.", spelled)
    assert spelled.startswith("byheart ") or re.search("screen|page|filter", spelled)


def parse(words: list[str]) -> bool:
    """Parse a command line without running it."""
    command: click.Command = byheart
    ctx = click.Context(byheart, info_name="byheart")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        following = command.get_command(ctx, words[0])
        if following is None:
            break
        command, words = following, words[1:]
        ctx = click.Context(command, parent=ctx)
    if isinstance(command, click.Group) and command.invoke_without_command is False:
        return False
    command.parse_args(click.Context(command, parent=ctx.parent), list(words))
    return True


@pytest.mark.parametrize(
    ("do", "python", "command", "request_", "tool"),
    [
        (
            Do("get", "mem_1"),
            'store.get("mem_1")',
            "byheart get mem_1",
            "GET /memories/mem_1",
            'memory_get with {"memory_id": "mem_1"}',
        ),
        (
            Do("restore", "mem_1"),
            'store.restore("mem_1")',
            "byheart restore mem_1",
            "POST /memories/mem_1/restore",
            "the operation restore mem_1, which no tool offers: ask the user to run it",
        ),
        (
            Do("update", "mem_1", ttl_days=None),
            'store.update("mem_1", ttl_days=None)',
            "byheart update mem_1 --clear ttl-days",
            'PATCH /memories/mem_1 with {"ttl_days": null}',
            'memory_update with {"memory_id": "mem_1", "ttl_days": null}',
        ),
        (
            Do("supersede", "a b"),
            'store.supersede("a b")',
            "byheart supersede 'a b' --undo",
            "POST /memories/a%20b/supersede",
            "the operation supersede a b, which no tool offers: ask the user to run it",
        ),
        (
            Do("list", kind="file"),
            'store.list(kind="file")',
            "byheart list --kind file",
            "GET /memories?kind=file",
            'memory_search with {"granularity": "coarse"}',
        ),
        (
            Do("search", Placeholder("QUERY")),
            "store.search(query)",
            "byheart search QUERY",
            'POST /search with {"query": "…"}',
            'memory_search with {"query": "…"}',
        ),
        (
            Do("admin.doctor", fix=True),
            "store.admin.doctor(fix=True)",
            "byheart doctor --fix",
            "the operation doctor with fix, which the operator of the store can run",
            "the operation doctor with fix, which no tool offers: ask the user to run it",
        ),
        (
            Do("config set", "enabled", "true"),
            "byheart config set enabled true",
            "byheart config set enabled true",
            "the operation config set enabled true, which the operator of the store can run",
            "the operation config set enabled true, which no tool offers: ask the user to run it",
        ),
        (
            Option("metadata", {"client": {}}),
            "metadata={'client': {}}",
            "--metadata '{'\"'\"'client'\"'\"': {}}'",
            '"metadata": {"client": {}}',
            '"metadata": {"client": {}}',
        ),
        (
            Option("on_error", "skip"),
            'on_error="skip"',
            "--on-error skip",
            '"on_error": "skip"',
            '"on_error": "skip"',
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Do | Option) else "",
)
def test_an_operation_is_spelled_for_each_interface(
    do: Do | Option, python: str, command: str, request_: str, tool: str
) -> None:
    assert str(do) == python
    assert spell_command(do) == command
    assert spell_request(do) == request_
    assert spell_tool(do) == tool


def test_a_hint_keeps_its_operations_when_it_becomes_part_of_another_text() -> None:
    error = NotFound("mem_1 was forgotten", Hint("bring it back with: ", Do("restore", "mem_1")))
    whole = "not now: " + str(error) + "!"
    joined = join_hints("; ", (None, whole, "", "later"))
    assert joined is not None
    assert joined == (
        'not now: mem_1 was forgotten (bring it back with: store.restore("mem_1"))!; later'
    )
    assert spell_hint(joined, spell_command) == (
        "not now: mem_1 was forgotten (bring it back with: byheart restore mem_1)!; later"
    )
    finding = Finding("check", False, "plain", Hint("run: ", Do("admin.doctor")))
    assert to_wire([finding], spell_command)[0]["hint"] == "run: byheart doctor"
    assert to_wire([finding])[0]["hint"] == "run: store.admin.doctor()"
