# ruff: noqa: E501 - schemas as their programs write them
"""Databases of other programs, made with their own schemas, and agent files of Letta."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

import byheart
from byheart.errors import InvalidInput
from byheart.model import Imported

VECTOR_MEMORY = """
CREATE TABLE session_memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_type TEXT NOT NULL, agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL, session_iter INTEGER DEFAULT 1, task_code TEXT, content TEXT NOT NULL,
    original_content TEXT, title TEXT, description TEXT, tags TEXT NOT NULL DEFAULT '[]',
    metadata TEXT NOT NULL DEFAULT '{}', content_hash TEXT UNIQUE NOT NULL, embedding BLOB,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, accessed_at TEXT, access_count INTEGER
    DEFAULT 0, auto_chunk INTEGER, chunk_count INTEGER, auto_chunked INTEGER);
INSERT INTO session_memories (memory_type, agent_id, session_id, session_iter, task_code, content,
    title, description, tags, metadata, content_hash, created_at, updated_at)
VALUES ('reports', 'backend', 's1', 2, 'T-7', 'The order query was slow.', 'March', 'slow query',
    '["db"]', '{"scope": "report"}', 'h1', '2025-11-01T10:00:00+00:00', '2025-11-01T10:00:00+00:00'),
    ('knowledge_base', 'backend', 'global', 1, NULL, 'Indexes speed up reads.', NULL, NULL, '[]',
    '{}', 'h2', '2025-11-02T10:00:00+00:00', '2025-11-02T10:00:00+00:00');
"""
MEMORY_MCP = """
CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, summary TEXT NOT NULL,
    type TEXT NOT NULL CHECK(type IN ('fact', 'entity', 'relationship', 'self')),
    importance REAL NOT NULL, embedding BLOB, created_at INTEGER NOT NULL,
    last_accessed INTEGER NOT NULL, access_count INTEGER DEFAULT 0, expires_at INTEGER,
    metadata TEXT DEFAULT '{}', is_deleted INTEGER DEFAULT 0);
CREATE TABLE entities (id TEXT PRIMARY KEY, name TEXT UNIQUE NOT NULL, type TEXT NOT NULL,
    metadata TEXT DEFAULT '{}', created_at INTEGER NOT NULL);
CREATE TABLE memory_entities (memory_id TEXT, entity_id TEXT, created_at INTEGER,
    PRIMARY KEY (memory_id, entity_id));
CREATE VIRTUAL TABLE memories_fts USING fts5(memory_id UNINDEXED, content, summary);
INSERT INTO memories VALUES ('mem_a', 'Anna prefers tea.', 'Anna: tea', 'fact', 8, NULL,
    1762000000000, 1762000000000, 3, NULL, '{"a": 1}', 0),
    ('mem_b', 'Gone.', 'Gone', 'fact', 1, NULL, 1762000000000, 1762000000000, 0, NULL, '{}', 1);
INSERT INTO entities VALUES ('e1', 'Anna', 'person', '{}', 1);
INSERT INTO memory_entities VALUES ('mem_a', 'e1', 1);
"""
SILENTCLAW = """
CREATE TABLE documents (id TEXT PRIMARY KEY, path TEXT NOT NULL, content TEXT NOT NULL,
    content_hash TEXT NOT NULL, updated_at TEXT NOT NULL DEFAULT (datetime('now')), metadata TEXT);
CREATE VIRTUAL TABLE documents_fts USING fts5(content, path, content='documents',
    content_rowid='rowid');
CREATE TABLE vectors (id TEXT PRIMARY KEY, embedding BLOB NOT NULL);
INSERT INTO documents VALUES ('d1', 'notes/deploy.md', 'Deploys are frozen.', 'h',
    '2026-02-18 10:00:00', NULL);
"""
MEMORY_SERVICE = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL,
    content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL,
    updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL DEFAULT NULL);
INSERT INTO memories (content_hash, content, tags, memory_type, metadata, created_at, deleted_at)
VALUES ('h1', 'The API listens on 8080.', 'api,ports', 'Decision', '{"by": "x"}', 1762000000.5, NULL),
    ('h2', 'Gone.', '', 'note', '{}', 1762000000.5, 1762000001.0);
"""
CLAUDE_MEM = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT UNIQUE NOT
    NULL, memory_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT
    NULL, started_at_epoch INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
    project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT,
    narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
    project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT,
    next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER,
    created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
    prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL);
INSERT INTO observations VALUES (1, 'm1', 'shop', NULL, 'bugfix', 'Fix the lock', 'A short one',
    '["Rows were locked"]', 'The order query waited.', '["locks"]', '["a.py"]', '["b.py"]', 1,
    '2025-11-01T10:00:00Z', 1761991200000);
INSERT INTO session_summaries VALUES (1, 'm1', 'shop', 'Speed up orders', NULL, 'Locks matter', 'Done',
    NULL, NULL, NULL, NULL, 1, '2025-11-01T11:00:00Z', 1761994800000);
INSERT INTO user_prompts VALUES (1, 'c1', 1, 'Why are orders slow?', '2025-11-01T09:00:00Z',
    1761987600000);
"""
CHROMA = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER,
    database_id TEXT NOT NULL, config_json_str TEXT);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL,
    collection TEXT NOT NULL REFERENCES collections(id));
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL,
    seq_id BLOB NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE embedding_metadata (id INTEGER REFERENCES embeddings(id), key TEXT NOT NULL,
    string_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
INSERT INTO collections VALUES ('c', 'mempalace_drawers', 384, 'd', NULL);
INSERT INTO segments VALUES ('s', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'c');
INSERT INTO embeddings VALUES (1, 's', 'drawer_1', x'01', '2026-04-01 10:00:00');
INSERT INTO embedding_metadata VALUES (1, 'chroma:document', 'Maria signs off releases.', NULL, NULL,
    NULL), (1, 'wing', 'work', NULL, NULL, NULL), (1, 'room', 'people', NULL, NULL, NULL),
    (1, 'chunk_index', NULL, 0, NULL, NULL),
    (1, 'filed_at', '2026-04-02T10:00:00', NULL, NULL, NULL);
"""
AGENT_FILE = {
    "agents": [
        {
            "name": "helper",
            "messages": [
                {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
                {"id": "m2", "role": "assistant", "content": "In the vault."},
                {"id": "m3", "role": "tool", "content": "{}"},
            ],
        }
    ],
    "blocks": [
        {"id": "b1", "label": "human", "value": "Her name is Anna."},
        {"id": "b2", "label": "persona", "value": ""},
    ],
    "files": [],
}


def database(folder: Path, script: str) -> Path:
    path = folder / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute(script)
    connection.close()
    return path


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
    path = tmp_path / "helper.af"
    path.write_text(json.dumps(AGENT_FILE))
    done = imported_twice(store, path)
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
