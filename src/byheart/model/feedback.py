"""Define feedback on memories: what came of giving one out for a question.

A memory keeps its feedback as text, a line for each question: the outcome, the time, a sketch
of the question's vector, and its terms. The question itself is not kept.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, get_args

from byheart.errors import InvalidInput
from byheart.model.times import from_micros, to_micros
from byheart.startup.dataclass_types import dataclass

# The outcomes that a caller names. A reply that repeats a memory makes it `echoed`.
Outcome = Literal["used", "ignored", "wrong"]
KeptOutcome = Literal["used", "ignored", "wrong", "echoed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_KEPT_OUTCOMES: tuple[KeptOutcome, ...] = get_args(KeptOutcome)
_NO_SIGNS = "-"


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """Describe a question by its distinct terms, and by a sketch of its vector, a bit per sign."""

    terms: frozenset[str]
    signs: bytes = b""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Hold the outcome of giving out a memory for a question."""

    outcome: KeptOutcome
    at: datetime
    question: AskedQuestion


@dataclass(frozen=True, slots=True)
class FeedbackResult:
    """The feedback that was recorded, and on how many questions the memory has feedback now."""

    memory_id: str
    outcome: Outcome
    at: datetime
    questions: int


def write_feedback(entries: Iterable[Feedback]) -> str | None:
    """Write feedback as a memory keeps it; `None` stands for no feedback."""
    return "\n".join(map(_write_line, entries)) or None


def read_feedback(text: str | None) -> tuple[Feedback, ...]:
    """Read the feedback that a memory keeps."""
    return tuple(map(_read_line, (text.split("\n") if text else ())))


def check_feedback(name: str, value: str) -> str:
    """Check feedback that an import brings."""
    try:
        return write_feedback(read_feedback(value)) or ""
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} cannot be read: {error}", "leave it out, or export it again"
        ) from error


def _write_line(entry: Feedback) -> str:
    question = entry.question
    signs = base64.b64encode(question.signs).decode() or _NO_SIGNS
    return " ".join((entry.outcome, str(to_micros(entry.at)), signs, *sorted(question.terms)))


def _read_line(line: str) -> Feedback:
    outcome, at, signs, *terms = line.split(" ")
    kept = next((each for each in _KEPT_OUTCOMES if each == outcome), None)
    if kept is None:
        raise ValueError(f"{outcome!r} is no outcome")
    try:
        bits = b"" if signs == _NO_SIGNS else base64.b64decode(signs, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    return Feedback(kept, from_micros(int(at)), AskedQuestion(frozenset(terms), bits))
