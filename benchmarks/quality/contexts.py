"""Contexts: which retrieved passages earn their place, for answerable and for unrelated questions?

Every question asks for a context of eight passages. The receipt says which were put in and which
were left out as unrelated, so one run shows what a context without the threshold would have held.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sets import RetrievalSet
from stores import FilledStore
from verdicts import family

_SEED = 17
TOP_K = 8


@dataclass(frozen=True, slots=True)
class Given:
    """A question put to a set: the passages put in and left out, and how many of them are right."""

    set: str
    own: bool
    put_in: int
    left_out: int
    right_put_in: int
    right_left_out: int


def ask_contexts(
    whole: RetrievalSet,
    others: Sequence[RetrievalSet],
    filled: FilledStore,
    count: int,
) -> Iterator[Given]:
    """Ask a set some of its own questions, and as many of unrelated sets."""
    chance = random.Random(f"{_SEED} {whole.name}")
    groups = sorted({each.group for each in whole.documents if each.group})
    own = chance.sample(list(whole.questions), min(count, len(whole.questions)))
    foreign = [
        question
        for other in others
        if family(other.name) != family(whole.name)
        for question in other.questions
    ]
    asked: list[tuple[str, str | None, Any]] = [
        *((each.text, each.group, each.gains) for each in own),
        *(
            (each.text, chance.choice(groups) if groups else None, None)
            for each in chance.sample(foreign, min(len(own), len(foreign)))
        ),
    ]
    for text, group, gains in asked:
        answer = filled.store.context(
            group or "none",
            text,
            max_tokens=100_000,
            recent=0,
            top_k=TOP_K,
            include_global=not group,
        )
        put_in = [each.memory_id for each in answer.receipt.items if each.part == "retrieved"]
        left_out = [
            each.memory_id for each in answer.receipt.left_out if each.reason == "unrelated"
        ][: TOP_K - len(put_in)]
        right = [
            [filled.names.get(one) in (gains or ()) for one in some] for some in (put_in, left_out)
        ]
        yield Given(whole.name, gains is not None, len(put_in), len(left_out), *map(sum, right))


def render_contexts(given: Sequence[Given]) -> str:
    """Lay out what a context holds with the threshold, and held without it."""
    lines = [
        "| set | questions | right passages kept | passages each, without the threshold "
        "| unrelated questions | passages each, without the threshold | with nothing retrieved |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(each.set for each in given):
        own = [each for each in given if each.set == name and each.own]
        rest = [each for each in given if each.set == name and not each.own]
        kept = sum(each.right_put_in for each in own)
        right = kept + sum(each.right_left_out for each in own)
        lines.append(
            f"| {name} | {len(own):,} | {kept / max(right, 1):.3f} of {right:,} | {_sizes(own)} "
            f"| {len(rest):,} | {_sizes(rest)} "
            f"| {sum(not each.put_in for each in rest) / max(len(rest), 1):.3f} |"
        )
    return "\n".join(lines)


def _sizes(given: Sequence[Given]) -> str:
    with_it = sum(each.put_in for each in given) / max(len(given), 1)
    without = sum(each.put_in + each.left_out for each in given) / max(len(given), 1)
    return f"{with_it:.1f}, {without:.1f}"
