"""Would the constants of the ranking be chosen again if a family of sets were left out?

    python benchmarks/quality/families.py --data FOLDER --stores FOLDER [--questions 100]
        [--only VECTOR_WEIGHT …]

Each constant of the evidence is replaced by others, one at a time, and the sets of `quality run`
are asked again in hybrid mode. A family is one choice: its sets count the same, and so does each
family. The first table has nDCG@10 of each family with the built value, and what each other value
adds to it. The second has the value that would be chosen with all families, and with each one left
out in turn; values whose mean is within `--within` of the best one count as equal, and the built
value is then kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measures import compare, measure
from sets import Question
from stores import FilledStore, open_store, read_samples
from verdicts import family

from byheart.opening import embedder_for
from byheart.search import evidence_fusion
from byheart.settings import load_settings

# The other values that are tried; tuples are multiplied by them.
OTHERS: Mapping[str, Sequence[float]] = {
    "VECTOR_WEIGHT": (0.4, 0.5, 0.8),
    "MOST_NEARNESS": (1.0, 1.5, 3.0),
    "LONGEST_EXCESS": (0.6, 1.0),
    "AGREEMENT": (0.25, 1.0),
    "VERBATIM": (0.2, 0.7, 1.0),
    "MOST_WORDS": (2.5, 5.0),
    "NEIGHBOUR_SHARES": (0.5, 1.5),
    "ASKING_SHARES": (0.5, 1.5),
    "SHORT_TURN": (5, 15),
    "ASKING_LOSS": (0.3, 0.8),
    "LONG_REPLY": (0.5, 0.8, 1.0),
    "NAMED_SPEAKER": (1.0, 1.4),
}
Figures = dict[str, list[float]]


@contextmanager
def replaced(name: str, value: float) -> Iterator[None]:
    """Replace a constant of the evidence for a while."""
    built: Any = getattr(evidence_fusion, name)
    setattr(
        evidence_fusion,
        name,
        tuple(each * value for each in built) if isinstance(built, tuple) else value,
    )
    try:
        yield
    finally:
        setattr(evidence_fusion, name, built)


class Asked:
    """The sets, with the vectors of their questions."""

    def __init__(self, stores: Sequence[tuple[str, FilledStore, Sequence[Question]]]) -> None:
        self._stores = stores
        embed = embedder_for(load_settings()).embed_query
        self._vectors = [
            [embed(each.text).tolist() for each in questions] for _, _, questions in stores
        ]

    def ask(self) -> Figures:
        """Give nDCG@10 of each question, by set."""
        return {
            name: [
                measure(
                    filled.find(each, mode="hybrid", granularity="coarse", vector=vector),
                    each.gains,
                )["ndcg@10"]
                for each, vector in zip(questions, vectors, strict=True)
            ]
            for (name, filled, questions), vectors in zip(self._stores, self._vectors, strict=True)
        }


def by_family(figures: Figures) -> dict[str, float]:
    """Give the mean of each family, whose sets count the same."""
    families: dict[str, list[float]] = {}
    for name, scores in figures.items():
        families.setdefault(family(name), []).append(float(np.mean(scores)))
    return {name: float(np.mean(means)) for name, means in families.items()}


def choose(
    means: Mapping[float | None, Mapping[str, float]], kept: Sequence[str], within: float
) -> float | None:
    """Choose the value with the best mean over some families; None is the built one."""
    over = {value: np.mean([each[name] for name in kept]) for value, each in means.items()}
    best = max(over, key=lambda value: float(over[value]))
    return None if over[best] - over[None] <= within else best


def render_differences(built: Figures, tried: Mapping[str, Mapping[float, Figures]]) -> str:
    """Lay out what each other value adds to each family; bold if chance is an unlikely reason."""
    start = by_family(built)
    families = sorted(start)
    lines = [
        f"| constant | value | mean | {' | '.join(families)} |",
        "|" + "---|" * (len(families) + 3),
        f"| as built | | {np.mean(list(start.values())):.3f} | "
        + " | ".join(f"{start[each]:.3f}" for each in families)
        + " |",
    ]
    for name, values in tried.items():
        for value, figures in values.items():
            means = by_family(figures)
            cells = [_cell(built, figures, each) for each in families]
            change = np.mean([means[each] - start[each] for each in families])
            lines.append(
                f"| {name} | {_shown(name, value)} | {change:+.4f} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def _cell(built: Figures, figures: Figures, name: str) -> str:
    sets = [each for each in built if family(each) == name]
    before = [score for each in sets for score in built[each]]
    change = compare(before, [score for each in sets for score in figures[each]])
    mean = by_family(figures)[name] - by_family(built)[name]
    return f"**{mean:+.3f}**" if change.sure else f"{mean:+.3f}"


def render_choices(
    built: Figures, tried: Mapping[str, Mapping[float, Figures]], within: float
) -> str:
    """Lay out the value of each constant that is chosen, with each family left out in turn."""
    start = by_family(built)
    families = sorted(start)
    lines = [
        f"| constant | built | all | {' | '.join(f'without {each}' for each in families)} |",
        "|" + "---|" * (len(families) + 3),
    ]
    for name, values in tried.items():
        means: dict[float | None, Mapping[str, float]] = {None: start}
        means |= {value: by_family(figures) for value, figures in values.items()}
        chosen = [choose(means, families, within)]
        chosen += [
            choose(means, [each for each in families if each != left_out], within)
            for left_out in families
        ]
        shown = ["built" if each is None else _shown(name, each) for each in chosen]
        value: Any = getattr(evidence_fusion, name)
        current = list(value) if isinstance(value, tuple) else value
        lines.append(f"| {name} | {current} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(name: str, value: float) -> str:
    is_array = isinstance(getattr(evidence_fusion, name), tuple)
    return f"times {value:g}" if is_array else f"{value:g}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", help="all by default")
    parser.add_argument("--only", nargs="*", default=list(OTHERS), choices=list(OTHERS))
    parser.add_argument("--questions", type=int, default=100, help="of a set, at most")
    parser.add_argument("--sessions", type=int, help="of a set of sessions; all by default")
    parser.add_argument("--within", type=float, default=0.002)
    given = parser.parse_args()
    with ExitStack() as opened:
        stores = []
        for whole in read_samples(given.data, given.sets, given.questions, given.sessions):
            filled = opened.enter_context(open_store(given.stores, whole))
            stores.append((whole.name, filled, whole.questions))
        all_sets = Asked(stores)
        built = all_sets.ask()
        tried: dict[str, dict[float, Figures]] = {}
        for name in given.only:
            tried[name] = {}
            for value in OTHERS[name]:
                with replaced(name, value):
                    tried[name][value] = all_sets.ask()
    print(render_differences(built, tried), render_choices(built, tried, given.within), sep="\n\n")


if __name__ == "__main__":
    main()
