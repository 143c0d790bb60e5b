"""Contradictions among hits: how often does a search name two hits that differ?

    python benchmarks/quality/conflicts_in_hits.py --data FOLDER [--mode fts]

Each question of LongMemEval has a space of its own, with the turns of the sessions that answer it.
A question about updated knowledge should name a conflict; a question of another category should
not. Prints the share of each category, and the sentences that were named.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dates import read_date
from sets import Document, read_set

import byheart

_SET = "longmemeval_dev_sessions"
_SPEAKER = re.compile(r"(?:^|\n)(user|assistant): ")


def read_turns(session: Document) -> Iterator[dict[str, object]]:
    """Cut a session into its turns."""
    parts = _SPEAKER.split(session.text)
    moment = read_date(session.date or "")
    for role, text in zip(parts[1::2], parts[2::2], strict=True):
        if text.strip():
            yield {
                "session_id": session.name,
                "role": role,
                "content": text,
                "created_at": moment,
            }


def main() -> None:
    """Print the sentences named, and a table: a row for each category."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mode", default="hybrid")
    given = parser.parse_args()
    whole = read_set(given.data / _SET)
    sessions = {each.name: each for each in whole.documents}
    asked, named = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with byheart.open(path, embed_on_save=given.mode != "fts") as store:
            for question in whole.questions:
                category = question.category or "none"
                turns = (turn for name in question.gains for turn in read_turns(sessions[name]))
                store.log_many({**turn, "space": question.name} for turn in turns)
                answer = store.search(question.text, mode=given.mode, space=question.name)
                asked[category] += 1
                named[category] += bool(answer.conflicts)
                for each in answer.conflicts:
                    print(json.dumps([category, question.text, each.says, each.other_says]))
    print("\n| category | questions | with a conflict |\n|---|--:|--:|")
    for category, count in sorted(asked.items()):
        print(f"| {category} | {count} | {named[category]} |")


if __name__ == "__main__":
    main()
