"""The table of operations: complete, true to the verbs, and walled in by grants."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from byheart import open as open_store
from byheart.errors import InvalidInput, NotFound
from byheart.interfaces.cli.commands import byheart
from byheart.interfaces.operations import OPERATIONS, Forbidden, Grant, perform, perform_many
from byheart.interfaces.operations.schemas import describe
from byheart.model.compat_names import COMPAT_NAMES
from byheart.store import MemoryStore
from tests.store_verbs import every_verb

# What no door offers, and why. `byheart copy` is no verb of a store at all: it opens two stores by
# their addresses, with the owner's rights, and REST and MCP serve one store that is open already.
LOCAL = {
    **dict.fromkeys(("admin.backup", "export", "import_"), "the machine's owner moves files"),
    **dict.fromkeys(
        (
            f"admin.{verb}"
            for verb in ("bench", "doctor", "embed_pending", "count_pending", "embed_share")
        ),
        "the owner looks after the store",
    ),
    **dict.fromkeys(
        (f"api_keys.{verb}" for verb in ("create", "list", "revoke", "check")), "keys to the doors"
    ),
    **dict.fromkeys(
        (f"logins.{verb}" for verb in ("create_code", "exchange", "check", "end")),
        "the owner logs a browser in, which then uses a cookie",
    ),
    **dict.fromkeys(
        ("close", "admin.prepare", "admin.load_model", "admin.unload"), "the life of the process"
    ),
    **dict.fromkeys(("admin.complete_id", "admin.short_ids"), "short ids are for people who type"),
    "admin.reembed": "the machine's owner chooses the model",
    **dict.fromkeys(("save_many", "log_many"), "offered as lists of save and log"),
    **dict.fromkeys(
        ("index", "workspaces.watch", "workspaces.drop"), "the machine's owner names its folders"
    ),
    "workspaces.list": "part of status",
    "views.names": "MCP completes names with it",
    "views.changes": "the page follows them as a stream of events",
    "write_to_file": "offered by REST inside one folder",
    "reconstruct": "the content of get",
    **dict.fromkeys(("sessions.of", "sessions.identify"), "what grants are checked with"),
    "remind": "what hooks put into prompts",
    "sessions.follow": "what hooks read transcripts with",
    "sessions.note_shown": "who makes prompts without `context` does so in Python",
    "admin.uses_earlier_model": "part of status",
}


def test_every_verb_is_offered_or_kept_for_a_reason() -> None:
    offered = {each.verb or each.name for each in OPERATIONS.values()}
    assert set(every_verb()) == offered | set(LOCAL)
    assert not offered & set(LOCAL)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_parameters_are_those_of_the_verb_and_have_valid_schemas(operation: Any) -> None:
    signature = inspect.signature(every_verb()[operation.verb or operation.name]).parameters
    for name, parameter in signature.items():
        if name in ("self", "on_progress") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        offered = operation.parameters[name]
        assert offered.required == (parameter.default is parameter.empty)
        if not offered.required:
            assert offered.default == parameter.default
    for each in operation.parameters.values():
        Draft202012Validator.check_schema(each.schema)
        assert each.schema["description"]
        if each.default is not None:
            Draft202012Validator(each.schema).validate(each.default)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_answers_can_be_described(operation: Any) -> None:
    defined: dict[str, Any] = {}
    schema = describe(operation.result, defined)
    Draft202012Validator.check_schema({**schema, "$defs": defined})
    assert schema.keys() & {"type", "$ref", "anyOf"}


def test_an_unknown_parameter_is_refused_with_the_nearest(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="did you mean session_id"):
        perform(store, OPERATIONS["search"], {"query": "x", "sesion_id": "s"}, Grant())


def test_a_missing_parameter_is_named(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="save needs content"):
        perform(store, OPERATIONS["save"], {}, Grant())


WRITING = sorted(name for name, each in OPERATIONS.items() if each.needs == "write")


@pytest.mark.parametrize("name", WRITING)
def test_reading_grants_never_write(store: MemoryStore, name: str) -> None:
    with pytest.raises(Forbidden, match="may read only"):
        perform(store, OPERATIONS[name], {}, Grant("read", "default"))


@pytest.mark.parametrize(("name", "flag"), [("dedupe", "apply"), ("stats", "reset")])
def test_a_flag_that_writes_is_refused_to_a_reading_grant(
    store: MemoryStore, name: str, flag: str
) -> None:
    reader = Grant("read", "default")
    perform(store, OPERATIONS[name], {}, reader)
    with pytest.raises(Forbidden):
        perform(store, OPERATIONS[name], {flag: True}, reader)


@pytest.mark.parametrize("items", [[], [{"content": "x"}], None, ["x"]])
def test_reading_grants_never_write_a_list_not_even_an_empty_one(
    store: MemoryStore, items: object
) -> None:
    with pytest.raises(Forbidden, match="may read only"):
        perform_many(store, OPERATIONS["save"], items, Grant("read", "default"))


@pytest.mark.parametrize("items", [[], None, {}, "ab", [1], [{"session_id": "ours"}]])
def test_a_list_without_objects_is_refused(store: MemoryStore, items: object) -> None:
    with pytest.raises(InvalidInput, match="item"):
        perform_many(store, OPERATIONS["log"], items, Grant(), {"session_id": "ours"})


def test_a_verb_for_one_thing_takes_no_list(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="no list"):
        perform_many(store, OPERATIONS["get"], [{"memory_id": "x"}], Grant())


def test_one_item_too_far_and_none_is_saved(store: MemoryStore) -> None:
    grant = Grant("write", "default", "ours")
    fine = {"content": "Fine."}
    for wrong in ({"session_id": "theirs"}, {"space": "theirs"}, {"colour": "red"}):
        with pytest.raises((Forbidden, InvalidInput), match="item 1: "):
            perform_many(store, OPERATIONS["save"], [fine, {**fine, **wrong}], grant)
    with pytest.raises(Forbidden, match="bound to the session"):
        perform_many(store, OPERATIONS["log"], [], grant, {"session_id": "theirs"})
    assert store.list().total == 0
    [saved] = perform_many(store, OPERATIONS["save"], [fine], grant)
    assert store.get(saved["memory_id"]).session_id == "ours"


@pytest.mark.parametrize("name", ["status", "stats"])
def test_only_the_owner_is_told_of_the_whole_store(store: MemoryStore, name: str) -> None:
    operation = OPERATIONS[name]
    whole = perform(store, operation, {}, Grant())
    told = perform(store, operation, {}, Grant("read", "default"))
    assert whole["store"] == store.status().store
    assert set(whole) - set(told) == set(operation.withheld)
    assert whole["store"] not in str(told)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("recall", {"query": "x", "max_tokens": 0}),
        ("context", {"session_id": "s", "max_tokens": 0}),
        ("context", {"session_id": "s", "top_k": 101}),
        ("dedupe", {"threshold": 0.79}),
        ("dedupe", {"threshold": 1.01}),
        ("update", {"expected_version": 0}),
        ("update", {"expected_version": 10**9 + 1}),
    ],
)
def test_schemas_have_the_bounds_that_the_verbs_check(
    store: MemoryStore, name: str, given: dict[str, Any]
) -> None:
    value = given[list(given)[-1]]
    assert not Draft202012Validator(OPERATIONS[name].parameters[list(given)[-1]].schema).is_valid(
        value
    )
    if name == "update":
        given = {"memory_id": store.save("A fact.").memory_id, **given}
    with pytest.raises(InvalidInput, match=str(value)):
        perform(store, OPERATIONS[name], given, Grant())


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_no_grant_of_a_space_may_name_another(store: MemoryStore, operation: Any) -> None:
    with pytest.raises(Forbidden, match="bound to the space"):
        perform(store, operation, {"space": "theirs"}, Grant("write", "mine"))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_no_grant_of_a_session_reaches_another(store: MemoryStore, operation: Any) -> None:
    """Whatever the verb: naming the session or a memory of it, or asking for everything."""
    theirs = store.save("Theirs, about harbours.", session_id="theirs").memory_id
    store.save("Ours, about harbours.", session_id="ours")
    grant = Grant("write", "default", "ours")
    given: dict[str, Any] = {"query": "harbours", "role": "user", "content": "x", "hard": False}
    given |= {"receipt_id": store.context("theirs", "harbours").receipt_id}
    given |= {"memory_id": theirs, "chunk_id": f"{theirs}#0", "keep": theirs, "others": [theirs]}
    given |= {
        "text": "x",
        "names": ["x"],
        "name": "x",
        "new_name": "y",
        "into": "y",
        "dry_run": False,
    }
    asked = {name: value for name, value in given.items() if name in operation.parameters}
    if operation.reach == "filter":
        with pytest.raises((Forbidden, NotFound)):
            perform(store, operation, asked | {"session_id": "theirs"}, grant)
        asked.pop("memory_id", None)
        answer = perform(store, operation, asked, grant)
        assert theirs not in str(answer)
    else:
        with pytest.raises((Forbidden, NotFound)):
            perform(store, operation, asked, grant)
    assert store.get(theirs).version == 1


def test_a_grant_of_a_session_lists_behind_no_memory_of_another(store: MemoryStore) -> None:
    grant = Grant("read", "default", "ours")
    ours = store.save("Ours.", session_id="ours").memory_id
    theirs = store.save("Theirs.", session_id="theirs").memory_id
    assert perform(store, OPERATIONS["list"], {"after": ours}, grant)["memories"] == []
    with pytest.raises(NotFound, match="in this session"):
        perform(store, OPERATIONS["list"], {"after": theirs}, grant)


def test_a_grant_of_a_session_writes_to_that_session(store: MemoryStore) -> None:
    grant = Grant("write", "default", "ours")
    saved = perform(store, OPERATIONS["save"], {"content": "New."}, grant)
    assert store.get(saved["memory_id"]).session_id == "ours"
    logged = perform(store, OPERATIONS["log"], {"role": "user", "content": "Hi there."}, grant)
    assert store.get(logged["memory_id"]).session_id == "ours"


def test_an_earlier_text_of_another_session_is_behind_the_wall(store: MemoryStore) -> None:
    memory_id = store.save("First, in secret.", session_id="theirs").memory_id
    store.update(memory_id, content="Now for us.", session_id="ours")
    grant = Grant("read", "default", "ours")
    read = perform(store, OPERATIONS["get"], {"memory_id": memory_id}, grant)
    assert read["content"] == "Now for us."
    with pytest.raises(NotFound):
        perform(store, OPERATIONS["get"], {"memory_id": f"{memory_id}@1"}, grant)


def test_the_history_begins_for_a_session_when_the_memory_came_into_it(store: MemoryStore) -> None:
    memory_id = store.save("First, in secret.", session_id="theirs", title="Hush").memory_id
    store.update(memory_id, content="Second, in secret.", tags=["hidden"])
    store.update(memory_id, content="Now for us.", session_id="ours", title="Open")
    store.update(memory_id, content="Now for us, and longer.")
    asked = {"memory_id": memory_id}
    seen = perform(store, OPERATIONS["history"], asked, Grant("read", "default", "ours"))
    assert [(entry["version"], "content" in entry["changes"]) for entry in seen] == [
        (3, False),
        (4, True),
    ]
    assert seen[0]["changes"] == {}
    assert seen[1]["changes"]["content"]["from"] == "Now for us."
    for secret in ("secret", "Hush", "hidden", "theirs"):
        assert secret not in str(seen)
    whole = perform(store, OPERATIONS["history"], asked, Grant("read", "default"))
    assert [entry["version"] for entry in whole] == [1, 2, 3, 4]
    assert whole[2]["changes"]["content"]["from"] == "Second, in secret."


def test_the_history_of_a_text_that_was_global_is_seen_whole(store: MemoryStore) -> None:
    memory_id = store.save("For all.").memory_id
    store.update(memory_id, content="For us.", session_id="ours")
    grant = Grant("read", "default", "ours")
    seen = perform(store, OPERATIONS["history"], {"memory_id": memory_id}, grant)
    assert [entry["operation"] for entry in seen] == ["create", "update"]
    assert seen[1]["changes"]["content"] == {"from": "For all.", "to": "For us."}


def test_the_history_says_whose_token_it_was(store: MemoryStore) -> None:
    memory_id = store.save("A fact.").memory_id
    grant = Grant("write", "default", who="laptop")
    perform(store, OPERATIONS["update"], {"memory_id": memory_id, "title": "T", "who": "me"}, grant)
    assert store.history(memory_id)[-1].who == "laptop"


# --- The command line offers the same -----------------------------------------------------------

COMMANDS = {
    "rename_entity": ("entities", "rename"),
    "merge_entities": ("entities", "merge"),
    "keep_item": ("review", "keep"),
    "unkeep_item": ("review", "unkeep"),
    "session_stats": ("sessions", "stats"),
    "forget_session": ("sessions", "forget"),
    "restore_session": ("sessions", "restore"),
}
# What the command line says in another way, and how.
SAID_OTHERWISE = {
    **dict.fromkeys((name, "space") for name in OPERATIONS),  # a flag of every command
    **{(verb, "content"): "its words, a file or stdin" for verb in ("save", "update", "log")},
    **{
        (verb, each.name): "another name of one flag"
        for verb, names in COMPAT_NAMES.items()
        for each in names
        if each.means is not None
    },
    **{(verb, "memory_id"): "one or several arguments" for verb in ("forget", "trust", "distrust")},
    **{(verb, "trusted"): "the verb says it" for verb in ("quarantine", "trust", "distrust")},
    **{
        (verb, name): "commands that change take a session's own, as it is now"
        for verb in ("forget", "cleanup", "dedupe", "trust", "distrust")
        for name in ("as_of", "include_global")
    },
    ("review", "as_of"): "what is now is reviewed",
}
# The command line counts first and asks; --dry-run only counts.
OTHER_DEFAULTS = {
    (verb, "dry_run") for verb in ("forget", "cleanup", "forget_session", "trust", "distrust")
}


def command_of(operation: str) -> click.Command:
    command: click.Command = byheart
    for name in COMMANDS.get(operation, (operation,)):
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found, f"there is no command for {operation}"
        command = found
    return command


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_command_has_the_parameters_and_defaults_of_its_verb(operation: Any) -> None:
    command = command_of(operation.name)
    offered = {param.name: param for param in command.params}
    arguments = [each.name or "" for each in command.params if isinstance(each, click.Argument)]
    # As a child of the program: a command remembers the names of --help that it was first given.
    parent = byheart.make_context("byheart", [], resilient_parsing=True)
    values = command.make_context(
        operation.name, arguments, parent=parent, resilient_parsing=True
    ).params
    for name, parameter in operation.parameters.items():
        if (operation.name, name) in SAID_OTHERWISE:
            assert name not in offered or name == "space", f"{name} is offered after all"
            continue
        if isinstance(offered[name], click.Argument):
            continue
        assert f"--{name.replace('_', '-')}" in offered[name].opts
        # What is not said to `save` is left to the library.
        if (operation.name, name) not in OTHER_DEFAULTS and values[name] is not None:
            assert values[name] == parameter.default, name
        elif operation.name != "save" and (operation.name, name) not in OTHER_DEFAULTS:
            assert parameter.default is None, name


def test_no_name_leads_a_grant_of_a_session_to_the_files_of_another(
    store: MemoryStore, tmp_path: Path
) -> None:
    """A foreign id may be followed by anything: `note1#/../secret.md` is still no path."""
    foreign = tmp_path / "foreign.jsonl"
    with open_store(tmp_path / "other.db", embedding_provider="hash") as other:
        saved = other.save("Ducks are ours.", session_id="s1")
        other.export(foreign)
    foreign.write_text(foreign.read_text().replace(saved.memory_id, "note1"))
    assert store.import_(foreign).imported == 1
    store.save("The walrus is theirs.", session_id="s2", path="/secret/plan.md")
    grant = Grant("read", store.space, "s1")
    up = "/..".join([""] * 20)
    for verb, key in (("get", "memory_id"), ("expand", "chunk_id")):
        for name in ("/secret/plan.md", "/secret/plan.md:1", f"note1#{up}/secret/plan.md"):
            with pytest.raises((NotFound, InvalidInput)):
                perform(store, OPERATIONS[verb], {key: name}, grant)


def test_a_grant_of_a_session_opens_files_of_its_own_and_those_that_are_global_by_path(
    store: MemoryStore,
) -> None:
    deep = "/deep" * 60
    store.save("The gate is open.", session_id="s1", path=f"{deep}/gate.md")
    store.save("The map is for all.", path="/shared/map.md")
    grant = Grant("read", store.space, "s1")
    for path, word in ((f"{deep}/gate.md", "gate"), ("/shared/map.md", "map")):
        assert word in perform(store, OPERATIONS["get"], {"memory_id": path}, grant)["content"]
        found = perform(store, OPERATIONS["expand"], {"chunk_id": f"{path}:1"}, grant)
        assert word in found["expanded_content"]
    assert store.sessions.of(["/shared/map.md", "/nowhere.md"]) == {"/shared/map.md": None}


@pytest.mark.parametrize(("verb", "key"), [("get", "memory_id"), ("expand", "chunk_id")])
def test_a_path_that_changes_hands_after_it_was_checked_leads_a_grant_to_what_was_checked(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, verb: str, key: str
) -> None:
    store.save("The gate is open.", session_id="s1", path="/plan.md")
    read = getattr(store, verb)

    def come_in_between(*names: Any, **given: Any) -> Any:
        store.save("The walrus is theirs.", session_id="s2", path="/plan.md")
        return read(*names, **given)

    monkeypatch.setattr(store, verb, come_in_between)
    found = perform(store, OPERATIONS[verb], {key: "/plan.md:1"}, Grant("read", store.space, "s1"))
    assert "gate" in str(found)
    assert "walrus" not in str(found)
    with pytest.raises(NotFound):
        perform(store, OPERATIONS[verb], {key: "/plan.md:1"}, Grant("read", store.space, "s1"))


def test_a_grant_of_a_session_is_not_told_how_long_the_files_of_others_are(
    store: MemoryStore,
) -> None:
    store.save("The walrus is theirs.", session_id="s2", path="/secret/plan.md")
    for verb, key in (("get", "memory_id"), ("expand", "chunk_id")):
        with pytest.raises(NotFound, match="in this session"):
            perform(
                store,
                OPERATIONS[verb],
                {key: "/secret/plan.md:99"},
                Grant("read", store.space, "s1"),
            )
        with pytest.raises(NotFound, match="no line 99"):
            perform(
                store,
                OPERATIONS[verb],
                {key: "/secret/plan.md:99"},
                Grant("read", store.space, "s2"),
            )


def test_a_grant_of_a_session_sees_nothing_of_the_other_sessions_of_a_task(
    store: MemoryStore,
) -> None:
    store.log("s2", "user", "The import takes 40 minutes.", task_code="shop")
    asked = {"session_id": "s1", "query": "how long is the import?", "include_task": "shop"}
    with pytest.raises(Forbidden, match="other sessions"):
        perform(store, OPERATIONS["context"], asked, Grant(session_id="s1"))
    assert "40 minutes" in perform(store, OPERATIONS["context"], asked, Grant())["text"]
