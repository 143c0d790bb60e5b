-- Conversations: what was said in a session, in order, and what stands first in every prompt.

ALTER TABLE memories ADD COLUMN role TEXT;                    -- who said it; NULL: it was not said, but saved
ALTER TABLE memories ADD COLUMN client_id TEXT;               -- what the caller names it; '': the running summary
ALTER TABLE memories ADD COLUMN pinned_at INTEGER;

-- The same words said twice are two turns; the same turn logged twice is one.
DROP INDEX memories_same_text;
CREATE UNIQUE INDEX memories_same_text
    ON memories (space, ifnull(session_id, ''), kind, content_hash)
    WHERE forgotten_at IS NULL AND replaced_at IS NULL AND role IS NULL AND client_id IS NULL;
CREATE UNIQUE INDEX memories_by_client_id ON memories (space, session_id, client_id)
    WHERE client_id IS NOT NULL AND version_of IS NULL;
CREATE INDEX memories_by_turn ON memories (space, session_id, created_at, memory_id)
    WHERE role IS NOT NULL AND replaced_at IS NULL;
CREATE INDEX memories_by_pin ON memories (space, pinned_at) WHERE pinned_at IS NOT NULL;
