"""The examples for frameworks run twice on one store, and remember the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_twice(name: str, folder: Path) -> list[str]:
    """Run an example twice, and give the lines of both runs."""
    kept = {each: value for each, value in os.environ.items() if not each.startswith("BYHEART_")}
    own = {
        "BYHEART_CONFIG": str(folder / "config.toml"),
        "BYHEART_EMBEDDING_PROVIDER": "hash",
    }
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, EXAMPLES / name, folder / "memory.db"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env={**kept, **own},
        )
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        told += done.stdout.splitlines()
    return told


def test_the_graph_of_langgraph_remembers_what_was_said(tmp_path: Path) -> None:
    pytest.importorskip("langgraph")
    assert run_twice("langgraph_store.py", tmp_path) == [
        "I like green tea. -> []",
        "Which tea do I like? -> ['I like green tea.']",
        "I like green tea. -> ['I like green tea.']",
        "Which tea do I like? -> ['I like green tea.']",
    ]


@pytest.mark.parametrize(
    ("name", "framework"),
    [("langchain_chat.py", "langchain_core"), ("llamaindex_chat.py", "llama_index.core")],
)
def test_a_chat_finds_the_fact_and_keeps_its_history(
    name: str, framework: str, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    where = "Where is the build server? -> The build server is called Gondor and stands in Berlin."
    who = "Who signs off releases? -> Maria signs off every release on Thursdays."
    assert run_twice(name, tmp_path) == [
        f"{where} (message 1)",
        f"{who} (message 3)",
        f"{where} (message 5)",
        f"{who} (message 7)",
    ]


def test_the_session_of_the_openai_agents_sdk_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("agents")
    first, second = "'Where is the build server?'", "'And who signs off releases?'"
    told = run_twice("openai_agents_session.py", tmp_path)
    assert told[:2] == [
        f"You asked {first}. Before: nothing.",
        f"You asked {second}. Before: {first}.",
    ]
    assert told[3] == f"You asked {first}. Before: {first}, {second}."
    assert "build server" in told[2]


def test_the_agent_of_pydantic_ai_saves_once_and_finds_it(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    told = run_twice("pydantic_ai_agent.py", tmp_path)
    assert "memory_save: created: mem_" in told[0]
    assert "memory_save: unchanged: mem_" in told[2]
    assert all("Maria signs off every release" in told[line] for line in (1, 3))
