"""Where clients keep their files, on every platform and wherever variables say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from byheart.interfaces.setup.clients import CLIENTS, Client, Machine
from byheart.interfaces.setup.launching import Launch
from byheart.interfaces.setup.servers import Misshapen

LAUNCH = Launch("/bin/byheart", ("mcp",))


def machine(home: Path, platform: str = "linux", **environ: str) -> Machine:
    return Machine(home, platform, environ, home / "project")


@pytest.mark.parametrize(
    ("client", "platform", "environ", "place"),
    [
        ("claude-code", "linux", {}, ".claude.json"),
        ("claude-code", "darwin", {}, ".claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "{home}/work"}, "work/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": ""}, ".claude.json"),
        ("claude-desktop", "linux", {}, ".config/Claude/claude_desktop_config.json"),
        (
            *("claude-desktop", "linux", {"XDG_CONFIG_HOME": "{home}/xdg"}),
            "xdg/Claude/claude_desktop_config.json",
        ),
        (
            *("claude-desktop", "darwin", {"XDG_CONFIG_HOME": "{home}/xdg"}),
            "Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", "win32", {}, "AppData/Roaming/Claude/claude_desktop_config.json"),
        (
            *("claude-desktop", "win32", {"APPDATA": "{home}/R"}),
            "R/Claude/claude_desktop_config.json",
        ),
        ("cursor", "linux", {"XDG_CONFIG_HOME": "{home}/xdg"}, ".cursor/mcp.json"),
        ("codex", "linux", {}, ".codex/config.toml"),
        ("codex", "win32", {"CODEX_HOME": "{home}/cx"}, "cx/config.toml"),
        ("vscode", "linux", {}, ".config/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", {"APPDATA": "{home}/R"}, "R/Code/User/mcp.json"),
        ("gemini", "linux", {}, ".gemini/settings.json"),
        ("windsurf", "win32", {}, ".codeium/windsurf/mcp_config.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "{home}/xdg"}, "xdg/zed/settings.json"),
        ("zed", "darwin", {}, ".config/zed/settings.json"),
        ("zed", "win32", {"APPDATA": "{home}/R"}, "R/Zed/settings.json"),
        ("opencode", "darwin", {}, ".config/opencode/opencode.json"),
    ],
)
def test_every_client_has_its_file(
    tmp_path: Path, client: str, platform: str, environ: Mapping[str, str], place: str
) -> None:
    given = {name: value.format(home=tmp_path) for name, value in environ.items()}
    here = machine(tmp_path, platform, **given)
    assert CLIENTS[client].path(here, project=False) == tmp_path / place


def test_claude_desktop_as_a_windows_package_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "L/Packages/Claude_abc/LocalCache/Roaming/Claude"
    folder.mkdir(parents=True)
    here = machine(tmp_path, "win32", LOCALAPPDATA=str(tmp_path / "L"), APPDATA=str(tmp_path / "R"))
    path = CLIENTS["claude-desktop"].path(here, project=False)
    assert path == folder / "claude_desktop_config.json"


def test_projects_have_files_in_their_own_folder(tmp_path: Path) -> None:
    here = machine(tmp_path, CODEX_HOME=str(tmp_path / "elsewhere"))
    paths = {
        name: path.relative_to(tmp_path / "project").as_posix()
        for name, client in CLIENTS.items()
        if (path := client.path(here, project=True)) is not None
    }
    assert paths == {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "codex": ".codex/config.toml",
        "vscode": ".vscode/mcp.json",
        "gemini": ".gemini/settings.json",
        "zed": ".zed/settings.json",
        "opencode": "opencode.json",
    }


def test_opencode_keeps_its_file_with_comments(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{} // mine")
    path = CLIENTS["opencode"].path(machine(tmp_path), project=False)
    assert path == folder / "opencode.jsonc"


def test_opencode_has_command_and_arguments_in_one_list() -> None:
    servers = CLIENTS["opencode"].servers
    text = '{"mcp": {"byheart": {"type": "local", "command": ["old"], "environment": {"A": "b"}}}}'
    held = json.loads(servers.put(text, {"command": "/bin/byheart", "args": ["mcp"]}))
    assert held["mcp"]["byheart"] == {
        "type": "local",
        "command": ["/bin/byheart", "mcp"],
        "environment": {"A": "b"},
    }
    with pytest.raises(Misshapen, match="not a list"):
        servers.read('{"mcp": {"byheart": {"command": "byheart mcp"}}}')


def test_a_client_is_here_once_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    here = machine(tmp_path)
    assert not any(client.is_here(here) for client in CLIENTS.values())
    config = ("Claude", "Code/User", "zed", "opencode")
    home = (".claude", ".cursor", ".codex", ".gemini", ".codeium/windsurf")
    for folder in (*home, *(f".config/{each}" for each in config)):
        (tmp_path / folder).mkdir(parents=True)
    assert all(client.is_here(here) for client in CLIENTS.values())


def test_a_client_is_here_if_its_program_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "codex").touch(mode=0o755)
    assert [name for name, each in CLIENTS.items() if each.is_here(machine(tmp_path / "home"))] == [
        "codex"
    ]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_what_a_client_is_told_is_read_back(client: Client) -> None:
    entry = client.servers.read(client.snippet(LAUNCH))
    assert entry is not None
    assert entry == client.entry(LAUNCH)
    assert (entry["command"], entry["args"]) == ("/bin/byheart", ["mcp"])
