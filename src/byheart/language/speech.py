"""Read the form of what somebody said: how much of it only asks, and who said it."""

from __future__ import annotations

from byheart.language.terms import tokens
from byheart.startup.late_patterns import late_pattern

_QUESTION_MARKS = "?？؟\u037e"
_SENTENCE = late_pattern(rf"[^.!。！\n{_QUESTION_MARKS}]*+[.!。！\n{_QUESTION_MARKS}]*+")
# People put facts into a long question: "I moved to Rome in May, so which bank do you suggest?"
_LONGEST_QUESTION = 80
# A transcript names the speaker in front: "Anna: see you at ten".
_SPEAKER = late_pattern(r"\s*+([^\W\d_][\w'’.-]{0,30}+)(?: [^\W\d_][\w'’.-]{0,30}+){0,2}:\s")


def share_of_questions(text: str) -> float:
    """Return the share of a text, by characters, that consists of short questions."""
    if not any(mark in text for mark in _QUESTION_MARKS):
        return 0.0
    total = asking = 0
    for sentence in map(str.strip, _SENTENCE.findall(text)):
        total += len(sentence)
        if sentence[-1:] in _QUESTION_MARKS and len(sentence) <= _LONGEST_QUESTION:
            asking += len(sentence)
    return asking / max(total, 1)


def speaker_term(text: str) -> str | None:
    """Return the keyword term of the speaker's first name, if the text begins with a name."""
    named = _SPEAKER.match(text)
    return next(iter(tokens(named[1])), None) if named else None
