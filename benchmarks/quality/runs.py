"""Runs: one line per question and system, so that any two can be compared question by question."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measures import compare

_HEADER = (
    *("set", "system", "questions", "nDCG@10", "by category", "R@5", "R@10", "MRR", "hit@1"),
    "nDCG@10 against before",
)
MEASURES = ("ndcg@10", "recall@5", "recall@10", "mrr", "hit@1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a system found for a question, and how good that is."""

    set: str
    system: str
    question: str
    text: str
    category: str | None
    found: Sequence[str]
    wanted: Sequence[str]
    measures: Mapping[str, float]


def write_run(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Keep a run, one line per outcome."""
    lines = (json.dumps(asdict(each), ensure_ascii=False) for each in outcomes)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_run(path: Path) -> list[Outcome]:
    """Read a run that was kept."""
    with path.open(encoding="utf-8") as lines:
        return [Outcome(**json.loads(line)) for line in lines]


def group(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[Outcome]]:
    """Gather what belongs to one row of a table: the questions of a set, asked of one system."""
    rows: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for each in outcomes:
        rows[each.set, each.system].append(each)
    return rows


def mean(outcomes: Sequence[Outcome], name: str) -> float:
    """Give the mean of a measure."""
    return sum(each.measures[name] for each in outcomes) / len(outcomes)


def mean_by_category(outcomes: Sequence[Outcome], name: str) -> float | None:
    """Give the mean over categories of their means, if there are several."""
    categories: dict[str | None, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        categories[each.category].append(each)
    if len(categories) < 2:
        return None
    return sum(mean(each, name) for each in categories.values()) / len(categories)


def render(outcomes: Iterable[Outcome], before: Iterable[Outcome] = ()) -> str:
    """Lay a run out as a Markdown table, with its difference to an earlier one."""
    earlier = group(before)
    lines = [
        f"| {' | '.join(_HEADER)} |",
        "|" + "---|" * len(_HEADER),
    ]
    for (name, system), rows in sorted(group(outcomes).items()):
        by_category = mean_by_category(rows, "ndcg@10")
        figures = [f"{mean(rows, each):.3f}" for each in MEASURES]
        figures.insert(1, "" if by_category is None else f"{by_category:.3f}")
        change = _change(rows, earlier.get((name, system), []))
        lines.append(f"| {' | '.join([name, system, f'{len(rows):,}', *figures, change])} |")
    return "\n".join(lines)


def _change(rows: Sequence[Outcome], earlier: Sequence[Outcome]) -> str:
    known = {each.question: each for each in earlier}
    pairs = [(known[each.question], each) for each in rows if each.question in known]
    if not pairs:
        return ""
    difference = compare(
        [old.measures["ndcg@10"] for old, _ in pairs],
        [new.measures["ndcg@10"] for _, new in pairs],
    )
    return f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"


def render_against_better(outcomes: Iterable[Outcome]) -> str:
    """Lay out hybrid against its better retriever, and keywords against plain FTS5 and trigrams."""
    rows = group(outcomes)
    lines = [
        "| set | hybrid less its better retriever | fts less FTS5 | fts less trigrams |",
        "|---|---|---|---|",
    ]
    for name in sorted({name for name, _ in rows}):
        retrievers = [each for each in ("fts", "vector") if (name, each) in rows]
        better = max(retrievers, key=lambda each: mean(rows[name, each], "ndcg@10"), default="")
        cells = [_less(rows, name, "hybrid", better)]
        cells += [_less(rows, name, "fts", peer) for peer in ("fts5", "trigrams")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _less(rows: Mapping[tuple[str, str], list[Outcome]], name: str, system: str, other: str) -> str:
    if (name, system) not in rows or (name, other) not in rows:
        return ""
    return _change(rows[name, system], rows[name, other])


def show_losses(
    before: Sequence[Outcome], after: Sequence[Outcome], system: str, against: str, count: int
) -> str:
    """List the questions of each set that lost most, with what was wanted and what came."""
    known = {(each.set, each.question): each for each in before if each.system == against}
    lines = []
    for (name, shown), rows in sorted(group(after).items()):
        pairs = [
            (known[name, each.question], each) for each in rows if (name, each.question) in known
        ]
        if shown != system or not pairs:
            continue
        losses = sorted(pairs, key=lambda pair: _gain(*pair))
        lines.append(_summary(name, pairs))
        for old, new in losses[:count]:
            if _gain(old, new) < 0:
                lines += [
                    f"  {_gain(old, new):+.3f}  {new.text[:100]}",
                    f"          wanted {' '.join(new.wanted[:4])}",
                    f"          before {' '.join(old.found[:4])}",
                    f"          after  {' '.join(new.found[:4])}",
                ]
    return "\n".join(lines)


def _gain(old: Outcome, new: Outcome) -> float:
    return new.measures["ndcg@10"] - old.measures["ndcg@10"]


def _summary(name: str, pairs: Sequence[tuple[Outcome, Outcome]]) -> str:
    gains = [_gain(*pair) for pair in pairs]
    difference = compare([0.0] * len(gains), gains)
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    return (
        f"{name}: nDCG@10 {difference.mean:+.4f} "
        f"({difference.low:+.4f} to {difference.high:+.4f}), "
        f"{better} better, {worse} worse, {len(gains) - better - worse} the same"
    )
