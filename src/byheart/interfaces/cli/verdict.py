"""Say on a terminal that hits may be no answer; with --explain, give the reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from byheart.interfaces.cli.screen import Part, Screen, one_line
from byheart.model import Fusion, Mode, RecallAnswer, SearchAnswer
from byheart.model.answers import LEAST_RIGHT, RELATED_FROM

# The number of unrelated texts to offer, and the length of each: enough to see what they are.
MOST_NEAREST, NEAREST_CHARS = 3, 74


class Near(NamedTuple):
    """Hold a text that is nearest to a question, and its id."""

    text: str
    name: str


def deny(screen: Screen, *, nearest: bool) -> None:
    """Say that no hit seems to be an answer; with `nearest`, hits follow all the same."""
    screen.line(Part("nothing here seems to answer this", "bad"))
    if nearest:
        screen.line(Part("nearest, probably unrelated:", "dim"))


def doubt(screen: Screen, answer: SearchAnswer | RecallAnswer, fusion: Fusion = "evidence") -> None:
    """Say that the hits may have nothing to do with the question, if that is likely."""
    if answer.verdict == "weak" and is_doubtful(answer.confidence, answer.mode, fusion):
        screen.line(Part("perhaps nothing here answers this", "bad"))


def is_doubtful(confidence: float, mode: Mode, fusion: Fusion) -> bool:
    """Say whether a hit is hardly about the question.

    A hit that is about the question has at least the confidence `LEAST_RIGHT`. A hit below it is
    hardly about the question. Cosines and reciprocal ranks have no lead: their confidence is the
    probability that the hit is about the question.
    """
    is_related = mode == "vector" or fusion == "rrf"
    return confidence < (RELATED_FROM if is_related else LEAST_RIGHT)


def offer_nearest(screen: Screen, texts: Sequence[Near]) -> None:
    """Offer texts that are probably unrelated, in place of an answer."""
    deny(screen, nearest=bool(texts))
    for near in texts[:MOST_NEAREST]:
        text = one_line(near.text)
        cut = text if len(text) <= NEAREST_CHARS else text[: NEAREST_CHARS - 1].rstrip() + "…"
        screen.line(Part(cut, "dim"), indent=1)
        screen.line(Part(near.name, "dim"), indent=1)


def explain_verdict(screen: Screen, answer: SearchAnswer | RecallAnswer) -> None:
    """Give the verdict, its probability, and the figures behind it, where they were asked for."""
    if answer.grounds is None:
        return
    if answer.results if isinstance(answer, SearchAnswer) else answer.index:
        screen.line("")
    screen.line(Part(f"verdict {answer.verdict}, confidence {answer.confidence:.2f}", "dim"))
    figures = {
        "coverage": answer.grounds.coverage,
        "weight": answer.grounds.weight,
        "similarity": answer.grounds.similarity,
        "related": answer.grounds.related,
        "lead": answer.grounds.lead,
    }
    known = [f"{name} {each:.2f}" for name, each in figures.items() if each is not None]
    if answer.grounds.chunks is not None:
        known.append(f"chosen from {answer.grounds.chunks:,}")
    screen.line(Part(f"of the best hit: {', '.join(known)}", "dim"), indent=1)
    index = answer.index if isinstance(answer, SearchAnswer) else answer.index_state
    if index is not None and index.kept_in == "database":
        screen.line(Part("ranked with postings and vectors in the database", "dim"), indent=1)
    for time in answer.times:
        period = f"from {_day(time.start)} to {_day(time.end)}"
        screen.line(Part(f'"{time.text}" prefers memories {period}', "dim"), indent=1)


def _day(moment: datetime) -> str:
    """Show a moment as briefly as it allows: most periods begin and end at midnight."""
    midnight = moment.hour == moment.minute == moment.second == 0
    return f"{moment:%Y-%m-%d}" if midnight else f"{moment:%Y-%m-%d %H:%M}"
