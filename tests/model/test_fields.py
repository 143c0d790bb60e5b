"""The table of fields agrees with everything that is spelled out beside it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import byheart
from byheart.contracts import StoredText
from byheart.interfaces.operations import OPERATIONS
from byheart.memory.save_requests import SaveRequest
from byheart.model import Filter, Memory, MemoryFields
from byheart.model.field_types import arrange
from byheart.model.fields import (
    BY_NAME,
    FIELDS,
    FILTERS,
    LOG_FIELDS,
    SAVE_FIELDS,
    UPDATE_FIELDS,
)
from byheart.model.memories import ChangedFields, ContextFilters, FilterFields
from tests.store_verbs import every_verb


def names_of(noun: Any) -> list[str]:
    return [each.name for each in fields(noun)]


def test_each_field_is_in_the_table_once() -> None:
    assert len(BY_NAME) == len(FIELDS)
    assert len(FILTERS) == sum(len(field.filters) for field in FIELDS)


def test_the_table_has_the_fields_of_a_memory() -> None:
    assert {field.name for field in FIELDS if field.owner == "memory"} == set(names_of(Memory))


def test_the_fields_of_a_stored_text_are_its_own() -> None:
    texts = {field.name for field in FIELDS if field.owner == "text"}
    assert texts == set(names_of(StoredText)) - {"memory", "chunks", "vectors"}


def test_a_field_is_nullable_exactly_where_a_memory_may_lack_it() -> None:
    for each in fields(Memory):
        assert BY_NAME[each.name].nullable == ("None" in str(each.type)), each.name


def test_hits_carry_the_fields_that_are_shown() -> None:
    assert {field.name for field in FIELDS if field.shown} == set(names_of(MemoryFields))


def test_a_filter_has_each_filter_of_the_table() -> None:
    assert set(names_of(Filter)) - {"superseded", "forgotten"} == set(FILTERS)


def test_defaults_of_a_filter_are_those_of_the_table() -> None:
    nothing = Filter(space="home")
    for name, (asked, _) in FILTERS.items():
        if not asked.always:
            assert asked.check(name, asked.default) == getattr(nothing, name), name


def test_typed_filters_name_each_filter() -> None:
    assert get_type_hints(FilterFields).keys() == set(FILTERS)
    assert set(ContextFilters.__annotations__) == set(FILTERS) - {"session_id", "include_global"}


def names_given_to(verb: str) -> set[str]:
    """Name what a verb takes: the parameters of its signature and its typed keywords."""
    method = every_verb()[verb]
    signature, hints = inspect.signature(method).parameters, get_type_hints(method)
    spelled = {name for name, each in signature.items() if each.kind is not each.VAR_KEYWORD}
    [keywords] = (hints[name] for name in signature.keys() - spelled)
    assert not spelled & get_type_hints(get_args(keywords)[0]).keys()
    return spelled | get_type_hints(get_args(keywords)[0]).keys()


@pytest.mark.parametrize(
    "verb", ["search", "list", "recall", "forget", "admin.cleanup", "admin.dedupe"]
)
def test_verbs_that_filter_take_each_filter(verb: str) -> None:
    assert names_given_to(verb) >= set(FILTERS)


@pytest.mark.parametrize(
    ("verb", "accepted", "own"),
    [("save", SAVE_FIELDS, {"self", "on_progress"}), ("log", LOG_FIELDS, {"self"})],
)
def test_verbs_that_write_take_each_field(
    verb: str, accepted: tuple[str, ...], own: set[str]
) -> None:
    assert names_given_to(verb) - own == set(accepted)


@pytest.mark.parametrize("verb", ["save", "log", "search", "recall", "list", "forget"])
def test_offered_defaults_are_those_of_the_table(verb: str) -> None:
    writes = verb in ("save", "log")
    for name, parameter in OPERATIONS[verb].parameters.items():
        if writes and name in BY_NAME and (verb, name) != ("log", "kind"):
            assert parameter.default == BY_NAME[name].default, name
        if not writes and name in FILTERS:
            assert parameter.default == FILTERS[name][0].default, name


def test_a_save_request_has_each_field_with_its_default() -> None:
    defaults = {each.name: each.default for each in fields(SaveRequest)}
    for name in {*SAVE_FIELDS, *LOG_FIELDS} - {"content", "space", "ttl_days"}:
        if name not in ("tags", "metadata"):  # a request holds them as they are stored: empty
            assert defaults[name] == BY_NAME[name].default, name


def test_update_can_change_each_field_that_it_accepts() -> None:
    assert get_type_hints(ChangedFields).keys() == set(UPDATE_FIELDS)


def test_each_field_that_callers_give_is_checked_and_described() -> None:
    for field in FIELDS:
        if field.verbs:
            assert field.schema is not None, field.name
        for asked in field.filters:
            assert asked.schema is not None or field.schema is not None, asked.name


def test_names_are_moved_behind_others_and_the_rest_keeps_its_order() -> None:
    assert arrange("abcd", {"a": "c", "d": "a"}) == ("b", "c", "a", "d")
    assert arrange("abc", {"z": "a"}) == ("a", "b", "c")


# Modules that may name many fields at once: the table; the order of the front matter; constructors
# of other nouns, which hold only some of the fields.
_MAY_LIST = {
    *("model/fields.py", "model/session_fields.py", "model/trust_fields.py"),
    *("model/validity_fields.py", "transfer/vault.py"),
    *("conversation/prompt/entries.py", "conversation/turns.py", "interfaces/mcp/tool_texts.py"),
    *("transfer/foreign/databases.py", "transfer/foreign/mem0.py", "workspace/indexing.py"),
}
_MOST_NAMED = 5
# The names that callers give.
_NAMES = {field.name for field in FIELDS if field.verbs} | FILTERS.keys()


def lists_in(module: Path) -> Iterator[tuple[int, set[str]]]:
    """Give the line and the names of each literal and call that names fields."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = [part for each in node.elts for part in ast.walk(each)]
            found = {part.value for part in parts if isinstance(part, ast.Constant)}
        elif isinstance(node, ast.Dict):
            found = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Call):
            found = {keyword.arg for keyword in node.keywords}
        else:
            continue
        yield getattr(node, "lineno", 0), found & _NAMES


def test_no_other_module_lists_the_fields_of_a_memory() -> None:
    root = Path(byheart.__file__).parent
    listing = {
        f"{module.relative_to(root).as_posix()}:{line}": names
        for module in root.rglob("*.py")
        if module.relative_to(root).as_posix() not in _MAY_LIST
        for line, names in lists_in(module)
        if len(names) > _MOST_NAMED
    }
    assert not listing, "derive these from model/fields.py"
