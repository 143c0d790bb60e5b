"""List the clients: where each keeps its configuration, and how a server is written there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from byheart.interfaces.setup.launching import Launch
from byheart.interfaces.setup.servers import (
    Entry,
    JsonServers,
    ListedCommands,
    Servers,
    TomlServers,
)
from byheart.startup.dataclass_types import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """Describe the facts of a machine that decide where clients keep their files."""

    home: Path
    platform: str
    environ: Mapping[str, str]
    folder: Path

    def folder_of(self, variable: str, otherwise: Path) -> Path:
        """Return the folder that a variable names, or `otherwise` if it is not set."""
        named = self.environ.get(variable)
        return Path(named).expanduser().absolute() if named else otherwise

    @property
    def applications(self) -> Path:
        """Return the folder in which desktop programs keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.folder_of("APPDATA", self.home / "AppData" / "Roaming")
        return self.folder_of("XDG_CONFIG_HOME", self.home / ".config")


def this_machine() -> Machine:
    """Describe the machine that this process runs on."""
    return Machine(Path.home(), sys.platform, os.environ, Path.cwd())


@dataclass(frozen=True, slots=True)
class Client:
    """Describe a program that can use Byheart over MCP."""

    name: str
    title: str
    servers: Servers
    user_path: Callable[[Machine], Path]
    project_path: str | None
    places: tuple[str, ...]
    then: str
    program: str | None = None
    typed: bool = True
    folders: tuple[str, ...] = ()

    def path(self, machine: Machine, *, project: bool) -> Path | None:
        """Return the client's configuration file; not every client has one for a project."""
        if not project:
            return self.user_path(machine)
        return machine.folder / self.project_path if self.project_path else None

    def entry(self, launch: Launch) -> Entry:
        """Return how the client starts Byheart, in the form of its configuration."""
        said = {"command": launch.command, "args": list(launch.args)}
        return {"type": "stdio", **said} if self.typed else said

    def snippet(self, launch: Launch) -> str:
        """Return a configuration file that contains only Byheart."""
        return self.servers.put("", self.entry(launch))

    def is_here(self, machine: Machine) -> bool:
        """Tell whether the client is installed on this machine, or was used on it."""
        path = self.user_path(machine)
        own = path.parent if path.parent != machine.home else path
        return (
            own.exists()
            or any((machine.home / each).exists() for each in self.folders)
            or (self.program is not None and shutil.which(self.program) is not None)
        )


def _claude_desktop(machine: Machine) -> Path:
    folder = machine.applications / "Claude"
    if machine.platform == "win32":
        # If installed as a package, the program sees its own folder instead of %APPDATA%'s.
        local = machine.folder_of("LOCALAPPDATA", machine.home / "AppData" / "Local")
        packaged = sorted((local / "Packages").glob("Claude_*/LocalCache/Roaming/Claude"))
        folder = next(iter(packaged), folder)
    return folder / "claude_desktop_config.json"


def _zed(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.applications / "Zed" / "settings.json"
    return machine.folder_of("XDG_CONFIG_HOME", machine.home / ".config") / "zed" / "settings.json"


def _opencode(machine: Machine) -> Path:
    folder = machine.folder_of("XDG_CONFIG_HOME", machine.home / ".config") / "opencode"
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


CLIENTS: dict[str, Client] = {
    each.name: each
    for each in (
        Client(
            name="claude-code",
            title="Claude Code",
            servers=JsonServers("mcpServers"),
            user_path=lambda machine: (
                machine.folder_of("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"
            ),
            project_path=".mcp.json",
            places=(
                "`claude mcp add --scope user byheart -- byheart mcp`",
                "or in `~/.claude.json`, or `.claude.json` in `$CLAUDE_CONFIG_DIR`",
            ),
            then="start a new session of Claude Code; /mcp shows whether it is connected",
            program="claude",
            folders=(".claude",),
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            servers=JsonServers("mcpServers"),
            user_path=_claude_desktop,
            project_path=None,
            places=(
                "macOS: `~/Library/Application Support/Claude/claude_desktop_config.json`",
                "Windows: `%APPDATA%\\Claude\\claude_desktop_config.json`, or `LocalCache\\Roaming"
                "\\Claude` in `%LOCALAPPDATA%\\Packages\\Claude_…` if it is there",
                "Linux: `~/.config/Claude/claude_desktop_config.json`",
            ),
            then="quit Claude Desktop and start it again",
            typed=False,
        ),
        Client(
            name="cursor",
            title="Cursor",
            servers=JsonServers("mcpServers"),
            user_path=lambda machine: machine.home / ".cursor" / "mcp.json",
            project_path=".cursor/mcp.json",
            places=("`~/.cursor/mcp.json`",),
            then="start Cursor again, and see that it is switched on among the MCP servers",
            program="cursor",
        ),
        Client(
            name="codex",
            title="Codex",
            servers=TomlServers("mcp_servers"),
            user_path=lambda machine: (
                machine.folder_of("CODEX_HOME", machine.home / ".codex") / "config.toml"
            ),
            project_path=".codex/config.toml",
            places=("`~/.codex/config.toml`, or `config.toml` in `$CODEX_HOME`",),
            then="start Codex again; /mcp shows whether it is connected",
            program="codex",
            typed=False,
        ),
        Client(
            name="vscode",
            title="VS Code",
            servers=JsonServers("servers"),
            user_path=lambda machine: machine.applications / "Code" / "User" / "mcp.json",
            project_path=".vscode/mcp.json",
            places=(
                "macOS: `~/Library/Application Support/Code/User/mcp.json`",
                "Windows: `%APPDATA%\\Code\\User\\mcp.json`",
                "Linux: `~/.config/Code/User/mcp.json`",
            ),
            then="trust the server when VS Code asks; MCP: List Servers shows whether it runs",
            program="code",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            servers=JsonServers("mcpServers"),
            user_path=lambda machine: machine.home / ".gemini" / "settings.json",
            project_path=".gemini/settings.json",
            places=("`~/.gemini/settings.json`",),
            then="start Gemini CLI again in a folder that it trusts; /mcp shows if it is connected",
            program="gemini",
            typed=False,
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            servers=JsonServers("mcpServers"),
            user_path=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
            project_path=None,
            places=("`~/.codeium/windsurf/mcp_config.json`",),
            then="refresh the MCP servers of Cascade, or start Windsurf again",
            program="windsurf",
            typed=False,
        ),
        Client(
            name="zed",
            title="Zed",
            servers=JsonServers("context_servers"),
            user_path=_zed,
            project_path=".zed/settings.json",
            places=(
                "macOS and Linux: `~/.config/zed/settings.json`",
                "Windows: `%APPDATA%\\Zed\\settings.json`",
            ),
            then="see in the settings of the agent panel that the server is active",
            program="zed",
            typed=False,
        ),
        Client(
            name="opencode",
            title="OpenCode",
            servers=ListedCommands("mcp"),
            user_path=_opencode,
            project_path="opencode.json",
            places=("`~/.config/opencode/opencode.json`, or `opencode.jsonc` if it is there",),
            then="start OpenCode again; opencode mcp list shows whether it is connected",
            program="opencode",
            typed=False,
        ),
    )
}
