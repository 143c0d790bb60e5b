"""`token` on the command line."""

from __future__ import annotations

import inspect
import re

import byheart
from byheart.interfaces.cli.api_keys import create_token
from byheart.verbs.api_keys import ApiKeyVerbs
from tests.interfaces.cli.conftest import Run

MOMENT_DAYS = 1e-9  # over before the next line


def test_a_pipe_gets_the_secret_alone(run: Run, library: byheart.MemoryStore) -> None:
    ran = run("token", "create", "laptop")
    assert (ran.code, ran.err) == (0, "")
    token = library.api_keys.check(ran.out.removesuffix("\n"))
    assert token is not None
    assert (token.name, token.access, token.space) == ("laptop", "write", "default")


def test_json_is_what_the_library_returns(run: Run, library: byheart.MemoryStore) -> None:
    flags = ("--access", "read", "--session-id", "s1", "--ttl-days", "30", "--space", "work")
    created = run("token", "create", "helper", *flags, "--json").json
    assert set(created) == {"token", "secret"}
    [token] = library.api_keys.list()
    assert created["token"] == byheart.to_wire(token)
    assert (token.access, token.session_id, token.space) == ("read", "s1", "work")
    assert token.expires_at is not None
    assert run("token", "list", "--json").json == byheart.to_wire(library.api_keys.list())
    revoked = run("token", "revoke", "helper", "--json").json
    assert revoked == byheart.to_wire(token)
    assert library.api_keys.list() == ()


def test_every_parameter_has_a_flag_of_its_name_and_default() -> None:
    given = create_token.make_context("create", ["laptop"]).params
    parameters = inspect.signature(ApiKeyVerbs.create).parameters
    defaults = {name: each.default for name, each in parameters.items()}
    del defaults["self"], defaults["space"]  # a flag of every command
    assert given == {**defaults, "name": "laptop"}


def test_a_terminal_says_what_the_token_may_do(terminal: Run) -> None:
    ran = terminal("token", "create", "helper", "--access", "read", "--session-id", "s1")
    assert ran.code == 0
    assert "may read in space default, session s1" in ran.out
    assert re.search(r"^bh_[\w-]{43}$", ran.out, re.MULTILINE)
    assert "only once" in ran.out


def test_tokens_are_listed_without_secrets(run: Run, library: byheart.MemoryStore) -> None:
    assert run("token", "list").out.startswith("There are no API keys.")
    secret = library.api_keys.create("laptop").secret
    library.api_keys.create("late", space="work", ttl_days=MOMENT_DAYS)
    lines = run("token", "list").out.splitlines()
    assert lines[0].split() == [
        *("NAME", "FOR", "ACCESS", "VOICE", "SPACE", "SESSION", "MADE", "USED", "EXPIRES", "ID"),
    ]
    assert lines[1].split()[:6] == ["laptop", "program", "write", "agent", "default", "-"]
    assert lines[1].split()[7:9] == ["never", "never"]
    assert "expired 20" in lines[2]
    assert len(run("token", "list", "--space", "work").out.splitlines()) == 2
    assert secret not in "".join(lines)


def test_a_token_is_revoked_by_name(run: Run, library: byheart.MemoryStore) -> None:
    secret = library.api_keys.create("laptop").secret
    ran = run("token", "revoke", "laptop")
    assert ran.code == 0
    assert ran.out.startswith("✓  revoked  laptop  tok_")
    assert library.api_keys.check(secret) is None


def test_what_goes_wrong_is_said_with_a_hint(run: Run) -> None:
    run("token", "create", "laptop")
    again = run("token", "create", "laptop")
    assert (again.code, again.out) == (1, "")
    assert (
        "hint: choose another name, or revoke that one first: byheart token revoke laptop"
        in again.err
    )
    unknown = run("token", "revoke", "nobody")
    assert (unknown.code, unknown.out) == (1, "")
    assert "there is no API key 'nobody'" in unknown.err
    assert "hint: see which there are with: byheart token list" in unknown.err
    assert run("token", "create", "x", "--access", "admin").code == 2
    assert run("token", "create", "x", "--ttl-days", "-1").code == 2
    no_time = run("token", "create", "x", "--ttl-days", "0")
    assert (no_time.code, no_time.out) == (2, "")
    assert "hint: give more than 0 days" in no_time.err
    assert run("token", "create").code == 2


def test_a_token_can_be_made_before_anything_is_saved(run: Run) -> None:
    assert run("token", "create", "first", "--db", "new.db").out.startswith("bh_")
    assert "first" in run("token", "list", "--db", "new.db").out
    assert run("token", "list", "--db", "none.db").code == 1
