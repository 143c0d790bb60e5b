-- Origins: whose words a memory holds, and which passages a session has been given already.

ALTER TABLE memories ADD COLUMN origin TEXT NOT NULL DEFAULT 'user'
    CHECK (origin IN ('user', 'agent', 'tool', 'file', 'import'));
UPDATE memories SET origin = CASE
    WHEN role = 'tool' OR kind = 'tool_output' THEN 'tool'
    WHEN kind = 'file' OR path IS NOT NULL THEN 'file'
    WHEN role = 'user' THEN 'user'
    WHEN role IS NOT NULL OR agent_id IS NOT NULL OR client_id = '' THEN 'agent'
    ELSE 'user' END;

-- What was put into prompts lately, by session ('': by nobody's in particular), so that it is known
-- again when a reply repeats it. It names passages and holds no text: it goes when they go.
CREATE TABLE emitted (
    space       TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    chunk_no    INTEGER NOT NULL REFERENCES chunks (chunk_no) ON DELETE CASCADE,
    at          INTEGER NOT NULL,
    PRIMARY KEY (space, session_id, chunk_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX emitted_by_chunk ON emitted (chunk_no);
