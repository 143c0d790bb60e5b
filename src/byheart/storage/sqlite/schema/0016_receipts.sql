-- Receipts of contexts: what was put into a prompt, what was left out and why, for a settable time.
-- `body` is compressed JSON. A receipt is removed with any memory that it names.
CREATE TABLE receipts (
    receipt_id   TEXT PRIMARY KEY,
    space        TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    verb         TEXT NOT NULL,
    query        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    max_tokens   INTEGER NOT NULL,
    used_tokens  INTEGER NOT NULL,
    items        INTEGER NOT NULL,
    left_out     INTEGER NOT NULL,
    body         BLOB NOT NULL
) STRICT;
CREATE INDEX receipts_by_time ON receipts (space, at);
CREATE INDEX receipts_by_session ON receipts (space, session_id, at);
CREATE TABLE receipt_memories (
    receipt_id  TEXT NOT NULL REFERENCES receipts (receipt_id) ON DELETE CASCADE,
    memory_id   TEXT NOT NULL,
    space       TEXT NOT NULL,
    is_used     INTEGER NOT NULL,
    PRIMARY KEY (receipt_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_memories_by_memory ON receipt_memories (memory_id);
