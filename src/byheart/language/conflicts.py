"""Decide whether two sentences contradict each other: the same subject, another value.

The rules prefer silence: two sentences conflict only if one subject's words contain the other's,
and exactly one value differs. If a time and another value differ, the sentences are about two
times; if a state and a number differ, or two numbers, about two things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from byheart.language.claims import Claim, read_claim
from byheart.startup.late_patterns import late_pattern

ConflictKind = Literal["number", "time", "name", "negation", "state"]
# A dot after a title or inside a word ends no sentence.
_SENTENCE = late_pattern(
    r"(?:[^.!?\n]|(?<=\bMr)\.|(?<=\bMrs)\.|(?<=\bMs)\.|(?<=\bDr)\.|(?<=\bProf)\.|[.!?](?=\S))+[.!?]*"
)
# A long text is compared by so many of its first sentences.
_MOST_SENTENCES = 40
_LONGEST_SENTENCE = 300


class Difference(NamedTuple):
    """Hold two sentences that contradict each other, and the kind of value that differs."""

    kind: ConflictKind
    some: str
    other: str


def find_difference(some: Sequence[Claim], others: Sequence[Claim]) -> Difference | None:
    """Find the first two claims of two texts that contradict each other."""
    for one in some:
        for another in others:
            kind = compare(one, another)
            if kind is not None:
                return Difference(kind, one.text, another.text)
    return None


def read_claims(text: str) -> list[Claim]:
    """Read the sentences of a text that claim something."""
    sentences = [match[0].strip(" \t#*>-") for match in _SENTENCE.finditer(text)]
    told = [each for each in sentences if 2 < len(each) <= _LONGEST_SENTENCE][:_MOST_SENTENCES]
    return [claim for claim in map(read_claim, told) if claim is not None]


def compare(some: Claim, other: Claim) -> ConflictKind | None:
    """Return the kind of value in which two claims about one subject differ, if they do."""
    if _is_replaced(some, other) or _is_replaced(other, some):
        return "name"
    if not _is_same_subject(some, other):
        return None
    differing = [kind for kind, count in _COMPARED.items() for _ in range(count(some, other))]
    if some.periods != other.periods and some.periods and other.periods:
        differing.append("period")
    negated = some.negations % 2 != other.negations % 2
    if negated:
        # "not allowed" says the same as "forbidden".
        if differing == ["state"]:
            return None
        same = some.subject == other.subject and some.names == other.names
        return "negation" if same and not differing and _has_same_values(some, other) else None
    if differing in (["period"], []):
        return None
    if set(differing) <= {"day", "clock", "period"}:
        return "time"
    if len(differing) > 1:
        return None
    return _KINDS[differing[0]]


def _is_replaced(some: Claim, other: Claim) -> bool:
    """Return whether one claim says that a value of the other was replaced by a new one."""
    words = other.subject.union(*other.names.values())
    shared = some.subject & other.subject
    return any(old in words and new not in words and shared - {old} for old, new in some.replaced)


def _is_same_subject(some: Claim, other: Claim) -> bool:
    """Return whether the words about one subject contain the words about the other.

    A state of a kind that only one claim has says what the claim is about: "the monthly plan".
    """
    subjects = [
        one.subject
        | {word for group, (_, word) in one.states.items() if group not in another.states}
        for one, another in ((some, other), (other, some))
    ]
    return all(subjects) and (subjects[0] <= subjects[1] or subjects[1] <= subjects[0])


def _has_same_values(some: Claim, other: Claim) -> bool:
    return (
        some.states == other.states
        and some.labels == other.labels
        and some.quantities == other.quantities
    )


def _count_quantities(some: Claim, other: Claim) -> int:
    """Count the dimensions in which both have amounts, and none of these are the same."""
    shared = {each.dimension for each in some.quantities} & {
        each.dimension for each in other.quantities
    }
    same = {
        one.dimension
        for one in some.quantities
        for another in other.quantities
        if one.equals(another)
    }
    return len(shared - same)


def _count_labels(some: Claim, other: Claim) -> int:
    shared = some.labels.keys() & other.labels.keys()
    return sum(some.labels[noun] != other.labels[noun] for noun in shared)


def _count_clocks(some: Claim, other: Claim) -> int:
    pairs = [(one, another) for one in some.clocks for another in other.clocks]
    return int(bool(pairs) and all(one.differs(another) for one, another in pairs))


def _count_days(some: Claim, other: Claim) -> int:
    pairs = [(one, another) for one in some.days for another in other.days]
    return int(bool(pairs) and all(one.differs(another) for one, another in pairs))


def _count_names(some: Claim, other: Claim) -> int:
    shared = some.names.keys() & other.names.keys()
    return sum(not some.names[leading] & other.names[leading] for leading in shared)


def _count_states(some: Claim, other: Claim) -> int:
    shared = some.states.keys() & other.states.keys()
    return sum(some.states[group][0] != other.states[group][0] for group in shared)


# Each function counts the values of one kind in which two claims differ.
_COMPARED: dict[str, Callable[[Claim, Claim], int]] = {
    "quantity": _count_quantities,
    "label": _count_labels,
    "clock": _count_clocks,
    "day": _count_days,
    "name": _count_names,
    "state": _count_states,
}
_KINDS: dict[str, ConflictKind] = {
    "quantity": "number",
    "label": "number",
    "name": "name",
    "state": "state",
}
