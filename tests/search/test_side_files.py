"""In a workspace, tests and generated files come after the source that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from byheart.search.side_files import FACTOR, asks_for_side_files, name_side_file
from byheart.store import MemoryStore


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("tests/search/clock.py", "test"),
        ("src/app/test_clock.py", "test"),
        ("web/Clock.test.tsx", "test"),
        ("web/clock-spec.js", "test"),
        ("pkg/clock_test.go", "test"),
        ("src/ClockTest.java", "test"),
        ("conftest.py", "test"),
        ("api/clock_pb2.py", "generated"),
        ("api/clock.pb.go", "generated"),
        ("lib/clock.g.dart", "generated"),
        ("web/__snapshots__/clock.snap", "generated"),
        ("src/clock.py", None),
        ("src/latest.py", None),
        ("src/contest/entry.py", None),
        ("docs/testing.md", None),
        ("src/attestation.go", None),
    ],
)
def test_a_path_tells_what_kind_of_file_it_is(path: str, what: str | None) -> None:
    assert name_side_file(path) == what


def test_a_question_can_ask_for_tests() -> None:
    assert asks_for_side_files("which tests cover the retry limit?")
    assert asks_for_side_files("where is test_clock")
    assert not asks_for_side_files("what is the latest retry limit?")


@pytest.fixture
def project(store: MemoryStore, tmp_path: Path) -> MemoryStore:
    (tmp_path / "tests").mkdir()
    source = "def retry_limit():\n    # how often a failed upload is sent again\n    return 3\n"
    (tmp_path / "upload.py").write_text(source + "\n\nOTHER = 'many more words stand here'\n")
    for at in range(3):
        test = f"def check_{at}():\n    # retry limit of a failed upload\n    retry_limit()\n"
        (tmp_path / "tests" / f"test_upload{at}.py").write_text(test)
    for at in range(6):
        (tmp_path / f"notes{at}.md").write_text(f"Lunch number {at} was soup.\n")
    store.index(tmp_path)
    return store


def test_the_source_comes_before_its_tests_and_explain_says_why(project: MemoryStore) -> None:
    answer = project.search("retry limit of a failed upload", mode="fts", explain=True)
    paths = [hit.relative_path for hit in answer.results]
    assert paths[0] == "upload.py"
    assert {"tests/test_upload0.py", "tests/test_upload1.py"} <= set(paths), "tests stay hits"
    factors = {hit.relative_path: hit.explanation.file for hit in answer.results if hit.explanation}
    assert factors["upload.py"] == 1.0
    assert factors["tests/test_upload0.py"] == FACTOR


def test_a_question_about_tests_or_a_filter_by_path_leaves_them_in_place(
    project: MemoryStore,
) -> None:
    for answer in (
        project.search("which tests check the retry limit of a failed upload?", mode="fts"),
        project.search("retry limit of a failed upload", mode="fts", path="**"),
    ):
        assert str(answer.results[0].relative_path).startswith("tests/")


def test_recall_puts_the_source_first_too(project: MemoryStore) -> None:
    recalled = project.recall("retry limit of a failed upload", mode="fts", explain=True)
    assert recalled.details[0].relative_path == "upload.py"
