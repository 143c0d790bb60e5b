-- How many memories a listing has: rows that are neither forgotten nor earlier texts, by space,
-- whether they belong to a session, and kind. Triggers keep the counts right in every transaction.
-- A count of 0 is removed, so that no name outlives what it named.
CREATE TABLE memory_counts (
    space       TEXT NOT NULL,
    in_session  INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    memories    INTEGER NOT NULL,
    PRIMARY KEY (space, in_session, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO memory_counts
    SELECT space, session_id IS NOT NULL, kind, count(*) FROM memories
    WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3;

CREATE TRIGGER memories_counted AFTER INSERT ON memories
WHEN new.forgotten_at IS NULL AND new.replaced_at IS NULL BEGIN
    INSERT INTO memory_counts VALUES (new.space, new.session_id IS NOT NULL, new.kind, 1)
        ON CONFLICT DO UPDATE SET memories = memories + 1;
END;
CREATE TRIGGER memories_discounted AFTER DELETE ON memories
WHEN old.forgotten_at IS NULL AND old.replaced_at IS NULL BEGIN
    UPDATE memory_counts SET memories = memories - 1
        WHERE space = old.space AND in_session = (old.session_id IS NOT NULL) AND kind = old.kind;
    DELETE FROM memory_counts WHERE memories < 1
        AND space = old.space AND in_session = (old.session_id IS NOT NULL) AND kind = old.kind;
END;
CREATE TRIGGER memories_counted_again
AFTER UPDATE OF space, session_id, kind, forgotten_at, replaced_at ON memories BEGIN
    INSERT INTO memory_counts
        SELECT new.space, new.session_id IS NOT NULL, new.kind, 1
        WHERE new.forgotten_at IS NULL AND new.replaced_at IS NULL
        ON CONFLICT DO UPDATE SET memories = memories + 1;
    UPDATE memory_counts SET memories = memories - 1
        WHERE space = old.space AND in_session = (old.session_id IS NOT NULL) AND kind = old.kind
        AND old.forgotten_at IS NULL AND old.replaced_at IS NULL;
    DELETE FROM memory_counts WHERE memories < 1
        AND space = old.space AND in_session = (old.session_id IS NOT NULL) AND kind = old.kind;
END;

-- An agent lists and counts its own memories from this index alone.
CREATE INDEX memories_by_agent ON memories (space, agent_id, created_at, expires_at)
    WHERE agent_id IS NOT NULL AND forgotten_at IS NULL AND replaced_at IS NULL;
