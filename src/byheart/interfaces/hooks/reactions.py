"""Map each event to its reaction; only the module of that reaction is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple, cast

from byheart.interfaces.hooks.situation import Reaction


class _Home(NamedTuple):
    module: str
    function: str


REACTIONS: Mapping[str, _Home] = {
    "SessionStart": _Home("answers", "start_session"),
    "UserPromptSubmit": _Home("answers", "answer_prompt"),
    "PostToolUse": _Home("captures", "keep_output"),
    "PreCompact": _Home("captures", "sum_up"),
    "Stop": _Home("captures", "catch_up"),
    "SessionEnd": _Home("captures", "sum_up"),
}
# The reaction if the model is not loaded in time.
_QUICKER = {"UserPromptSubmit": _Home("answers", "answer_by_keyword")}


def reaction_to(event: str, *, quicker: bool = False) -> Reaction:
    """Load the reaction to an event, or its quicker alternative."""
    home = _QUICKER[event] if quicker else REACTIONS[event]
    module = import_module(f"byheart.interfaces.hooks.{home.module}")
    return cast("Reaction", getattr(module, home.function))
