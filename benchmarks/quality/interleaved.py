"""Does it matter in which order conversations are written? Their turns in a row, and taken in turn.

    python benchmarks/quality/interleaved.py --data ../shared/data --stores DIR

The questions of `locomo_dev_turns` are asked twice of one store: in a space that holds one
conversation after the other, and in one that holds a turn of each, then the next of each, and so
on. Results should not differ: a turn's neighbours are those of its own session.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dates import order_in_turn
from measures import compare, measure
from sets import Document, RetrievalSet, read_set
from stores import FilledStore
from systems import Byheart

import byheart

_SET, _MODES = "locomo_dev_turns", ("fts", "vector", "hybrid")


def ask(
    path: Path, space: str, documents: Sequence[Document], whole: RetrievalSet, mode: str
) -> list[float]:
    """Save documents in a space, one by one in this order, and give nDCG@10 of each question."""
    with byheart.open(path, space=space) as store:
        items = [
            {"content": each.text, "title": each.title, "session_id": each.group}
            for each in documents
        ]
        saved = store.save_many(items)
        names = {each.memory_id: of.name for each, of in zip(saved, documents, strict=True)}
        system = Byheart(FilledStore(store, names, {}, False), mode)
        return [
            measure(system.find(question), question.gains)["ndcg@10"]
            for question in whole.questions
        ]


def main() -> None:
    """Print a table: a row for each mode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--modes", nargs="*", default=_MODES)
    given = parser.parse_args()
    given.stores.mkdir(parents=True, exist_ok=True)
    whole = read_set(given.data / _SET)
    path = given.stores / "interleaved.db"
    print("| mode | in a row | in turn | difference (95 %) |\n|---|---|---|---|")
    for mode in given.modes:
        in_a_row = ask(path, "in-a-row", whole.documents, whole, mode)
        in_turn = ask(path, "in-turn", order_in_turn(whole.documents), whole, mode)
        difference = compare(in_a_row, in_turn)
        figures = [sum(each) / len(each) for each in (in_a_row, in_turn)]
        print(
            f"| {mode} | {figures[0]:.4f} | {figures[1]:.4f} | {difference.mean:+.4f} "
            f"({difference.low:+.4f} to {difference.high:+.4f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
