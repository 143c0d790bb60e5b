-- The truth: what was saved, the passages it is made of, and their vectors.
-- Times are microseconds since 1970-01-01 UTC. Ids handed to users are text; `_no` columns are
-- internal, never reused (AUTOINCREMENT), so that every process can ask for what is new since then.

CREATE TABLE store (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    memory_no        INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id        TEXT NOT NULL UNIQUE,
    space            TEXT NOT NULL,
    session_id       TEXT,                       -- NULL: scope global
    kind             TEXT NOT NULL,
    content_hash     BLOB NOT NULL CHECK (length(content_hash) = 32),
    title            TEXT,
    summary          TEXT NOT NULL,
    source           TEXT NOT NULL,
    agent_id         TEXT,
    session_iter     INTEGER,
    task_code        TEXT,
    path             TEXT,
    importance       REAL NOT NULL CHECK (importance BETWEEN 0 AND 10),
    metadata         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    format           TEXT NOT NULL,
    derived          TEXT NOT NULL DEFAULT '',   -- which of summary, entities, importance were not given
    version          INTEGER NOT NULL DEFAULT 1,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    forgotten_at     INTEGER,
    accessed_at      INTEGER,
    access_count     INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Dedup: the same text once per (space, session, kind). A NULL session would escape a plain UNIQUE.
CREATE UNIQUE INDEX memories_same_text
    ON memories (space, ifnull(session_id, ''), kind, content_hash) WHERE forgotten_at IS NULL;
CREATE INDEX memories_by_time ON memories (space, created_at);
CREATE INDEX memories_by_session ON memories (space, session_id, created_at);

-- The text itself lives here, once: a memory's content is its chunks joined in order.
CREATE TABLE chunks (
    chunk_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_no    INTEGER NOT NULL REFERENCES memories (memory_no) ON DELETE CASCADE,
    chunk_index  INTEGER NOT NULL,
    content      TEXT NOT NULL,
    start_char   INTEGER NOT NULL,
    end_char     INTEGER NOT NULL,
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    chunk_type   TEXT NOT NULL,
    headings     TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(headings)),
    token_count  INTEGER NOT NULL,
    UNIQUE (memory_no, chunk_index)
) STRICT;

CREATE TABLE models (
    model_no    INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    dimensions  INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    vector_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk_no      INTEGER NOT NULL REFERENCES chunks (chunk_no) ON DELETE CASCADE,
    model_no      INTEGER NOT NULL REFERENCES models (model_no),
    window_index  INTEGER NOT NULL,
    text_hash     BLOB NOT NULL,                 -- of the embedded text: the same text is embedded once
    embedding     BLOB NOT NULL                  -- little-endian float32, unit length
) STRICT;
CREATE UNIQUE INDEX vectors_by_chunk ON vectors (chunk_no, model_no, window_index);
CREATE INDEX vectors_by_text ON vectors (text_hash, model_no);

-- Chunks that still lack vectors of the store's model.
CREATE TABLE pending_vectors (
    chunk_no  INTEGER PRIMARY KEY REFERENCES chunks (chunk_no) ON DELETE CASCADE
) STRICT;

CREATE TABLE tags (
    tag        TEXT NOT NULL,
    memory_no  INTEGER NOT NULL REFERENCES memories (memory_no) ON DELETE CASCADE,
    PRIMARY KEY (tag, memory_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_memory ON tags (memory_no);

CREATE TABLE entities (
    entity_no  INTEGER PRIMARY KEY,
    space      TEXT NOT NULL,
    key        TEXT NOT NULL,                    -- case-folded name
    name       TEXT NOT NULL,
    UNIQUE (space, key)
) STRICT;
CREATE TABLE memory_entities (
    entity_no  INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
    memory_no  INTEGER NOT NULL REFERENCES memories (memory_no) ON DELETE CASCADE,
    PRIMARY KEY (entity_no, memory_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_entities_by_memory ON memory_entities (memory_no);

CREATE TABLE history (
    history_no  INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_no   INTEGER NOT NULL REFERENCES memories (memory_no) ON DELETE CASCADE,
    operation   TEXT NOT NULL,
    at          INTEGER NOT NULL,
    who         TEXT NOT NULL,
    changes     TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(changes))
) STRICT;
CREATE INDEX history_by_memory ON history (memory_no);

-- What happened, in commit order: every process catches its index up from here. `stamp` is random,
-- so that an index file can tell this history from another one that has the same length.
CREATE TABLE changes (
    change_no  INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_no  INTEGER NOT NULL,
    stamp      INTEGER NOT NULL
) STRICT;

-- Keywords for raw FTS5 queries; rowid = chunk_no. Derived: can be rebuilt from chunks and memories.
CREATE VIRTUAL TABLE chunk_words USING fts5 (
    title, summary, headings, content,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
