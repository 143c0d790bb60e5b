"""Check that CONTRIBUTING.md names commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fuzz.__main__ import find_targets

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_contributing_lists_every_fuzzer(text: str) -> None:
    listed = re.search(r"`TARGET` is one of (.+?)\.", text, re.DOTALL)
    assert listed
    assert re.findall(r"`(\w+)`", listed[1]) == find_targets()


def test_contributing_names_targets_of_the_makefile(text: str) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"^make (\w+)", text, re.MULTILINE))
    assert named
    assert named <= set(targets)


def test_contributing_names_commands_of_the_golden_rankings(text: str) -> None:
    source = (ROOT / "benchmarks" / "quality" / "golden.py").read_text(encoding="utf-8")
    named = set(re.findall(r"golden\.py (\w+)", text))
    assert named == set(re.findall(r"golden\.py (\w+)", source))


def test_contributing_and_the_pull_request_template_state_one_limit_for_titles(text: str) -> None:
    template = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    assert "at most 72 characters" in " ".join(text.split())
    assert "at most 72 characters" in " ".join(template.split())
