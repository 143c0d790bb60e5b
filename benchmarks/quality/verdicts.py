"""Verdicts: is a question called answered where it is, and not where it cannot be?

A set's own questions are the answerable ones; questions of sets on other subjects are unrelated.
Sets of one family, that is on one subject or of the same texts, are not asked one another's.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from everyday import FAMILY, GENERAL, GENERAL_FAMILY
from numpy.typing import NDArray
from sets import RetrievalSet
from stores import FilledStore

import byheart

_FAMILIES = ("xquad", "locomo", FAMILY)
_SAME_SUBJECT = {"cisi": "computing", "cacm": "computing", GENERAL: GENERAL_FAMILY}
_SEED = 3
# Hits whose rightness is compared with the verdict, and steps of the calibration error.
_JUDGED, _STEPS = 3, 10
# Draws of answers for the error that remains by chance.
_DRAWS = 200
_BUCKETS = (0.0, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 1.01)
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """A question put to a set in one mode, what was said of the best hit, and what is true.

    A question is its own, unrelated, or on topic with nothing that answers it (`unanswerable`).
    """

    set: str
    mode: str
    own: bool
    right: bool
    verdict: str
    confidence: float
    grounds: byheart.model.VerdictExplanation | None
    right_of_three: bool = False
    unanswerable: bool = False


def family(name: str) -> str:
    """Name what sets have in common that may answer one another's questions."""
    for each in _FAMILIES:
        if name.startswith(each):
            return each
    return _SAME_SUBJECT.get(name, name)


def judge_set(
    whole: RetrievalSet,
    others: Sequence[RetrievalSet],
    filled: FilledStore,
    modes: Sequence[str],
    unrelated: int,
) -> Iterator[Judged]:
    """Ask a set its own questions, its unanswerable ones, and some of each unrelated set."""
    chance = random.Random(f"{_SEED} {whole.name}")
    groups = sorted({each.group for each in whole.documents if each.group})
    asked = [(each, True, False) for each in whole.questions]
    asked += [(each, False, True) for each in whole.unanswerable]
    for other in others:
        if family(other.name) != family(whole.name):
            several = chance.sample(list(other.questions), min(unrelated, len(other.questions)))
            for each in several:
                group = chance.choice(groups) if groups else None
                asked.append((replace(each, group=group), False, False))
    for question, is_own, is_unanswerable in asked:
        gains = question.gains if is_own else None
        for mode in modes:
            answer = filled.search(question, limit=_JUDGED, mode=mode, explain=True)
            judged = judge_answer(whole.name, mode, answer, filled.names, gains)
            yield replace(judged, unanswerable=is_unanswerable)


def judge_answer(
    name: str,
    mode: str,
    answer: byheart.SearchAnswer,
    names: Mapping[str, str],
    gains: Mapping[str, float] | None,
) -> Judged:
    """Say what an answer claimed and what was true; nothing is right for an unrelated question."""
    found = [names.get(hit.memory_id) in (gains or ()) for hit in answer.results[:_JUDGED]]
    claimed = (answer.verdict, answer.confidence, answer.grounds)
    return Judged(name, mode, gains is not None, any(found[:1]), *claimed, any(found))


