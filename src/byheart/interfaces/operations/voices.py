"""Attribute the words of a call to its caller: an agent cannot speak for the user.

A caller with the voice `user` may save the user's words. One with the voice `agent` saves its own.
A stranger may only add texts, and these wait for review.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from byheart.errors import ByheartError
from byheart.model import VOICES, Voice, usual_origin
from byheart.model.field_types import Verb

if TYPE_CHECKING:  # at run time, the table imports this module
    from byheart.interfaces.operations.table import Operation

# The fields whose words reach a prompt.
_WORDS = ("content", "title", "summary")


class Forbidden(ByheartError):
    """Refuse a call that the caller's API key does not allow."""


def may_call(voice: Voice, needed: Voice) -> bool:
    """Return whether a caller's voice is enough for a call."""
    return VOICES.index(voice) <= VOICES.index(needed)


def attribute(operation: Operation, given: Mapping[str, Any], voice: Voice) -> dict[str, Any]:
    """Return the arguments of a writing call with the caller's own origin, or refuse the call."""
    if not may_call(voice, operation.voice):
        who = "a stranger" if voice == "stranger" else f"an {voice}"
        raise _forbidden(f"this caller speaks as {who}, and may not {operation.name}")
    if voice == "user" or operation.name not in get_args(Verb):  # in other verbs it is a filter
        return dict(given)
    if given.get("origin") == "user":
        raise _forbidden("this caller may not save words as the user's (origin user)")
    attributed = dict(given)
    if operation.name == "update":
        # A changed text has the words of the caller. `None` would derive the origin anew.
        if given.get("origin", "agent") is None or not given.keys().isdisjoint(_WORDS):
            attributed["origin"] = given.get("origin") or "agent"
    elif given.get("origin") is None and _usual_origin(operation, given) == "user":
        attributed["origin"] = "agent"
    if voice == "stranger":
        if given.get("trusted"):
            raise _forbidden("this caller's texts wait for review (trusted false)")
        attributed["trusted"] = False
    return attributed


def _usual_origin(operation: Operation, given: Mapping[str, Any]) -> str:
    kind = given.get("kind") or operation.parameters["kind"].default
    return usual_origin(kind, given.get("role"), given.get("path"), given.get("agent_id"))


def _forbidden(message: str) -> Forbidden:
    return Forbidden(
        message,
        "leave it out, or use an API key with the voice user; the operator of the store makes "
        "API keys",
    )
