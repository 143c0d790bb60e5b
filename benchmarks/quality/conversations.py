"""How well are conversations searched? Turns are logged with roles and dates, then questions asked.

    python benchmarks/quality/conversations.py --data FOLDER --stores FOLDER --out RUN.json
        [--before OLD.json] [--sets NAME …] [--conversations N] [--every N]

A document of a set of turns is one turn; a document of a set of sessions is a session of its own,
whose turns (`user: …`, `assistant: …`) are logged one by one. The turns of all conversations are
logged interleaved. A question about a conversation is asked within its session. `--conversations`
takes the first conversations of a set, `--every` every n-th question. With `--before`, the
difference to an earlier run is printed with its 95 % range.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interleaved import interleave
from measures import DEPTH, compare, measure
from sets import Document, Question, RetrievalSet, read_set

import byheart

_SETS = ("locomo_dev_turns", "beam_dev_turns", "longmemeval_dev_sessions")
_DATES = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y/%m/%d (%a) %H:%M")
_FIRST_DAY, _PAUSE = datetime(2024, 1, 1, tzinfo=UTC), timedelta(seconds=20)
_ROLE = re.compile(r"(?:^|\n)(user|assistant): ")
# Several turns of a session may be found before ten sessions are.
_TURNS_PER_SESSION = 3


def read_turns(whole: RetrievalSet) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each turn with the name of its document."""
    times: dict[str, datetime] = {}
    for each in interleave(whole.documents):
        session = each.group or each.name
        for role, text in _split(each):
            day = _read_date(each.date) or times.get(session, _FIRST_DAY)
            at = times[session] = max(day, times.get(session, day) + _PAUSE)
            turn = {"session_id": session, "role": role, "content": text}
            yield each.name, {**turn, "created_at": at.isoformat()}


def _split(document: Document) -> Iterator[tuple[str, str]]:
    parts = _ROLE.split(document.text)[1:]
    if not parts:
        yield re.sub(r"\W+", "_", (document.speaker or "user").lower()), document.text
    for role, text in zip(parts[::2], parts[1::2], strict=True):
        if text.strip():
            yield role, text


def _read_date(date: str | None) -> datetime | None:
    for form in _DATES:
        with contextlib.suppress(ValueError, TypeError):
            return datetime.strptime(date, form).replace(tzinfo=UTC)  # type: ignore[arg-type]
    return None


def ask(path: Path, whole: RetrievalSet, every: int) -> dict[str, dict[str, float]]:
    """Log what is not logged yet, and give the measures of each question."""
    with byheart.open(path, space=whole.name) as store:
        turns = [
            (name, {**turn, "client_id": f"{name} {at}"})
            for at, (name, turn) in enumerate(read_turns(whole))
        ]
        logged = store.log_many([turn for _, turn in turns])
        names = {each.memory_id: name for each, (name, _) in zip(logged, turns, strict=True)}
        return {
            each.name: measure(_find(store, names, each), each.gains)
            for each in whole.questions[::every]
        }


def _find(store: byheart.MemoryStore, names: dict[str, str], question: Question) -> list[str]:
    scope: dict[str, Any] = (
        {"session_id": question.group, "include_global": False} if question.group else {}
    )
    limit = DEPTH if question.group else DEPTH * _TURNS_PER_SESSION
    answer = store.search(question.text, limit=limit, granularity="coarse", **scope)
    # The running summary of a session is a memory too, and no document.
    found = (names.get(hit.memory_id, hit.memory_id) for hit in answer.results)
    return list(dict.fromkeys(found))[:DEPTH]


def _take(whole: RetrievalSet, conversations: int | None) -> RetrievalSet:
    if conversations is None:
        return whole
    kept = sorted({each.group for each in whole.documents if each.group})[:conversations]
    documents = [each for each in whole.documents if each.group in kept]
    questions = [each for each in whole.questions if each.group in kept]
    return RetrievalSet(whole.name, documents, questions) if kept else whole


def main() -> None:
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stores", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--sets", nargs="*", default=_SETS)
    parser.add_argument("--conversations", type=int)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    given.stores.mkdir(parents=True, exist_ok=True)
    old = json.loads(given.before.read_text(encoding="utf-8")) if given.before else {}
    run = {}
    print("| set | questions | nDCG@10 | R@10 | MRR | hit@1 | nDCG@10 against before |")
    print("|---|---|---|---|---|---|---|")
    for name in given.sets:
        whole = _take(read_set(given.data / name), given.conversations)
        run[name] = found = ask(given.stores / f"{name}.db", whole, given.every)
        figures = [
            sum(each[what] for each in found.values()) / max(len(found), 1)
            for what in ("ndcg@10", "recall@10", "mrr", "hit@1")
        ]
        shown = " | ".join(f"{each:.3f}" for each in figures)
        print(
            f"| {name} | {len(found)} | {shown} | {_difference(old.get(name), found)} |", flush=True
        )
    given.out.write_text(json.dumps(run), encoding="utf-8")


def _difference(old: dict[str, dict[str, float]] | None, new: dict[str, dict[str, float]]) -> str:
    asked = [each for each in new if old and each in old]
    if not old or not asked:
        return ""
    found = compare(
        [old[each]["ndcg@10"] for each in asked], [new[each]["ndcg@10"] for each in asked]
    )
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


if __name__ == "__main__":
    main()
