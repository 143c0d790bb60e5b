"""The files that other programs install Byheart from agree with the code."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from byheart.interfaces.setup.hooks import snippet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MANIFESTS = [
    "plugin/.claude-plugin/plugin.json",
    "plugin/.codex-plugin/plugin.json",
    "plugin/.cursor-plugin/plugin.json",
    "bundle/manifest.json",
    "server.json",
]
MARKETPLACES = [
    ".claude-plugin/marketplace.json",
    ".cursor-plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
]


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MANIFESTS)
def test_every_manifest_states_the_version_of_the_project(path: str) -> None:
    manifest = read(path)
    assert manifest["version"] == PROJECT["version"]
    assert all(each["version"] == PROJECT["version"] for each in manifest.get("packages", ()))


def test_the_bundle_installs_this_version() -> None:
    bundle = tomllib.loads((ROOT / "bundle" / "pyproject.toml").read_text(encoding="utf-8"))
    version = PROJECT["version"]
    assert bundle["project"]["version"] == version
    assert bundle["project"]["dependencies"] == [f"byheart=={version}"]
    assert bundle["project"]["requires-python"] == PROJECT["requires-python"]
    manifest = read("bundle/manifest.json")
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    for name in (manifest["icon"], manifest["server"]["entry_point"]):
        assert (ROOT / "bundle" / name).is_file()


@pytest.mark.parametrize("path", MARKETPLACES)
def test_every_marketplace_offers_the_folder_of_the_plugin(path: str) -> None:
    [offered] = read(path)["plugins"]
    source = offered["source"]
    folder = source if isinstance(source, str) else source["path"]
    assert (ROOT / folder).resolve() == ROOT / "plugin"
    assert offered["name"] == "byheart"


def test_the_hooks_of_the_plugin_are_those_that_setup_writes() -> None:
    assert read("plugin/hooks/hooks.json") == json.loads(snippet())


def test_the_plugin_starts_the_mcp_server() -> None:
    servers = read("plugin/.mcp.json")["mcpServers"]
    assert servers == {"byheart": {"command": "byheart", "args": ["mcp"]}}


def test_the_skill_names_only_tools_and_arguments_that_exist() -> None:
    skill = (ROOT / "plugin" / "skills" / "byheart" / "SKILL.md").read_text(encoding="utf-8")
    tools = (ROOT / "src/byheart/interfaces/mcp/tools.json").read_text(encoding="utf-8")
    named = set(re.findall(r"memory_[a-z]+", skill))
    assert len(named) >= 5
    for name in named | {"superseded_by", "importance", "kind"}:
        assert f'"{name}"' in tools, name


def test_the_registry_finds_the_marker_of_the_server_in_the_readme() -> None:
    server = read("server.json")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- mcp-name: {server['name']} -->" in readme
    assert server["packages"][0]["identifier"] == PROJECT["name"]
    assert len(server["description"]) <= 100, "the registry takes no more"
