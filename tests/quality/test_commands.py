"""The commands of `benchmarks/quality` measure small sets of our own, whose answers are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

QUALITY = Path(__file__).parents[2] / "benchmarks" / "quality"
ANIMALS = ("heron", "badger", "otter", "lynx", "marten", "dormouse", "kestrel", "beaver")


def write_set(folder: Path, documents: list[dict[str, Any]], questions: list[Any]) -> None:
    folder.mkdir(parents=True)
    lines = {
        "corpus.jsonl": documents,
        "queries.jsonl": [
            {"_id": f"q{at}", "text": text, **more} for at, (text, _, more) in enumerate(questions)
        ],
    }
    for name, rows in lines.items():
        folder.joinpath(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    qrels = "".join(f"q{at}\t{wanted}\t1\n" for at, (_, wanted, _) in enumerate(questions))
    folder.joinpath("qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a set of notes, and one of two conversations whose turns have dates and speakers."""
    folder = tmp_path_factory.mktemp("data")
    notes = [
        {"_id": f"d{at}", "title": f"Note {at}", "text": f"The {animal} was seen at noon."}
        for at, animal in enumerate(ANIMALS)
    ]
    asked = [(f"who saw the {animal}?", f"d{at}", {}) for at, animal in enumerate(ANIMALS)]
    write_set(folder / "notes", notes, asked)
    turns = [
        {
            "_id": f"{conv}/{at}",
            "title": "",
            "text": f"Anna: Day {at}, and I walked along the river with the others.",
            "conv": conv,
            "speaker": "Anna",
            "date": f"1:56 pm on 8 {month}, 2023",
        }
        for conv in ("one", "two")
        for at, month in enumerate(("May", "July", "September"))
    ]
    more = {"conv": "two"}
    asked = [
        ("what did I do in July 2023, along the river?", "two/1", more),
        ("where did I learn to fly?", "", {**more, "abstention": True}),
    ]
    write_set(folder / "talks", turns, asked)
    return folder


def run(script: str, *arguments: str, data: Path, stores: Path) -> str:
    """Run a command of the benchmark as a user would, with the embedder of the tests."""
    home = {"HOME": str(stores), "BYHEART_CACHE_DIR": str(stores / "cache")}
    environment = {**os.environ, **home, "BYHEART_EMBEDDING_PROVIDER": "hash"}
    where = ("--data", str(data), "--stores", str(stores))
    command = [sys.executable, str(QUALITY / script), *arguments, *where]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def read_rows(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def outcomes(data: Path, stores: Path) -> list[Any]:
    out = stores / "run.jsonl"
    run("", "run", "--out", str(out), data=data, stores=stores)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize("system", ["fts", "hybrid", "fts5", "trigrams"])
def test_run_finds_each_note_by_its_animal(outcomes: list[Any], system: str) -> None:
    mine = [each for each in outcomes if (each["set"], each["system"]) == ("notes", system)]
    assert len(mine) == len(ANIMALS)
    assert all(each["measures"]["hit@1"] == 1.0 for each in mine)


def test_run_asks_about_turns_within_their_conversation_and_heeds_their_dates(
    outcomes: list[Any],
) -> None:
    [talk] = [each for each in outcomes if (each["set"], each["system"]) == ("talks", "fts")]
    assert talk["found"][0] == "two/1"
    assert all(name.startswith("two/") for name in talk["found"])


def test_verdict_counts_unanswerable_questions_apart(data: Path, stores: Path) -> None:
    arguments = ("verdict", "--modes", "fts", "--unrelated", "2")
    rows = read_rows(run("", *arguments, data=data, stores=stores))
    [talks] = [row for row in rows if row[0] == "talks" and len(row) == len(rows[0])]
    assert talks[-1].endswith("of 1")


def test_weak_vectors_leave_the_store_of_the_set_as_it_was(data: Path, stores: Path) -> None:
    arguments = ("--sets", "notes", "--vectors", "own", "random", "lsa")
    first, again = (
        read_rows(run("weak_vectors.py", *arguments, data=data, stores=stores)) for _ in range(2)
    )
    assert [row[1] for row in first[2:]] == ["own", "random", "lsa"]
    assert {row[3] for row in first[2:]} == {"1.000"}
    assert first == again


def test_families_keep_a_constant_that_another_value_does_not_better(
    data: Path, stores: Path
) -> None:
    rows = read_rows(run("families.py", "--only", "MOST_WORDS", data=data, stores=stores))
    assert rows[-1][0] == "MOST_WORDS"
    assert rows[-1][2:] == ["built"] * 3


@pytest.mark.slow
def test_large_spaces_answer_as_a_store_in_a_file(data: Path, stores: Path) -> None:
    lines = run("large_spaces.py", data=data, stores=stores).splitlines()
    assert [line.split()[:2] for line in lines] == [
        [name, mode] for name in ("notes", "talks") for mode in ("fts", "vector", "hybrid")
    ]
    assert all(", 0 answers differ; " in line for line in lines)
