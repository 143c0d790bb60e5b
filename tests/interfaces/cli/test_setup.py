"""`setup` on the command line, in a home of its own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from byheart.errors import ByheartError
from byheart.interfaces.setup import config_file, registration
from byheart.interfaces.setup.clients import CLIENTS, this_machine
from byheart.interfaces.setup.launching import Launch, Running
from byheart.interfaces.setup.removal import name_removal
from tests.interfaces.cli.conftest import Run

USER_FILES = {
    "claude-code": ".claude.json",
    "claude-desktop": "config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "vscode": "config/Code/User/mcp.json",
    "gemini": ".gemini/settings.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": "config/zed/settings.json",
    "opencode": "config/opencode/opencode.json",
}
HELD = {
    "claude-code": '{\n  "numStartups": 3,\n  "mcpServers": {\n    "o": {"command": "x"}\n  }\n}\n',
    "claude-desktop": '{"globalShortcut": "", "mcpServers": {}}',
    "cursor": '{\n\t"mcpServers": {\n\t\t"o": {"url": "http://x"}\n\t}\n}',
    "codex": 'model = "x" # mine\r\n\r\n[mcp_servers.o]\r\ncommand = "x"\r\n# end',
    "vscode": '{\n  // mine\n  "servers": {\n    "o": {}, // other\n  },\n  "inputs": [],\n}\n',
    "gemini": '{\n  "theme": "x",\n  "mcpServers": {\n    "o": {"httpUrl": "http://x"}\n  }\n}\n',
    "windsurf": '{\n  "mcpServers": {}\n}\n',
    "zed": '// mine\n{\n  "context_servers": {\n    "o": {"command": "x"},\n  },\n}\n',
    "opencode": '{\n  "mcp": {\n    "o": {"type": "remote", "url": "http://x"}\n  }\n}\n',
}
clients = pytest.mark.parametrize("client", USER_FILES)


@pytest.fixture(autouse=True)
def _no_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BYHEART_DB_PATH")  # else it is written into every file


def parsed(client: str, text: str) -> Any:
    servers = CLIENTS[client].servers
    return servers.read(text)


def write(home: Path, client: str, text: str) -> Path:
    path = home / USER_FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@clients
def test_a_client_is_set_up_where_nothing_was(run: Run, home: Path, client: str) -> None:
    ran = run("setup", client)
    assert (ran.code, ran.err) == (0, "")
    assert "is set up\n" in ran.out
    path = home / USER_FILES[client]
    entry = parsed(client, path.read_text())
    assert Path(entry["command"]).name == "byheart"
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == ["mcp"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("setup", client, "--undo").code == 0
    assert not path.exists()
    assert not list(path.parent.glob("*backup*"))


@clients
def test_what_a_client_has_already_stays_and_comes_back(run: Run, home: Path, client: str) -> None:
    path = write(home, client, HELD[client])
    path.chmod(0o640)
    done = run("setup", client, "--json").json
    assert done["action"] == "added"
    after = path.read_bytes().decode()
    kept = iter(after)
    assert all(character in kept for character in HELD[client])
    assert parsed(client, after)["args"] == ["mcp"]
    assert path.stat().st_mode & 0o777 == 0o640
    backup = Path(done["backup"])
    assert backup.parent == path.parent
    assert backup.read_bytes() == HELD[client].encode()
    assert backup.stat().st_mode & 0o777 == 0o640
    assert run("setup", client, "--undo", "--json").json["action"] == "removed"
    assert path.read_bytes() == HELD[client].encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.glob(".*.tmp")] == []


@clients
def test_a_second_time_changes_nothing(run: Run, home: Path, client: str) -> None:
    path = write(home, client, HELD[client])
    run("setup", client)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    ran = run("setup", client)
    assert (ran.code, ran.err) == (0, "")
    assert "is set up already" in ran.out
    assert run("setup", client, "--json").json["action"] == "unchanged"
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before


@clients
def test_a_dry_run_shows_the_change_and_makes_none(run: Run, home: Path, client: str) -> None:
    path = write(home, client, HELD[client])
    before = sorted(home.rglob("*"))
    ran = run("setup", client, "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"--- {path}\n+++ {path}\n")
    assert any(line.startswith("+") and "mcp" in line for line in ran.out.splitlines())
    assert run("setup", client, "--dry-run", "--json").json["dry_run"] is True
    assert path.read_bytes() == HELD[client].encode()
    assert sorted(home.rglob("*")) == before


def test_a_dry_run_of_an_undo_shows_what_goes(run: Run, home: Path) -> None:
    path = write(home, "cursor", HELD["cursor"])
    run("setup", "cursor")
    after = path.read_bytes()
    ran = run("setup", "cursor", "--undo", "--dry-run")
    assert any(line.startswith("-") and "byheart" in line for line in ran.out.splitlines())
    assert path.read_bytes() == after


@clients
def test_undo_takes_out_our_part_alone_if_others_wrote_meanwhile(
    run: Run, home: Path, client: str
) -> None:
    path = write(home, client, HELD[client])
    run("setup", client)
    theirs = "# theirs\n" if client == "codex" else "// theirs\n"
    path.write_bytes(theirs.encode() + path.read_bytes())
    done = run("setup", client, "--undo", "--json").json
    assert done["action"] == "removed"
    left = path.read_bytes().decode()
    assert left.rstrip() == (theirs + HELD[client]).rstrip()
    assert parsed(client, left) is None
    assert Path(done["backup"]).exists()


ENTRIES = {
    "json": '{"mcpServers": {"byheart": {"command": "old", "args": ["mcp", "a b"]}}}',
    "servers": '{"servers": {"byheart": {"command": "old", "args": ["mcp", "a b"]}}}',
    "toml": '[mcp_servers.byheart]\ncommand = "old"\nargs = ["mcp", "a b"]\n',
}


@pytest.mark.parametrize(
    ("client", "entry"), [("cursor", "json"), ("vscode", "servers"), ("codex", "toml")]
)
def test_undo_says_that_an_earlier_entry_is_back(
    run: Run, home: Path, client: str, entry: str
) -> None:
    path = write(home, client, ENTRIES[entry])
    run("setup", client)
    planned = run("setup", client, "--undo", "--dry-run", "--json").json
    assert (planned["action"], planned["command"]) == ("restored", ["old", "mcp", "a b"])
    ran = run("setup", client, "--undo")
    assert "has the entry back that was there before (old mcp 'a b')" in ran.out
    assert "any more" not in ran.out
    assert path.read_text() == ENTRIES[entry]
    assert run("setup", client, "--undo", "--json").json["action"] == "removed"
    assert parsed(client, path.read_text() if path.exists() else "") is None


def test_undo_without_anything_to_undo_says_so(run: Run, home: Path) -> None:
    path = write(home, "cursor", HELD["cursor"])
    ran = run("setup", "cursor", "--undo")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "✓  Cursor  was not set up")
    assert path.read_bytes() == HELD["cursor"].encode()
    assert run("setup", "codex", "--undo", "--json").json["action"] == "absent"
    assert not (home / ".codex").exists()


@clients
def test_another_store_replaces_the_one_before(run: Run, home: Path, client: str) -> None:
    path = write(home, client, HELD[client])
    run("setup", client)
    done = run("setup", client, "--db", "a.db", "--space", "my work", "--json").json
    assert done["action"] == "updated"
    entry = parsed(client, path.read_bytes().decode())
    assert entry["args"] == ["mcp", "--db", str(home / "a.db"), "--space", "my work"]
    assert done["command"] == [entry["command"], *entry["args"]]
    without_command = path.read_text().replace(entry["command"], "")
    assert without_command.count("byheart") == 1, "there is one entry"


def test_what_the_user_added_to_our_entry_stays(run: Run, home: Path) -> None:
    entry = '{"command": "old", "args": ["mcp"], "env": {"A": "1"} /* mine */}'
    path = write(home, "cursor", f'{{"mcpServers": {{"byheart": {entry}}}}}')
    assert run("setup", "cursor", "--json").json["action"] == "updated"
    text = path.read_text()
    assert '"env": {"A": "1"} /* mine */' in text
    assert parsed("cursor", text)["env"] == {"A": "1"}
    assert parsed("cursor", text)["command"] != "old"
    assert run("setup", "cursor", "--json").json["action"] == "unchanged"


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_server_of_another_kind_is_replaced(run: Run, home: Path, client: str) -> None:
    texts = {
        "cursor": '{"mcpServers": {"byheart": {"url": "http://x", "headers": {}}}}',
        "codex": '[mcp_servers.byheart]\nurl = "http://x"\n',
    }
    path = write(home, client, texts[client])
    run("setup", client)
    assert "url" not in parsed(client, path.read_text())
    assert "headers" not in parsed(client, path.read_text())


# --- Files that cannot be changed -------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "text", "said"),
    [
        ("claude-code", '{"mcpServers": {', "is not valid JSON"),
        ("claude-code", '{\n  "a": 1\n  "b": 2\n}', "line 3"),
        ("cursor", "[]", "is not as Cursor keeps it: it is not an object"),
        ("cursor", '{"mcpServers": []}', "not as Cursor keeps it: mcpServers is not an object"),
        ("vscode", '{"servers": {"byheart": 1}}', "servers.byheart is not an object"),
        ("codex", "[mcp_servers\n", "is not valid TOML"),
        ("codex", "a = 1\na = 2\n", "is not valid TOML"),
        ("codex", "mcp_servers = 1\n", "is not as Codex keeps it: mcp_servers is not a table"),
    ],
)
def test_a_file_that_cannot_be_understood_is_left_as_it_is(
    run: Run, home: Path, client: str, text: str, said: str
) -> None:
    path = write(home, client, text)
    for flags in ((), ("--dry-run",)):
        ran = run("setup", client, *flags)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err
        assert "it was left as it is" in ran.err
        assert "hint: " in ran.err
    assert path.read_text() == text
    assert list(path.parent.glob("*backup*")) == []


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\nmcp_servers = { o = { command = 'x' } } # mine\n",
        "[mcp_servers] # mine\no = { command = 'x' }\nbyheart = { command = 'old' }\n",
    ],
)
def test_servers_in_inline_tables_are_edited_there(run: Run, home: Path, text: str) -> None:
    path = write(home, "codex", text)
    assert run("setup", "codex", "--json").json["action"] in ("added", "updated")
    assert parsed("codex", path.read_text())["args"] == ["mcp"]
    assert "o = { command = 'x' }" in path.read_text()
    assert "# mine\n" in path.read_text()
    assert run("setup", "codex", "--json").json["action"] == "unchanged"


@clients
def test_a_read_only_file_is_left_as_it_is(run: Run, home: Path, client: str) -> None:
    path = write(home, client, HELD[client])
    path.chmod(0o444)
    for flags in ((), ("--dry-run",)):
        ran = run("setup", client, *flags)
        assert (ran.code, ran.out) == (1, "")
        assert "is read-only; it was left as it is" in ran.err
        assert f"chmod u+w {path}" in ran.err
    assert path.read_bytes() == HELD[client].encode()
    path.chmod(0o644)
    run("setup", client)
    path.chmod(0o444)
    assert run("setup", client, "--json").json["action"] == "unchanged"
    held = path.read_bytes()
    assert run("setup", client, "--undo").code == 1
    assert path.read_bytes() == held


def test_a_file_that_is_no_text_is_left_as_it_is(run: Run, home: Path) -> None:
    path = home / ".claude.json"
    path.write_bytes(b'{"a": "\xff"}')
    ran = run("setup", "claude-code")
    assert (ran.code, ran.out) == (1, "")
    assert "is not UTF-8 text (byte 7)" in ran.err
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_a_folder_in_the_place_of_the_file_is_an_error_and_no_traceback(
    run: Run, home: Path
) -> None:
    (home / ".claude.json").mkdir()
    ran = run("setup", "claude-code", "--json")
    assert ran.code == 1
    assert json.loads(ran.err)["error"] == "ByheartError"
    assert "a folder is in the place of the file" in json.loads(ran.err)["hint"]
    (home / ".cursor").write_text("a file where a folder should be")
    err = run("setup", "cursor").err
    assert "cannot be read" in err
    assert f"{home}/.cursor must be a folder" in err


def test_a_folder_that_cannot_be_written_is_an_error(run: Run, home: Path) -> None:
    path = write(home, "cursor", HELD["cursor"])
    path.parent.chmod(0o500)
    try:
        if os.access(path.parent, os.W_OK):
            pytest.skip("this user may write anything")
        ran = run("setup", "cursor")
        assert ran.code == 1
        assert "cannot be written" in ran.err
        assert path.read_bytes() == HELD["cursor"].encode()
    finally:
        path.parent.chmod(0o700)


def test_a_link_stays_a_link(run: Run, home: Path) -> None:
    target = home / "dotfiles/claude.json"
    target.parent.mkdir()
    target.write_text(HELD["claude-code"])
    (home / ".claude.json").symlink_to(target)
    run("setup", "claude-code")
    assert (home / ".claude.json").is_symlink()
    assert parsed("claude-code", target.read_text()) is not None
    run("setup", "claude-code", "--undo")
    assert (home / ".claude.json").is_symlink()
    assert target.read_text() == HELD["claude-code"]


def test_a_blank_file_is_filled_and_blank_again(run: Run, home: Path) -> None:
    path = write(home, "cursor", "\n")
    run("setup", "cursor")
    assert parsed("cursor", path.read_text()) is not None
    run("setup", "cursor", "--undo")
    assert path.read_text() == "\n"


def test_what_the_client_writes_at_the_same_moment_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, "claude-code", '{\n  "numStartups": 1\n}\n')
    read, writes = config_file.read_text, iter(range(2, 5))

    def read_while_the_client_writes(at: Path) -> str | None:
        text = read(at)
        if at == path and text and (number := next(writes, None)):
            path.write_text(re.sub(r"\d+", str(number), text, count=1))
        return text

    monkeypatch.setattr(registration, "read_text", read_while_the_client_writes)
    client, launch = CLIENTS["claude-code"], Launch("byheart", ("mcp",))
    done = registration.register(client, this_machine(), launch, project=False, dry_run=False)
    assert done.action == "added"
    assert json.loads(path.read_text())["numStartups"] == 4
    assert parsed("claude-code", path.read_text()) is not None
    writes = iter(range(5, 1000))
    with pytest.raises(ByheartError, match="keeps writing"):
        registration.unregister(client, this_machine(), project=False, dry_run=False)


# --- Projects, variables and flags ------------------------------------------------------------


def test_a_project_has_a_file_of_its_own(run: Run, home: Path) -> None:
    places = {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "codex": ".codex/config.toml",
        "vscode": ".vscode/mcp.json",
        "gemini": ".gemini/settings.json",
        "zed": ".zed/settings.json",
        "opencode": "opencode.json",
    }
    (home / "project").mkdir()
    os.chdir(home / "project")
    for client, place in places.items():
        assert run("setup", client, "--project").code == 0
        path = home / "project" / place
        assert parsed(client, path.read_text()) is not None
        assert path.stat().st_mode & 0o777 == 0o644
        assert not (home / USER_FILES[client]).exists()
        run("setup", client, "--project", "--undo")
        assert not path.exists()
    ran = run("setup", "claude-desktop", "--project")
    assert ran.code == 2
    assert "no configuration of its own for a project" in ran.err


def test_variables_say_where_the_files_are(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "cc"))
    monkeypatch.setenv("CODEX_HOME", str(home / "cx"))
    run("setup", "claude-code")
    run("setup", "codex")
    assert (home / "cc/.claude.json").exists()
    assert (home / "cx/config.toml").exists()
    assert not (home / ".claude.json").exists()
    assert not (home / ".codex").exists()


def test_a_store_and_a_space_named_by_variables_hold_for_the_client(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / USER_FILES["cursor"]
    assert "is set in this shell" not in run("setup", "cursor").out
    monkeypatch.setenv("BYHEART_DB_PATH", "my memory.db")
    monkeypatch.setenv("BYHEART_SPACE", "work")
    planned = run("setup", "cursor", "--dry-run")
    ran = run("setup", "cursor")
    for said in (planned.out, ran.out):
        assert f"do not pass it on: --db '{home}/my memory.db' says the same there" in said
        assert "BYHEART_SPACE is set in this shell" in said
    named = ["mcp", "--db", str(home / "my memory.db"), "--space", "work"]
    assert parsed("cursor", path.read_text())["args"] == named
    assert run("setup", "cursor", "--json").json["command"][1:] == named
    flags = run("setup", "cursor", "--db", "x.db", "--space", "y")
    assert "is set in this shell" not in flags.out
    args = ["mcp", "--db", str(home / "x.db"), "--space", "y"]
    assert parsed("cursor", path.read_text())["args"] == args
    shared = run("setup", "cursor", "--project").out
    assert "this applies to everyone who shares the file" in shared


def test_bad_settings_are_refused_before_anything_is_written(run: Run, home: Path) -> None:
    assert run("setup", "cursor", "--space", "").code == 2
    assert not (home / ".cursor").exists()


def test_undo_and_dry_run_want_a_client(run: Run) -> None:
    assert "say which client: claude-code" in run("setup", "--undo").err
    assert run("setup", "--dry-run").code == 2
    assert run("setup", "emacs").code == 2


# --- Which clients there are ------------------------------------------------------------------


def test_without_a_client_all_are_listed(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home / "bin"))
    write(home, "codex", HELD["codex"])
    write(home, "vscode", "{")
    run("setup", "cursor")
    lines = run("setup").out.splitlines()
    assert lines[0].split() == ["CLIENT", "FOUND", "SETUP", "HOOKS", "FILE"]
    assert [line.split()[:4] for line in lines[1:-1]] == [
        ["claude-code", "no", "no", "no"],
        ["claude-desktop", "no", "no", "-"],
        ["cursor", "yes", "yes", "-"],
        ["codex", "yes", "no", "-"],
        ["vscode", "yes", "no", "-"],
        ["gemini", "no", "no", "-"],
        ["windsurf", "no", "no", "-"],
        ["zed", "no", "no", "-"],
        ["opencode", "no", "no", "-"],
    ]
    assert lines[-1].startswith("vscode: unreadable: ")
    states = {each["client"]: each for each in run("setup", "--json").json}
    assert states["cursor"]["command"][1:] == ["mcp"]
    assert states["vscode"]["problem"].startswith("unreadable: ")
    assert states["codex"]["problem"] is None
    assert len(run("setup", "--project", "--json").json) == 7


def test_the_list_shows_files_in_the_home_folder_and_how_to_go_on(
    run: Run, terminal: Run, home: Path
) -> None:
    listed = run("setup")
    assert "~/.cursor/mcp.json" in listed.out
    assert "to set one up: byheart setup claude-code" in listed.out
    run("setup", "cursor")
    assert "to set one up" not in run("setup").out
    write(home, "windsurf", "{")
    shown = terminal("setup", NO_COLOR="1").out
    assert "windsurf: unreadable: " in shown, "the table alone would cut it"


def test_it_is_listed_whether_hooks_are_there_all_of_them_or_in_part(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home / "bin"))

    def listed() -> str:
        [line] = [line for line in run("setup").out.splitlines() if line.startswith("claude-code ")]
        return line.partition("claude-code")[2].split("~/")[0]

    assert listed().split() == ["no", "no", "no"]
    assert "calls Byheart by itself" in run("setup", "claude-code", "--hooks").out
    assert listed().split() == ["yes", "yes", "yes"]
    path = home / ".claude" / "settings.json"
    held = json.loads(path.read_text())
    state = run("setup", "--json").json[0]["hooks"]
    assert (state["path"], state["set_up"], state["complete"]) == (str(path), True, True)
    del held["hooks"]["Stop"]
    path.write_text(json.dumps(held))
    assert listed().split() == ["yes", "yes", "in", "part"]
    path.write_text("{")
    assert "unreadable" in run("setup").out
    path.write_text(json.dumps(held).replace(state["command"][0], "/not/there/byheart"))
    monkeypatch.setenv("BYHEART_DB_PATH", str(home / "memory.db"))
    assert "   run: byheart setup claude-code --hooks\n" in run("doctor").out


def test_undoing_the_hooks_says_what_holds_from_then_on(run: Run, home: Path) -> None:
    undo = ("setup", "claude-code", "--hooks", "--undo")
    assert "did not call Byheart by itself" in run(*undo).out
    run("setup", "claude-code")
    run("setup", "claude-code", "--hooks")
    assert "calls Byheart by itself already" in run("setup", "claude-code", "--hooks").out
    assert "does not call Byheart by itself any more" in run(*undo).out
    assert run("setup", "--json").json[0]["set_up"] is True


def test_hooks_and_server_are_set_up_and_undone_together(run: Run, home: Path) -> None:
    planned = run("setup", "claude-code", "--hooks", "--dry-run").out
    assert planned.count("+++ ") == 2
    assert not (home / ".claude.json").exists()
    done = run("setup", "claude-code", "--hooks", "--json").json
    assert (done["action"], done["hooks"]["action"]) == ("added", "added")
    assert done["command"][-1] == "mcp"
    assert done["hooks"]["command"][-1] == "hook"
    assert parsed("claude-code", (home / ".claude.json").read_text()) is not None
    undone = run("setup", "claude-code", "--undo").out
    assert "does not know of Byheart any more" in undone
    assert "does not call Byheart by itself any more" in undone
    state = run("setup", "--json").json[0]
    assert not state["set_up"]
    assert not state["hooks"]["set_up"]


def test_neither_file_changes_if_one_of_them_cannot(run: Run, home: Path) -> None:
    for broken, sound in (
        (home / ".claude.json", home / ".claude" / "settings.json"),
        (home / ".claude" / "settings.json", home / ".claude.json"),
    ):
        broken.parent.mkdir(exist_ok=True)
        broken.write_text("{")
        assert run("setup", "claude-code", "--hooks").code == 1
        assert not sound.exists()
        broken.unlink()


# --- Uninstalling -----------------------------------------------------------------------------


def test_uninstall_undoes_every_setup_and_names_what_is_left(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYHEART_DB_PATH", str(home / "kept" / "memory.db"))
    run("save", "The gate code is 4711.")
    held = write(home, "zed", HELD["zed"])
    (home / "project").mkdir()
    os.chdir(home / "project")
    run("setup", "zed")
    run("setup", "claude-code", "--hooks")
    run("setup", "cursor", "--project")
    completion = run("completion", "fish", "--install", "--json").json["path"]
    planned = run("uninstall", "--dry-run", "--json").json
    assert completion in [each["path"] for each in planned["left"]]
    assert planned["dry_run"] is True
    assert [each["client"] for each in planned["clients"]] == [
        *("claude-code", "claude-code", "zed", "cursor")
    ]
    assert parsed("zed", held.read_text()) is not None
    unsure = run("uninstall")
    assert "nothing was changed yet: add --yes" in unsure.err
    assert parsed("zed", held.read_text()) is not None
    ran = run("uninstall", "--yes")
    assert ran.code == 0
    assert held.read_text() == HELD["zed"]
    assert not (home / "project" / ".cursor" / "mcp.json").exists()
    assert str(home / "kept" / "memory.db") in ran.out.replace("\n", "")
    assert "to remove the program:" in ran.out
    assert (home / "kept" / "memory.db").exists()
    assert "no client is set up" in run("uninstall").out


def test_uninstall_shows_whole_paths_on_a_narrow_terminal(
    terminal: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = home / ("long" * 20) / "memory.db"
    monkeypatch.setenv("BYHEART_DB_PATH", str(kept))
    kept.parent.mkdir()
    kept.write_bytes(b"kept")
    shown = terminal("uninstall", "--dry-run", NO_COLOR="1").out
    assert str(kept) in shown
    assert "…" not in shown


def test_the_program_is_removed_by_the_tool_that_installed_it(tmp_path: Path) -> None:
    def removal(prefix: str) -> str:
        return name_removal(Running("byheart", f"{prefix}/bin/python", prefix))

    for receipt, command in (("uv-receipt.toml", "uv tool"), ("pipx_metadata.json", "pipx")):
        installed = tmp_path / receipt.partition(".")[0]
        installed.mkdir()
        (installed / receipt).touch()
        assert removal(str(installed)) == f"{command} uninstall byheart"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").touch()
    assert removal(str(tmp_path)) == f"{tmp_path}/bin/python -m pip uninstall byheart"


def test_a_dry_run_shows_the_change_whole_in_a_file_that_is_one_line(run: Run, home: Path) -> None:
    keys = {f"other{n}": {"command": "x" * 50, "env": {"KEY": f"secret {n}"}} for n in range(40)}
    write(home, "cursor", json.dumps({"mcpServers": keys, "after": "y" * 1000}))
    out = run("setup", "cursor", "--dry-run", "--db", f"/a/{'long' * 100}/memory.db").out
    [added] = [line for line in out.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    assert f"/a/{'long' * 100}/memory.db" in added
    assert added.startswith("+…")
    assert added.endswith("…")
    assert "secret 3" not in out
    assert len(added) < 1000


def test_the_doctor_names_clients_whose_command_is_gone(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "bin/byheart"
    program.parent.mkdir()
    program.touch(mode=0o755)
    entry = json.dumps({"byheart": {"command": str(program), "args": ["mcp"]}})
    write(home, "cursor", f'{{"mcpServers": {entry}}}')
    (home / ".mcp.json").write_text(f'{{"mcpServers": {entry}}}')
    write(home, "vscode", '{"servers": {"other": {"command": "/not/there"}}}')
    write(home, "codex", "broken [")
    monkeypatch.setenv("BYHEART_DB_PATH", str(home / "memory.db"))
    sound = run("doctor")
    assert sound.code == 0, sound.out
    program.unlink()
    ran = run("doctor")
    assert ran.code == 1
    assert f"✗  client cursor  {home}/.cursor/mcp.json starts byheart by a command that" in ran.out
    assert f"{program} is not there any more" in ran.out
    assert "   run: byheart setup claude-code --project\n" in ran.out
    failed = [each["check"] for each in run("doctor", "--json").json if not each["ok"]]
    assert failed[0] == "client cursor"
    assert set(failed) == {"client cursor", "client claude-code"}
    assert "is not there any more" in run("setup").out
    run("setup", "cursor")
    run("setup", "claude-code", "--project")
    assert run("doctor").code == 0


SECRET = "postgresql://ann:s3cret@db.example/team"


@clients
def test_no_output_of_setup_has_the_password_of_the_database(
    run: Run, home: Path, client: str
) -> None:
    preview = run("setup", client, "--db", SECRET, "--dry-run")
    assert "the file would hold the database password" in preview.out
    added = run("setup", client, "--db", SECRET)
    assert "the file now holds the database password" in added.out
    assert "~/.pgpass" in added.out
    assert SECRET in parsed(client, (home / USER_FILES[client]).read_text())["args"]
    changed = run("setup", client, "--db", SECRET.replace("s3cret", "s3cret2"), "--dry-run")
    assert "only the password in the address changes" in changed.out
    as_json = run("setup", client, "--db", SECRET, "--json")
    survey = run("setup", "--json")
    undone = run("setup", client, "--undo", "--json")
    for ran in (preview, added, changed, as_json, survey, undone):
        assert ran.code == 0
        assert "s3cret" not in ran.out + ran.err
    assert "ann:***@db.example" in as_json.out + survey.out


def test_hooks_hide_the_password_of_the_database(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYHEART_DB_PATH", SECRET)
    for flags in (["--dry-run"], [], ["--json"], ["--undo", "--dry-run"]):
        ran = run("setup", "claude-code", "--hooks", *flags)
        assert ran.code == 0
        assert "s3cret" not in ran.out + ran.err


def test_a_password_is_not_written_into_the_files_of_a_project(run: Run) -> None:
    ran = run("setup", "cursor", "--project", "--db", SECRET)
    assert ran.code == 2
    assert "everyone who can read the files of the project" in ran.err
    assert not Path(".cursor").exists()


@pytest.mark.parametrize(("enabled", "noticed"), [(True, True), (False, False)])
def test_an_enabled_plugin_is_noticed(run: Run, home: Path, enabled: bool, noticed: bool) -> None:
    held = {"enabledPlugins": {"other@byheart": True, "byheart@market": enabled}}
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps(held))
    assert ("the plugin byheart@market is enabled" in run("setup", "claude-code").out) is noticed
    assert "is enabled and brings" not in run("setup", "cursor").out
