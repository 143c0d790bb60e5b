"""Feedback: does it help, does wrong feedback hurt, and can an adversary bury a memory?

    python benchmarks/quality/feedback.py --data FOLDER --stores STORES --sets xquad_en

Half of the questions of a set get feedback on their right memories. Then all questions are asked
again: those with feedback, others about a memory with feedback, and the rest. In the second trial,
a fifth of the feedback is false. In the third and the fourth, an adversary calls every right memory
wrong, and in the fourth every other hit of the page helpful.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from measures import DEPTH, compare, measure
from sets import Question, RetrievalSet, find_sets, read_set
from stores import FilledStore, open_store, store_path
from systems import Byheart

_SEED = 11
_FALSE_SHARE = 0.2


class Trial(NamedTuple):
    """Hold a name, and the feedback that is given: (document, question, outcome)."""

    name: str
    given: Sequence[tuple[str, Question, str]]


def main() -> None:
    """Run all trials on each set, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    asked = parser.parse_args()
    asked.stores.mkdir(parents=True, exist_ok=True)
    print("| set | trial | questions | nDCG@10 before | after | difference | in the first ten |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for folder in find_sets(asked.data, asked.sets):
        for line in run(read_set(folder), asked.stores):
            print(line, flush=True)


def run(whole: RetrievalSet, stores: Path) -> Iterator[str]:
    """Run the trials of a set, each on a fresh copy of its store."""
    with open_store(stores, whole) as filled:
        before = find_all(filled, whole.questions)
    chance = random.Random(f"{_SEED} {whole.name}")
    half = chance.sample(list(whole.questions), len(whole.questions) // 2)
    for trial in make_trials(half, before, chance):
        with tempfile.TemporaryDirectory() as folder:
            for path in stores.glob(f"{store_path(stores, whole).name}*"):
                shutil.copy(path, folder)
            with open_store(Path(folder), whole) as filled:
                ids = {name: memory_id for memory_id, name in filled.names.items()}
                for document, question, outcome in trial.given:
                    filled.store.feedback(ids[document], question.text, outcome)
                after = find_all(filled, whole.questions)
        yield from render(whole, trial, half, before, after)


def make_trials(
    half: Sequence[Question], before: Mapping[str, Sequence[str]], chance: random.Random
) -> Iterator[Trial]:
    """Make the feedback of each trial from what was found without any."""
    right = [(name, each, "used") for each in half for name in each.gains]
    yield Trial("right feedback", right)
    false = set(chance.sample(range(len(right)), round(_FALSE_SHARE * len(right))))
    yield Trial(
        "a fifth is false",
        [_falsify(each, before, chance) if at in false else each for at, each in enumerate(right)],
    )
    buried = [(name, each, "wrong") for each in half for name in each.gains]
    yield Trial("right ones called wrong", buried)
    others = [
        (name, each, "used")
        for each in half
        for name in before[each.name]
        if name not in each.gains
    ]
    yield Trial("and all others helpful", [*buried, *others])


def _falsify(
    given: tuple[str, Question, str], before: Mapping[str, Sequence[str]], chance: random.Random
) -> tuple[str, Question, str]:
    """Call the right memory wrong, or a wrong one of the page helpful, with equal chance."""
    name, question, _ = given
    others = [each for each in before[question.name] if each not in question.gains]
    if others and chance.random() < 0.5:
        return chance.choice(others), question, "used"
    return name, question, "wrong"


def find_all(filled: FilledStore, questions: Sequence[Question]) -> dict[str, list[str]]:
    """Ask every question in hybrid mode."""
    system = Byheart(filled, "hybrid")
    return {each.name: system.find(each) for each in questions}


def render(
    whole: RetrievalSet,
    trial: Trial,
    half: Sequence[Question],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Lay out a trial: a line for each group of questions."""
    told = {each.name for each in half}
    known = {name for each in half for name in each.gains}
    others = [each for each in whole.questions if each.name not in told]
    groups = {
        "asked again": half,
        "other questions about these memories": [each for each in others if known & {*each.gains}],
        "about other memories": [each for each in others if not known & {*each.gains}],
    }
    for name, questions in groups.items():
        if not questions:
            continue
        figures = [
            [measure(found[each.name], each.gains)["ndcg@10"] for each in questions]
            for found in (before, after)
        ]
        difference = compare(*figures)
        first = [
            (each, one)
            for each in questions
            for one in each.gains
            if one in before[each.name][:DEPTH]
        ]
        kept = sum(one in after[each.name][:DEPTH] for each, one in first)
        means = [sum(each) / len(each) for each in figures]
        yield (
            f"| {whole.name} | {trial.name}: {name} | {len(questions):,} | {means[0]:.3f} "
            f"| {means[1]:.3f} | {difference.mean:+.3f} ({difference.low:+.3f} to "
            f"{difference.high:+.3f}) | {kept:,} of {len(first):,} |"
        )


if __name__ == "__main__":
    main()
