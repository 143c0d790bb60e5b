"""`make demo`: its answers are the right ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the demonstration, and give what followed each of its headings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BYHEART_")}
    config = tmp_path_factory.mktemp("demo") / "config.toml"
    done = subprocess.run(
        [sys.executable, DEMO],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**kept, "BYHEART_CONFIG": str(config)},
    )
    assert done.returncode == 0, done.stderr
    assert "warning:" not in done.stderr
    parts = re.split(r"^--- (.+)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def answer_to(answers: dict[str, str], heading: str) -> tuple[str, str]:
    """Give the query under a heading, and what was answered."""
    [text] = [text for each, text in answers.items() if each.startswith(heading)]
    command, _, shown = text.strip().partition("\n")
    return command, shown


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@pytest.mark.model
def test_the_keyword_query_finds_its_fact(answers: dict[str, str]) -> None:
    _, shown = answer_to(answers, "By keyword")
    assert "The staging server is restarted every Sunday" in shown


@pytest.mark.model
def test_the_query_by_meaning_shares_no_word_with_its_answer(answers: dict[str, str]) -> None:
    command, shown = answer_to(answers, "By meaning")
    fact = "Anna has a dog called Biscuit."
    assert fact in shown
    query = command.split("'")[1]
    assert not words(query) & words(fact)


@pytest.mark.model
def test_the_hybrid_query_finds_the_function(answers: dict[str, str]) -> None:
    _, shown = answer_to(answers, "Hybrid")
    assert shown.startswith("1.  retry.py")
    assert "def retry(call" in shown


@pytest.mark.model
def test_the_medium_search_gives_the_whole_section_and_no_more(answers: dict[str, str]) -> None:
    _, shown = answer_to(answers, "Medium")
    assert "> Database  report" in shown.splitlines()[0]
    assert "### Query Times" in shown
    assert "### Locks" in shown
    assert "## Frontend" not in shown


@pytest.mark.model
def test_the_coarse_search_gives_the_report_once(answers: dict[str, str]) -> None:
    _, shown = answer_to(answers, "Coarse")
    assert shown.startswith("1.  report.md  report")
    assert "of 5 chunks matched" in shown


@pytest.mark.model
def test_a_session_does_not_see_the_other(answers: dict[str, str]) -> None:
    _, monday = answer_to(answers, "Scoped")
    _, tuesday = answer_to(answers, "The same question in the other session")
    assert "dark green" in monday
    assert "orange" not in monday
    assert "bright orange" in tuesday
    assert "green" not in tuesday


@pytest.mark.model
def test_everything_is_saved_in_two_sessions(answers: dict[str, str]) -> None:
    _, shown = answer_to(answers, "What the store holds now")
    assert "memories    7 in 2 sessions" in shown
