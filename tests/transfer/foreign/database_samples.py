# ruff: noqa: E501 - schemas as their programs write them
"""Databases and agent files of other programs, made up for the tests, with a row to add to each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

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

# A further row of each database, which names its number.
MORE_ROWS = {
    "vector-memory": """
        INSERT INTO session_memories (memory_type, agent_id, session_id, content, content_hash,
            created_at, updated_at)
        VALUES ('report', 'backend', 's1', 'Report {n}.', 'more {n}', '2025-11-03', '2025-11-03')""",
    "memory-mcp": """
        INSERT INTO memories VALUES ('more_{n}', 'Fact {n}.', 'Fact', 'fact', 5, NULL,
            1762000000000, 1762000000000, 0, NULL, '{{}}', 0)""",
    "silentclaw": """
        INSERT INTO documents VALUES ('more {n}', 'notes/{n}.md', 'Note {n}.', 'h {n}',
            '2026-02-19 10:00:00', NULL)""",
    "mcp-memory-service": """
        INSERT INTO memories (content_hash, content, memory_type, created_at)
        VALUES ('more {n}', 'Note {n}.', 'note', 1762000000.5)""",
    "claude-mem": """
        INSERT INTO user_prompts VALUES (NULL, 'c1', {n}, 'Question {n}?', '2025-11-01',
            176198760000{n})""",
    "chroma": """
        INSERT INTO embeddings VALUES ({n}, 's', 'drawer_{n}', x'01', '2026-04-01 10:00:00');
        INSERT INTO embedding_metadata
        VALUES ({n}, 'chroma:document', 'Drawer {n}.', NULL, NULL, NULL)""",
}
DATABASES = {
    "vector-memory": VECTOR_MEMORY,
    "memory-mcp": MEMORY_MCP,
    "silentclaw": SILENTCLAW,
    "mcp-memory-service": MEMORY_SERVICE,
    "claude-mem": CLAUDE_MEM,
    "chroma": CHROMA,
}


def database(folder: Path, script: str) -> Path:
    path = folder / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute(script)
    connection.close()
    return path


def add_row(path: Path, program: str, number: int) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(MORE_ROWS[program].format(n=number))
    connection.close()


def write_database(program: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = database(folder, DATABASES[program])
        add_row(path, program, 2)
        return path

    return write


def grow_database(program: str) -> Callable[[Path], int]:
    def grow(path: Path) -> int:
        add_row(path, program, 3)
        return 1

    return grow


def write_agent_file(folder: Path, agent: Any = AGENT_FILE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "helper.af"
    path.write_text(json.dumps(agent), encoding="utf-8")
    return path


def grow_agent_file(path: Path) -> int:
    block = {"id": "b3", "label": "more", "value": "She lives in Graz."}
    write_agent_file(path.parent, {**AGENT_FILE, "blocks": [*AGENT_FILE["blocks"], block]})
    return 1
