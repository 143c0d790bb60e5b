"""Small stores: are verdicts right where a store holds only a handful of memories?

Some documents of a set, among them one that answers a question, are a space of their own. It is
asked that question and further ones of the set that it can answer, and some of unrelated sets. The
facts of everyday_facts.json are sets too, together and theme by theme.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from everyday import FAMILY, read_everyday, read_general
from kept import KeptEmbedder, KeptVectors
from sets import Document, Question, RetrievalSet
from verdicts import Judged, family, judge_answer

from byheart.model.answers import RELATED_FROM
from byheart.search.verdict import (
    SIMILAR,
    Signs,
    estimate_by_similarity,
    estimate_with_words,
    similar_enough,
)
from byheart.settings import load_settings
from byheart.storage.sqlite import SqliteStorage
from byheart.store import MemoryStore

_SEED = 11
# How many questions a small store is asked, of its own and of others.
_OWN, _OTHERS = 2, 6


def judge_small(
    sets: Sequence[RetrievalSet],
    kept: KeptVectors,
    path: Path,
    sizes: Sequence[int],
    draws: int,
    modes: Sequence[str],
) -> Iterator[Judged]:
    """Ask small stores of every set; `set` then names the size as well."""
    own = read_everyday()
    asking = [*sets, own[0], read_general()]
    with MemoryStore(SqliteStorage(path), KeptEmbedder(kept), load_settings()) as store:
        for whole in [*sets, *own]:
            others = [each for each in asking if family(each.name) != family(whole.name)]
            for size in sizes:
                if size > len(whole.documents):
                    continue
                chance = random.Random(f"{_SEED} {whole.name} {size}")
                for number in range(draws):
                    space = f"{whole.name}_{size}_{number}"
                    mine = draw_documents(whole, size, chance)
                    yield from _judge(store, space, size, mine, whole, others, modes, chance)


def draw_documents(whole: RetrievalSet, size: int, chance: random.Random) -> list[Document]:
    """Choose a question, a document that answers it, and others of the same conversation."""
    question = chance.choice(whole.questions)
    answer = chance.choice(sorted(question.gains))
    around = [each for each in whole.documents if each.group == question.group]
    rest = [each for each in around if each.name != answer]
    chosen = {answer, *(each.name for each in chance.sample(rest, min(size - 1, len(rest))))}
    return [each for each in around if each.name in chosen]


def _judge(
    store: MemoryStore,
    space: str,
    size: int,
    documents: Sequence[Document],
    whole: RetrievalSet,
    others: Sequence[RetrievalSet],
    modes: Sequence[str],
    chance: random.Random,
) -> Iterator[Judged]:
    items = [
        {"content": each.text, "title": each.title, "session_id": each.group, "space": space}
        for each in documents
    ]
    saved = store.save_many(items)
    names = {each.memory_id: one.name for each, one in zip(saved, documents, strict=True)}
    group = documents[0].group
    here = {each.name for each in documents}
    own = [each for each in whole.questions if each.group == group and here & set(each.gains)]
    asked: list[tuple[Question, bool]] = [
        *((each, True) for each in chance.sample(own, min(_OWN, len(own)))),
        *((chance.choice(other.questions), False) for other in chance.choices(others, k=_OTHERS)),
    ]
    scope: dict[str, Any] = {"session_id": group, "include_global": False} if group else {}
    for question, is_own in asked:
        for mode in modes:
            answer = store.search(
                question.text, limit=1, mode=mode, explain=True, space=space, **scope
            )
            gains = question.gains if is_own else None
            yield judge_answer(f"{whole.name}, {size} documents", mode, answer, names, gains)


def render_small(judged: Sequence[Judged]) -> str:
    """Lay out how often each verdict is given, by size: means over the sets."""
    lines = [
        "| documents | mode | own, best hit right: `answered` | `none` | all own: `none` "
        "| unrelated: `answered` | `none` |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode in sorted({each.mode for each in judged}):
        for size in sorted({_size(each) for each in judged}):
            mine = [each for each in judged if each.mode == mode and _size(each) == size]
            right = [each for each in mine if each.right]
            own = [each for each in mine if each.own]
            rest = [each for each in mine if not each.own]
            cells = (
                *(_mean_share(right, word) for word in ("answered", "none")),
                _mean_share(own, "none"),
                *(_mean_share(rest, word) for word in ("answered", "none")),
            )
            lines.append(f"| {size} | {mode} | {' | '.join(f'{each:.3f}' for each in cells)} |")
    return "\n".join(lines)


def _size(judged: Judged) -> int:
    return int(judged.set.split(", ")[1].split()[0])


def _mean_share(judged: Sequence[Judged], word: str) -> float:
    """Give the mean over the sets; the themes of everyday facts count as one set together."""
    names = sorted({_counted(each) for each in judged})
    shares = [[each.verdict == word for each in judged if _counted(each) == name] for name in names]
    return sum(sum(each) / len(each) for each in shares) / max(len(shares), 1)


def _counted(judged: Judged) -> str:
    name = judged.set.split(",")[0]
    return f"{FAMILY}, by theme" if name.startswith(f"{FAMILY}_") else name


def render_families(judged: Sequence[Judged]) -> str:
    """Lay out the same by set, all sizes together."""
    lines = [
        "| set | mode | right best hits | of these `answered` | `none` "
        "| unrelated | of these `answered` | `none` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for mode in sorted({each.mode for each in judged}):
        for name in sorted({_counted(each) for each in judged}):
            mine = [each for each in judged if each.mode == mode and _counted(each) == name]
            right = [each for each in mine if each.right]
            rest = [each for each in mine if not each.own]
            shares = [
                f"{sum(each.verdict == word for each in some) / max(len(some), 1):.3f}"
                for some in (right, rest)
                for word in ("answered", "none")
            ]
            lines.append(
                f"| {name} | {mode} | {len(right):,} | {shares[0]} | {shares[1]} "
                f"| {len(rest):,} | {shares[2]} | {shares[3]} |"
            )
    return "\n".join(lines)


def fit_small(judged: Sequence[Judged]) -> str:
    """Choose the first constant of `similar_enough` again, with each family left out in turn.

    The least constant is chosen that calls at most 1.5 % of the unrelated questions answered.
    """
    mine = [each for each in judged if each.mode == "hybrid" and each.grounds is not None]
    families = sorted({family(_counted(each).split(",")[0]) for each in mine})
    lines = [f"all families: {_choose_constant(mine):.2f}"]
    for left_out in families:
        apart = [each for each in mine if family(_counted(each).split(",")[0]) == left_out]
        constant = _choose_constant([each for each in mine if each not in apart])
        right, wrong = _answered(apart, constant)
        lines.append(
            f"without {left_out}: {constant:.2f}; there, {right:.3f} of right best hits and "
            f"{wrong:.3f} of unrelated questions are called answered"
        )
    return "\n".join(lines)


def _choose_constant(judged: Sequence[Judged]) -> float:
    constants = [number / 100 for number in range(15, 30)]
    return next((each for each in constants if _answered(judged, each)[1] <= 0.015), constants[-1])


def _answered(judged: Sequence[Judged], constant: float) -> tuple[float, float]:
    """Give the shares called answered with another constant: of right hits, of unrelated ones."""
    said = [(each, _is_answered(each, constant)) for each in judged]
    shares = []
    for wanted in (True, False):
        some = [
            (_counted(each), yes) for each, yes in said if (each.right if wanted else not each.own)
        ]
        names = sorted({name for name, _ in some})
        means = [[yes for name, yes in some if name == mine] for mine in names]
        shares.append(sum(sum(each) / len(each) for each in means) / max(len(means), 1))
    return shares[0], shares[1]


def _is_answered(judged: Judged, constant: float) -> bool:
    grounds = judged.grounds
    assert grounds is not None
    signs = Signs(grounds.coverage, grounds.weight, grounds.similarity, grounds.chunks)
    alone = estimate_by_similarity(signs, similar_enough(signs.chunks) - SIMILAR + constant)
    return max(estimate_with_words(signs), alone) >= RELATED_FROM
