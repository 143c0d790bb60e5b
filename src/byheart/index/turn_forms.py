"""Describe the form of turns: their length, whether they only ask, and who said them."""

from __future__ import annotations

from collections.abc import Sequence

from byheart.contracts import TurnForms
from byheart.index.columns import NO_TURN
from byheart.index.masks import Mask
from byheart.index.neighbouring_turns import places_of_turns
from byheart.index.segment import hash_term
from byheart.index.selections import Slots
from byheart.index.view import View
from byheart.language.speech import share_of_questions, speaker_term
from byheart.language.terms import tokens
from byheart.startup.late_numpy import NDArray, np

_STEPS = 255
_ASSISTANT = "assistant"
# Roles that say what a speaker does, not who it is.
_NO_NAMES = frozenset((_ASSISTANT, "user", "system", "tool", "human", "model", "developer"))


def measure_asking(text: str) -> int:
    """Return the share of a text that only asks, in steps of 1/255."""
    return round(_STEPS * share_of_questions(text))


def hash_speaker(text: str) -> int:
    """Return the hash of the speaker that a text names in front; 0 if it names none."""
    term = speaker_term(text)
    return 0 if term is None else hash_term(term)


def describe_turns(
    view: View, slots: Slots, around: Slots | None, terms: Sequence[str]
) -> TurnForms | None:
    """Describe those of some chunks that were said in a session; `None` if none was.

    `around` names the neighbours of each chunk by their slots, `terms` are those of the question.
    """
    rows, owners = view.memories, view.chunks.owner.take(slots)
    was_said = rows.turn.take(owners) != NO_TURN
    if not was_said.any():
        return None
    is_turn = places_of_turns(view).take(slots) >= 0
    roles = rows.role.take(owners)
    of_assistant = roles == view.codes["role"].find(_ASSISTANT)
    asked = frozenset(terms)
    named = _name(view.chunks.speaker.take(slots), asked)
    if numbers := _named_roles(view, asked):
        named |= np.isin(roles, numbers)
    asking = view.chunks.asking
    return TurnForms(
        lengths=np.where(is_turn, view.chunks.length.take(slots), 0),
        asking=asking.take(slots) / _STEPS,
        asking_beside=np.zeros((len(slots), 0))
        if around is None
        else np.where(around >= 0, asking.take(np.maximum(around, 0)), 0) / _STEPS,
        in_long_reply=of_assistant & was_said & ~is_turn,
        by_named_speaker=named & was_said,
    )


def _name(speakers: NDArray[np.uint64], asked: frozenset[str]) -> Mask:
    """Mark the texts whose speakers, 0 if a text names none, are among the terms of a question."""
    if not speakers.any():
        return np.zeros(len(speakers), np.bool_)
    return np.isin(speakers, np.array([hash_term(term) for term in asked], np.uint64))


def _named_roles(view: View, terms: frozenset[str]) -> list[int]:
    """List the numbers of the roles that are names in a question."""
    return [
        number
        for role, number in view.codes["role"].numbers.items()
        if role not in _NO_NAMES and not terms.isdisjoint(tokens(role))
    ]
