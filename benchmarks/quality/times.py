"""Times that questions name: what is a preference for memories from that time worth?

    python benchmarks/quality/times.py --data FOLDER --stores DIR [--modes hybrid fts]

Conversations are saved with their dates, and asked twice: with the preference, and without it. A
question is asked at its own date, or a day after its conversation. The table has all questions, and
those that name a time; a set in which nothing is dated has no row.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import stopped_clock
from dates import date_documents, date_questions
from measures import compare, measure
from sets import Question, read_set

import byheart
from byheart.language.time_expressions import find_times

SETS = ("locomo_dev_turns", "locomo_dev_sessions", "beam_dev_turns", "longmemeval_dev_sessions")


class Asked(NamedTuple):
    """Hold nDCG@10 of a question without and with times, and whether the question names one."""

    without: float
    preferred: float
    names_time: bool


def ask(folder: Path, stores: Path, mode: str) -> Iterator[Asked]:
    """Save a set with its dates, and ask each question without and with times."""
    whole = read_set(folder)
    dated = list(date_documents(whole.documents))
    path = stores / f"{whole.name}-dated.db"
    with byheart.open(path, space=whole.name, embed_on_save=mode != "fts") as store:
        saved = store.save_many(
            {
                "content": each.text,
                "title": each.title,
                "session_id": each.group,
                "created_at": moment,
            }
            for each, moment in dated
        )
        names = {one.memory_id: each.name for one, (each, _) in zip(saved, dated, strict=True)}
        for question, moment in date_questions(whole.questions, dated):
            without, preferred = (
                _measure(store, names, question, moment, mode, times=times)
                for times in (False, True)
            )
            yield Asked(without, preferred, bool(find_times(question.text, moment)))


def _measure(
    store: byheart.MemoryStore,
    names: dict[str, str],
    question: Question,
    moment: datetime,
    mode: str,
    *,
    times: bool,
) -> float:
    scope = {"session_id": question.group, "include_global": False} if question.group else {}
    with stopped_clock.stop_at(moment):
        answer = store.search(
            question.text, mode=mode, granularity="coarse", limit=10, times=times, **scope
        )
    return measure([names[hit.memory_id] for hit in answer.results], question.gains)["ndcg@10"]


def main() -> None:
    """Print a table: two rows for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--modes", nargs="*", default=["hybrid"])
    given = parser.parse_args()
    given.stores.mkdir(parents=True, exist_ok=True)
    print("| set | mode | questions | without | with times | difference (95 %) |")
    print("|---|---|--:|--:|--:|---|")
    for name in given.sets:
        for mode in given.modes:
            asked = list(ask(given.data / name, given.stores, mode))
            for which, some in (("all", asked), ("timed", [e for e in asked if e.names_time])):
                without, preferred = ([each[at] for each in some] for at in (0, 1))
                change = compare(without, preferred)
                print(
                    f"| {name} | {mode} | {len(some)} {which} | {sum(without) / len(some):.4f} | "
                    f"{sum(preferred) / len(some):.4f} | {change.mean:+.4f} "
                    f"({change.low:+.4f} to {change.high:+.4f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
