"""Summarize a session that no agent has summarized: the most important turns, in order.

A turn is told by its summary, which is its first sentence, and by its further sentences that hold a
decision, an open point or a number. A sentence whose words were all told before is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from byheart.contracts import SaidTurn
from byheart.language.distinct_words import words_of
from byheart.startup.late_patterns import late_pattern

# How many further sentences of a turn are told, and how long each may be.
_MOST_SENTENCES, _MOST_WORDS = 3, 30
_SENTENCE = late_pattern(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]*")
_DECIDED = late_pattern(
    r"\b(?:decided?|decision|agreed?|chose|chosen|settled|will|must|never|always|prefers?|instead"
    r"|from now on|keep|because)\b",
    re.IGNORECASE,
)
_OPEN = late_pattern(
    r"\?|\b(?:todo|open|unclear|undecided|pending|remains?|still|need(?:s|ed)? to|have to|has to"
    r"|next step|follow up|waiting|blocked|by (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_NUMBER = late_pattern(r"\d")


def extract_summary(turns: Iterable[SaidTurn]) -> str:
    """List what turns say, one line each, without repetitions."""
    told: set[str] = set()
    lines: dict[str, None] = {}
    for turn in turns:
        lines.setdefault(f"- {turn.role}: {' '.join(_tell(turn, told))}")
    return "\n".join(lines)


def _tell(turn: SaidTurn, told: set[str]) -> Iterator[str]:
    """Give the summary of a turn and its sentences that matter, in the order of the text."""
    yield turn.summary
    told |= words_of(turn.summary)
    further = [
        sentence
        for sentence in (each[0].strip() for each in _SENTENCE.finditer(turn.text))
        if _weigh(sentence) and sentence not in turn.summary and turn.summary not in sentence
    ]
    most = sorted(further, key=_weigh, reverse=True)[:_MOST_SENTENCES]
    for sentence in further:
        if sentence in most and not words_of(sentence) <= told:
            told |= words_of(sentence)
            yield sentence


def _weigh(sentence: str) -> int:
    """Count what a sentence holds: a decision counts twice; a long sentence is no summary."""
    if len(sentence.split()) > _MOST_WORDS:
        return 0
    decided, is_open = bool(_DECIDED.search(sentence)), bool(_OPEN.search(sentence))
    return 2 * decided + is_open + bool(_NUMBER.search(sentence))
