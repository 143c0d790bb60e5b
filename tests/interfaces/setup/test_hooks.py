"""The hooks of Claude Code: put in beside others, found again, and taken out without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.interfaces.cli.hook import EVENTS
from byheart.interfaces.setup.hooks import USUAL_TOOLS, JsonHooks, snippet
from byheart.interfaces.setup.servers import Misshapen

ENTRY = {"command": "/a place/byheart", "args": ["hook", "--space", "work"]}
HOOKS = JsonHooks(USUAL_TOOLS)
OTHER = {"hooks": [{"type": "command", "command": "say done"}]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        '{"model": "x"}',
        json.dumps({"hooks": {"Stop": [OTHER]}}, indent=2) + "\n",
        json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", **OTHER}]}, "a": 1}, indent=4),
    ],
)
def test_hooks_are_put_in_found_and_taken_out_again(text: str) -> None:
    assert HOOKS.read(text) is None
    there = HOOKS.put(text, ENTRY)
    assert HOOKS.read(there) == ENTRY
    assert HOOKS.put(there, ENTRY) == there
    assert set(json.loads(there)["hooks"]) >= set(EVENTS)
    assert json.loads(HOOKS.remove(there)) == json.loads(text or "{}")


def test_every_event_calls_its_own_command_and_tools_only_those_that_matter() -> None:
    hooks = json.loads(HOOKS.put("", ENTRY))["hooks"]
    for event in EVENTS:
        [group] = hooks[event]
        [hook] = group["hooks"]
        assert hook["command"] == f"'/a place/byheart' hook --space work {event}"
        assert ("matcher" in group) == (event == "PostToolUse")
        assert hook.get("async", False) == (event in ("PostToolUse", "Stop"))


@pytest.mark.parametrize(
    "command",
    [
        "cd ~/src/byheart && ./lint.sh hook",
        "cd ~/src/byheart && ./lint.sh hook Stop",
        "byheart-lint hook Stop",
        "byheart search hook",
    ],
)
def test_hooks_of_others_that_mention_the_name_stay(command: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    assert HOOKS.read(text) is None
    assert json.loads(HOOKS.remove(HOOKS.put(text, ENTRY))) == json.loads(text)


@pytest.mark.parametrize(
    "program", [["uvx", "byheart"], ["pipx", "run", "byheart"], ["/a/python", "-m", "byheart"]]
)
def test_hooks_are_known_however_the_program_is_started(program: list[str]) -> None:
    entry = {"command": program[0], "args": [*program[1:], "hook", "--db", "/a b/hook"]}
    assert json.loads(HOOKS.remove(HOOKS.put("{}", entry))) == {}


def test_hooks_that_are_not_all_there_are_put_in_anew() -> None:
    held = json.loads(HOOKS.put("", ENTRY))
    del held["hooks"]["Stop"]
    found = HOOKS.read(json.dumps(held))
    assert found is not None
    assert found != ENTRY
    assert HOOKS.read(HOOKS.put(json.dumps(held), ENTRY)) == ENTRY


def test_what_is_no_list_of_hooks_is_refused() -> None:
    for text in ('{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1]}}'):
        with pytest.raises(Misshapen):
            HOOKS.put(text, ENTRY)


GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"command": st.text(max_size=8)}), max_size=2)},
        optional={"matcher": st.text(max_size=4)},
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from([*EVENTS, "PreToolUse"]), GROUPS, max_size=4))
def test_hooks_of_others_are_always_left_as_they_are(hooks: dict[str, object]) -> None:
    text = json.dumps({"hooks": hooks} if hooks else {})
    there = HOOKS.put(text, ENTRY)
    for event, groups in hooks.items():
        assert json.loads(there)["hooks"][event][: len(groups)] == groups  # type: ignore[arg-type]
    assert json.loads(HOOKS.remove(there)) == json.loads(text)


def test_the_document_shows_the_block_to_paste() -> None:
    document = Path(__file__).parents[3] / "docs" / "hooks.md"
    assert f"```json\n{snippet().rstrip()}\n```" in document.read_text(encoding="utf-8")
