"""Does the source come before its tests? Ask a developer's questions of this project's own files.

    python benchmarks/quality/source_files.py [--mode fts]

Prints for each question the first file with and without the factor for tests and generated files,
and how often the first file is a test. A filter by any path switches the factor off.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import byheart
from byheart.search.side_files import name_side_file

ROOT = Path(__file__).parents[2]
QUESTIONS = (
    "how are two rankings fused into one list?",
    "where is the verdict of a search computed?",
    "how does a save look for near duplicates?",
    "which code reads the environment variables?",
    "how is a chunk of Markdown split at its headings?",
    "where are secrets replaced before a text is saved?",
    "how does the watcher notice a changed file?",
    "what happens if the disk is full during a save?",
    "how are API keys hashed and compared?",
    "where is the token budget of a recall filled?",
    "how does an import skip what is there already?",
    "which statement finds the turns of a session?",
    "how are expired memories erased?",
    "where does the hook fork a second process?",
    "how does a search follow changes of other processes?",
)


def main() -> None:
    """Print a table: a row for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="hybrid")
    mode = parser.parse_args().mode
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with byheart.open(path, embed_on_save=mode != "fts") as store:
            for part in ("src", "tests"):
                store.index(ROOT / part)
            first: dict[bool, list[str]] = {False: [], True: []}
            for question in QUESTIONS:
                for plain in (True, False):
                    where = {"path": "**"} if plain else {}
                    [hit] = store.search(question, mode=mode, limit=1, **where).results
                    first[plain].append(str(hit.path).removeprefix(f"{ROOT}/"))
    print("| question | without the factor | with it |\n|---|---|---|")
    for question, without, given in zip(QUESTIONS, first[True], first[False], strict=True):
        print(f"| {question} | {without} | {given} |")
    tests = {plain: sum(map(bool, map(name_side_file, some))) for plain, some in first.items()}
    print(f"\na test is first: {tests[True]} of {len(QUESTIONS)} without, {tests[False]} with it")


if __name__ == "__main__":
    main()
