"""Databases of other programs, made with their own schemas, and agent files of Letta."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import byheart
from byheart.errors import InvalidInput
from byheart.model import Imported
from tests.transfer.foreign.database_samples import (
    CHROMA,
    CLAUDE_MEM,
    MEMORY_MCP,
    MEMORY_SERVICE,
    SILENTCLAW,
    VECTOR_MEMORY,
    database,
    write_agent_file,
)


def imported_twice(store: byheart.MemoryStore, path: Path) -> Imported:
    """Count, import, and import again: nothing comes twice."""
    counted = store.import_(str(path), dry_run=True)
    assert store.list().total == 0
    first = store.import_(str(path))
    assert (counted.format, counted.imported) == (first.format, first.imported)
    again = store.import_(str(path))
    assert (again.imported, again.unchanged) == (0, first.imported)
    return first


def test_the_memories_of_vector_memory(store: byheart.MemoryStore, tmp_path: Path) -> None:
    done = imported_twice(store, database(tmp_path, VECTOR_MEMORY))
    assert (done.format, done.imported) == ("vector-memory", 2)
    [report] = store.list(kind="report").memories
    assert (report.content, report.title, report.summary) == (
        *("The order query was slow.", "March", "slow query"),
    )
    assert (report.session_id, report.agent_id, report.session_iter) == ("s1", "backend", 2)
    assert (report.task_code, report.tags, report.metadata["scope"]) == ("T-7", ("db",), "report")
    assert report.created_at.isoformat() == "2025-11-01T10:00:00+00:00"
    [known] = store.list(kind="knowledge_base").memories
    assert known.session_id is None


def test_the_memories_of_memory_mcp(store: byheart.MemoryStore, tmp_path: Path) -> None:
    done = imported_twice(store, database(tmp_path, MEMORY_MCP))
    assert (done.format, done.imported, done.left_out) == ("memory-mcp", 1, {"deleted memory": 1})
    [memory] = store.list().memories
    assert (memory.content, memory.kind, memory.importance) == ("Anna prefers tea.", "fact", 8)
    assert (memory.entities, memory.summary) == (("Anna",), "Anna: tea")
    assert memory.created_at.year == 2025


def test_the_documents_of_silentclaw(store: byheart.MemoryStore, tmp_path: Path) -> None:
    assert imported_twice(store, database(tmp_path, SILENTCLAW)).format == "silentclaw"
    [memory] = store.list().memories
    assert (memory.title, memory.content) == ("notes/deploy.md", "Deploys are frozen.")


def test_the_memories_of_mcp_memory_service(store: byheart.MemoryStore, tmp_path: Path) -> None:
    done = imported_twice(store, database(tmp_path, MEMORY_SERVICE))
    assert (done.format, done.left_out) == ("mcp-memory-service", {"deleted memory": 1})
    [memory] = store.list().memories
    assert (memory.kind, memory.tags) == ("decision", ("api", "ports"))
    assert memory.metadata["by"] == "x"


def test_the_observations_summaries_and_prompts_of_claude_mem(
    store: byheart.MemoryStore, tmp_path: Path
) -> None:
    done = imported_twice(store, database(tmp_path, CLAUDE_MEM))
    assert (done.format, done.imported) == ("claude-mem", 3)
    [found] = store.list(kind="bugfix").memories
    assert found.content == "A short one\n\nThe order query waited.\n\n- Rows were locked"
    assert (found.title, found.task_code, found.tags) == ("Fix the lock", "shop", ("locks",))
    assert found.metadata["files"] == ["a.py", "b.py"]
    [summary] = store.list(kind="session_summary").memories
    assert "Learned: Locks matter" in summary.content
    [prompt] = store.sessions.transcript("c1").turns
    assert (prompt.role, prompt.content) == ("user", "Why are orders slow?")


def test_the_drawers_of_a_palace_in_chroma(store: byheart.MemoryStore, tmp_path: Path) -> None:
    database(tmp_path, CHROMA)
    done = imported_twice(store, tmp_path)
    assert done.files == {"chroma": 1}
    [memory] = store.list().memories
    assert memory.content == "Maria signs off releases."
    assert set(memory.tags) == {"work", "people"}
    assert memory.metadata["collection"] == "mempalace_drawers"
    assert memory.created_at.isoformat() == "2026-04-02T10:00:00+00:00"


def test_the_blocks_and_messages_of_letta(store: byheart.MemoryStore, tmp_path: Path) -> None:
    done = imported_twice(store, write_agent_file(tmp_path))
    assert (done.format, done.imported) == ("letta", 3)
    assert done.left_out == {"empty block": 1, "other message": 1}
    [block] = store.list(kind="note").memories
    assert (block.title, block.content) == ("human", "Her name is Anna.")
    turns = store.sessions.transcript("helper").turns
    assert [(each.role, each.content) for each in turns] == [
        ("user", "Where is it?"),
        ("assistant", "In the vault."),
    ]


def test_a_database_of_an_unknown_program_is_refused_by_name(
    store: byheart.MemoryStore, tmp_path: Path
) -> None:
    path = database(tmp_path, "CREATE TABLE songs (id, name)")
    with pytest.raises(InvalidInput, match="a program that is not known"):
        store.import_(str(path))


def test_a_row_without_a_text_is_named_and_the_others_come(
    store: byheart.MemoryStore, tmp_path: Path
) -> None:
    path = database(tmp_path, MEMORY_SERVICE)
    apsw.Connection(str(path)).execute(
        "INSERT INTO memories (content_hash, content, created_at) VALUES ('h3', ' ', 1.0)"
    )
    with pytest.raises(InvalidInput, match=r"memories row 3.*it has no content"):
        store.import_(str(path))
    assert store.import_(str(path), on_error="skip").skipped
    assert store.list().total == 1
