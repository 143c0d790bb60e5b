"""Register Byheart's hooks in Claude Code's settings file, so that it calls Byheart by itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PureWindowsPath
from typing import Any

from byheart.interfaces.setup import jsonc
from byheart.interfaces.setup.clients import Client
from byheart.interfaces.setup.launching import NAME, Launch
from byheart.interfaces.setup.servers import Entry, Misshapen, Unsafe, parse_json
from byheart.startup.dataclass_types import dataclass

VERB = "hook"
_KEY = "hooks"
# How many seconds Claude Code waits at most; Byheart itself gives up long before that.
_TIMEOUT = 30
# The events, and for each whether Claude Code continues without waiting.
_EVENTS = {
    "SessionStart": False,
    "UserPromptSubmit": False,
    "PostToolUse": True,
    "PreCompact": False,
    "Stop": True,
    "SessionEnd": False,
}
_OF_TOOLS = "PostToolUse"
# Claude Code's names for the default tools of the setting `capture_tools`.
USUAL_TOOLS = "Bash|WebFetch|WebSearch|Task|Agent|mcp__.*"


@dataclass(frozen=True, slots=True)
class JsonHooks:
    """Edit hooks in a JSON file: one object with a list for each event."""

    # The tools after which Claude Code calls Byheart.
    matcher: str
    language: str = "json"

    def read(self, text: str) -> Entry | None:
        """Return the command that Byheart's hooks start, if there are any."""
        ours = dict(_own(parse_json(text)))
        if not ours:
            return None
        command, *args = shlex.split(next(iter(ours.values()))["command"])[:-1]
        entry = {"command": command, "args": args}
        # Incomplete or outdated hooks count as another command: the entry has no arguments.
        is_whole = ours == {event: self._hook(event, entry) for event in _EVENTS}
        return entry if is_whole else {**entry, "args": []}

    def put(self, text: str, entry: Entry) -> str:
        """Add the command to each event, after the event's other hooks."""
        edited = self.remove(text)
        expected = parse_json(edited)
        for event in _EVENTS:
            groups = [*_groups(expected, event), self._group(event, entry)]
            expected = {**expected, _KEY: {**expected.get(_KEY, {}), event: groups}}
            edited = jsonc.put(edited, (_KEY, event), groups)
        _require(edited, expected)
        return edited

    def remove(self, text: str) -> str:
        """Remove Byheart's hooks, and the lists and objects that are empty without them."""
        edited, held = text, parse_json(text)
        for event, _ in list(_own(held)):
            others = [group for group in map(_without_ours, _groups(held, event)) if group]
            rest = {name: each for name, each in held[_KEY].items() if name != event}
            if others:
                held = {**held, _KEY: {**held[_KEY], event: others}}
                edited = jsonc.put(edited, (_KEY, event), others)
            elif rest:
                held = {**held, _KEY: rest}
                edited = jsonc.remove(edited, (_KEY, event))
            else:
                held = {name: each for name, each in held.items() if name != _KEY}
                edited = jsonc.remove(edited, (_KEY,))
        _require(edited, held)
        return edited

    def advise(self, text: str, entry: Entry) -> str:  # noqa: ARG002 - the same for any text
        """Show the hooks that belong in the file."""
        return f"put this into it yourself:\n{self.put('', entry)}"

    def _group(self, event: str, entry: Entry) -> dict[str, Any]:
        group = {"hooks": [self._hook(event, entry)]}
        return {"matcher": self.matcher, **group} if event == _OF_TOOLS else group

    def _hook(self, event: str, entry: Entry) -> dict[str, Any]:
        command = shlex.join([str(entry["command"]), *map(str, entry["args"]), event])
        hook = {"type": "command", "command": command, "timeout": _TIMEOUT}
        return {**hook, "async": True} if _EVENTS[event] else hook


def hooks_of_claude_code(matcher: str) -> Client:
    """Describe the file in which Claude Code keeps its hooks."""
    return Client(
        name="claude-code",
        title="Claude Code",
        servers=JsonHooks(matcher),
        user_path=lambda machine: (
            machine.folder_of("CLAUDE_CONFIG_DIR", machine.home / ".claude") / "settings.json"
        ),
        project_path=".claude/settings.json",
        places=("`~/.claude/settings.json`",),
        then="start a new session of Claude Code; /hooks shows them",
        typed=False,
    )


def is_complete(entry: Entry) -> bool:
    """Tell whether all hooks are present, and as this version writes them."""
    return bool(entry["args"])


def snippet() -> str:
    """Return the block that a user pastes into an empty file."""
    return hooks_of_claude_code(USUAL_TOOLS).snippet(Launch(NAME, (VERB,)))


def _own(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    hooks = document.get(_KEY, {})
    if not isinstance(hooks, dict):
        raise Misshapen(f"{_KEY} is not an object")
    for event in hooks:
        for group in _groups(document, event):
            for hook in group.get("hooks", ()):
                if _is_ours(hook):
                    yield event, hook


def _groups(document: Mapping[str, Any], event: str) -> list[dict[str, Any]]:
    groups = document.get(_KEY, {}).get(event, [])
    sound = isinstance(groups, list) and all(
        isinstance(group, dict) and isinstance(group.get("hooks", []), list) for group in groups
    )
    if not sound:
        raise Misshapen(f"{_KEY}.{event} is not a list of groups")
    return list(groups)


def _without_ours(group: dict[str, Any]) -> dict[str, Any] | None:
    """Return a group without Byheart's hooks, or `None` if it has no others."""
    others = [hook for hook in group.get("hooks", ()) if not _is_ours(hook)]
    if len(others) == len(group.get("hooks", ())):
        return group
    return {**group, "hooks": others} if others else None


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # an unclosed quote, which Byheart never writes
        return False
    # The verb must follow the program directly: elsewhere, the word may be a folder's name.
    at = words.index(VERB) if VERB in words[1:-1] else 0
    return at > 0 and PureWindowsPath(words[at - 1]).stem == NAME and words[-1] in _EVENTS


def _require(text: str, expected: Mapping[str, Any]) -> None:
    if parse_json(text) != expected:
        raise Unsafe
