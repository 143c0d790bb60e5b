"""Edit Byheart's entry among the servers in a client's file, and leave the rest unchanged."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Protocol

from byheart.interfaces.setup import jsonc
from byheart.interfaces.setup.launching import NAME
from byheart.startup.dataclass_types import dataclass
from byheart.system import toml_editing

Entry = Mapping[str, Any]


class Unsafe(Exception):
    """Report that a text cannot be edited without changing more than intended."""


class Misshapen(ValueError):
    """Report that a valid text does not have the structure that the client uses."""


class Servers(Protocol):
    """Read and edit Byheart's entry in a file; raise `ValueError` for an unreadable text."""

    @property
    def language(self) -> str:
        """Name the language of the file."""
        ...

    def read(self, text: str) -> Entry | None:
        """Return Byheart's entry."""
        ...

    def put(self, text: str, entry: Entry) -> str:
        """Set Byheart's entry."""
        ...

    def remove(self, text: str) -> str:
        """Remove Byheart's entry."""
        ...

    def advise(self, text: str, entry: Entry) -> str:
        """Tell a person how to edit a text that `put` cannot edit."""
        ...


@dataclass(frozen=True, slots=True)
class JsonServers:
    """Edit servers that are members of one object in a JSON file."""

    key: str
    language: str = "json"

    def read(self, text: str) -> Entry | None:
        """Return Byheart's member."""
        return _own(parse_json(text), self.key, "an object")

    def put(self, text: str, entry: Entry) -> str:
        """Set the fields of `entry`; leave Byheart's other fields, such as `env`, unchanged."""
        held = self.read(text)
        if held is None or "url" in held:  # a server of another kind
            edited, expected = jsonc.put(text, (self.key, NAME), entry), dict(entry)
        else:
            edited, expected = text, {**held, **entry}
            for name, value in entry.items():
                if held.get(name) != value:
                    edited = jsonc.put(edited, (self.key, NAME, name), value)
        _require(parse_json(edited), _with(parse_json(text), self.key, expected))
        return edited

    def remove(self, text: str) -> str:
        """Remove Byheart's member."""
        edited = jsonc.remove(text, (self.key, NAME))
        _require(parse_json(edited), _with(parse_json(text), self.key, None))
        return edited

    def advise(self, text: str, entry: Entry) -> str:  # noqa: ARG002 - the same for any text
        """Show Byheart's member, with the objects around it."""
        return f"put this into it yourself:\n{self.put('', entry)}"


@dataclass(frozen=True, slots=True)
class ListedCommands:
    """Edit servers of a JSON file in which a command and its arguments are one list."""

    key: str
    language: str = "json"

    def read(self, text: str) -> Entry | None:
        """Return Byheart's member, with the arguments apart from the command."""
        held = JsonServers(self.key).read(text)
        if held is None or "url" in held:
            return held
        listed = held.get("command")
        if not isinstance(listed, list) or not listed:
            raise Misshapen(f"{self.key}.{NAME}.command is not a list")
        others = {name: each for name, each in held.items() if name not in ("type", "command")}
        return {"command": listed[0], "args": listed[1:], **others}

    def put(self, text: str, entry: Entry) -> str:
        """Set the command; leave Byheart's other fields, such as `environment`, unchanged."""
        command = [entry["command"], *entry["args"]]
        return JsonServers(self.key).put(text, {"type": "local", "command": command})

    def remove(self, text: str) -> str:
        """Remove Byheart's member."""
        return JsonServers(self.key).remove(text)

    def advise(self, text: str, entry: Entry) -> str:  # noqa: ARG002 - the same for any text
        """Show Byheart's member, with the objects around it."""
        return f"put this into it yourself:\n{self.put('', entry)}"


@dataclass(frozen=True, slots=True)
class TomlServers:
    """Edit servers that are tables in a TOML file."""

    key: str
    language: str = "toml"

    def read(self, text: str) -> Entry | None:
        """Return Byheart's table."""
        return _own(_parse_toml(text), self.key, "a table")

    def put(self, text: str, entry: Entry) -> str:
        """Set the fields of `entry` in Byheart's table."""
        held = self.read(text)
        if held is not None and "url" in held:
            text, held = self.remove(text), None
        edited = toml_editing.put_values(text, (self.key, NAME), entry)
        _require(_parse_toml(edited), _with(_parse_toml(text), self.key, {**(held or {}), **entry}))
        return edited

    def remove(self, text: str) -> str:
        """Remove Byheart's table."""
        edited = toml_editing.remove_value(text, (self.key, NAME))
        expected = _with(_parse_toml(text), self.key, None)
        if not expected.get(self.key):  # a table without members is not written
            expected.pop(self.key, None)
        _require(_parse_toml(edited), expected)
        return edited

    def advise(self, text: str, entry: Entry) -> str:  # noqa: ARG002 - the same for any text
        """Show Byheart's table."""
        return f"put this into it yourself:\n{self.put('', entry)}"


def parse_json(text: str) -> dict[str, Any]:
    """Parse a file that contains one object, or is still empty."""
    parsed = jsonc.parse(text) if text.strip("\ufeff \t\r\n") else {}
    if not isinstance(parsed, dict):
        raise Misshapen("it is not an object")
    return parsed


def _parse_toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff"))


def _own(document: Mapping[str, Any], key: str, noun: str) -> Entry | None:
    servers = document.get(key, {})
    if not isinstance(servers, dict):
        raise Misshapen(f"{key} is not {noun}")
    entry = servers.get(NAME)
    if entry is not None and not isinstance(entry, dict):
        raise Misshapen(f"{key}.{NAME} is not {noun}")
    return entry


def _with(document: dict[str, Any], key: str, entry: Entry | None) -> dict[str, Any]:
    servers = {name: each for name, each in document.get(key, {}).items() if name != NAME}
    if entry is not None:
        servers[NAME] = dict(entry)
    return {**document, key: servers}


def _require(held: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    if held != expected:
        raise Unsafe