def render_first_hits(judged: Sequence[Judged]) -> str:
    """Lay out how far `confidence` and `answered` meet the rightness of the first hits, by set.

    "Error" is the expected calibration error over ten steps of `confidence`, for own questions,
    "by chance" the error of a `confidence` that is exactly right, with so many questions.
    """
    lines = [
        "| set | mode | first hit right | mean confidence | error | by chance "
        "| wrong first hits `answered` | right ones `answered` | none of three right, `answered` "
        "| unanswerable `answered` |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for mode in sorted({each.mode for each in judged}):
        for name in sorted({each.set for each in judged}):
            mine = [each for each in judged if (each.mode, each.set) == (mode, name)]
            own = [each for each in mine if each.own]
            right = np.array([each.right for each in own], float)
            said = np.array([each.confidence for each in own])
            some = (
                [each for each in own if not each.right],
                [each for each in own if each.right],
                [each for each in own if not each.right_of_three],
                [each for each in mine if each.unanswerable],
            )
            shares = [
                f"{_share(each, 'answered'):.3f} of {len(each):,}" if each else "" for each in some
            ]
            error, by_chance = measure_error(said, right), measure_chance(said)
            figures = (right.mean(), said.mean(), error, by_chance)
            shown = " | ".join(f"{each:.3f}" for each in figures)
            lines.append(f"| {name} | {mode} | {shown} | {' | '.join(shares)} |")
    return "\n".join(lines)


def measure_error(said: Figures, right: Figures) -> float:
    """Return the expected calibration error: how far ten steps are from what is right in them."""
    steps = np.minimum((said * _STEPS).astype(int), _STEPS - 1)
    gaps = (
        (steps == step).mean() * abs(said[steps == step].mean() - right[steps == step].mean())
        for step in np.unique(steps)
    )
    return float(sum(gaps))


def measure_chance(said: Figures) -> float:
    """Return the mean error that probabilities have by chance if they are exactly right."""
    draws = np.random.default_rng(_SEED).random((_DRAWS, len(said))) < said
    return float(np.mean([measure_error(said, right.astype(float)) for right in draws]))


def render_verdicts(judged: Sequence[Judged]) -> str:
    """Lay out how often each verdict was given, by set and mode."""
    lines = [
        "| set | mode | answerable | of these `answered` | `none` "
        "| unrelated | of these `answered` | `none` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = sorted({(each.mode, each.set) for each in judged})
    for mode in sorted({each.mode for each in judged}):
        shares = []
        for _, name in (row for row in rows if row[0] == mode):
            mine = [each for each in judged if (each.mode, each.set) == (mode, name)]
            own = [each for each in mine if each.own]
            rest = [each for each in mine if not each.own and not each.unanswerable]
            shares.append([_share(each, word) for each in (own, rest) for word in _WORDS])
            lines.append(_row(name, mode, f"{len(own):,}", f"{len(rest):,}", shares[-1]))
        lines.append(_row("**mean**", mode, "", "", list(np.mean(shares, axis=0))))
    return "\n".join(lines)


_WORDS = ("answered", "none")


def _share(judged: Sequence[Judged], word: str) -> float:
    return sum(each.verdict == word for each in judged) / max(len(judged), 1)


def _row(name: str, mode: str, own: str, rest: str, shares: Sequence[float]) -> str:
    first, second, third, fourth = (f"{each:.3f}" for each in shares)
    return f"| {name} | {mode} | {own} | {first} | {second} | {rest} | {third} | {fourth} |"


def render_reliability(judged: Sequence[Judged]) -> str:
    """Lay out how often the best hit is right, by what was estimated.

    Every set counts the same, and so do its own questions and all unrelated ones together.
    """
    lines = [
        "| mode | confidence | questions | mean confidence | best hit is right "
        "| … of answerable questions |",
        "|---|---|---|---|---|---|",
    ]
    for mode in sorted({each.mode for each in judged}):
        mine = [each for each in judged if each.mode == mode and not each.unanswerable]
        said = np.array([each.confidence for each in mine])
        right = np.array([each.right for each in mine], float)
        own = np.array([each.own for each in mine])
        counts = weigh(mine)
        for low, high in pairwise(_BUCKETS):
            here = (said >= low) & (said < high)
            if not here.any():
                continue
            answerable = f"{right[here & own].mean():.2f}" if (here & own).any() else ""
            lines.append(
                f"| {mode} | {low:.2f} to {min(high, 1):.2f} | {int(here.sum()):,} "
                f"| {np.average(said[here], weights=counts[here]):.2f} "
                f"| {np.average(right[here], weights=counts[here]):.2f} | {answerable} |"
            )
    return "\n".join(lines)


def weigh(judged: Sequence[Judged]) -> Figures:
    """Count every set the same, and within it answerable and unrelated questions."""
    kinds = [(each.set, each.own) for each in judged]
    counts = Counter(kinds)
    return np.array([1 / counts[each] for each in kinds])


def fit_again(judged: Sequence[Judged], mode: str) -> str:
    """Fit the weights anew, with all sets and with each family left out in turn."""
    mine = [each for each in judged if each.mode == mode and not each.unanswerable]
    signs = np.array([_signs(each.grounds, mode) for each in mine])
    right = np.array([each.right for each in mine], float)
    counts = weigh(mine)
    families = np.array([family(each.set) for each in mine])
    lines = [f"{mode}, all sets: {_shown(_regress(signs, right, counts))}"]
    for left_out in sorted(set(families)):
        kept = families != left_out
        weights = _regress(signs[kept], right[kept], counts[kept])
        said = _logistic(signs @ weights)[~kept]
        own = np.array([each.own for each in mine])[~kept]
        lines.append(
            f"{mode}, without {left_out}: {_shown(weights)}; there, of its own "
            f"{(said[own] < 0.05).mean():.3f} below 0.05, of others' "
            f"{(said[~own] >= 0.35).mean():.3f} from 0.35 on"
        )
    return "\n".join(lines)


def _signs(grounds: byheart.model.VerdictExplanation | None, mode: str) -> list[float]:
    coverage = weight = similarity = size = 0.0
    if grounds is not None:
        coverage, weight = grounds.coverage or 0.0, min(grounds.weight or 0.0, 3.0)
        similarity = grounds.similarity or 0.0
        size = math.log(min(max(grounds.chunks or 0, 100), 10_000))
    if mode == "fts":
        return [1.0, coverage, weight]
    if mode == "vector":
        return [1.0, similarity]
    return [1.0, coverage, weight, min(max(similarity, 0.1), 0.5), size]


def _regress(signs: Figures, right: Figures, counts: Figures) -> Figures:
    """Fit a logistic regression by Newton's method."""
    weights: Figures = np.zeros(signs.shape[1])
    for _ in range(30):
        said = _logistic(signs @ weights)
        slope = signs.T @ (counts * (right - said))
        bend = (signs * (counts * said * (1 - said))[:, np.newaxis]).T @ signs
        weights = weights + np.linalg.solve(bend + 1e-6 * np.eye(len(weights)), slope)
    return weights


def _logistic(x: Figures) -> Figures:
    said: Figures = 1 / (1 + np.exp(-x))
    return said


def _shown(weights: Figures) -> str:
    return " ".join(f"{each:+.2f}" for each in weights)
