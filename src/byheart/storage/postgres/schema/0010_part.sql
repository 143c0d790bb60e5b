CREATE TABLE {part}.memory_counts PARTITION OF {schema}.memory_counts (
    part DEFAULT {number}, PRIMARY KEY (space, in_session, kind)
) FOR VALUES IN ({number});
INSERT INTO {part}.memory_counts (space, in_session, kind, memories)
    SELECT space, CAST(session_id IS NOT NULL AS integer), kind, count(*) FROM {part}.memories
    WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3;

CREATE FUNCTION {part}.count_memories() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        IF NEW.forgotten_at IS NULL AND NEW.replaced_at IS NULL THEN
            INSERT INTO {part}.memory_counts AS held (space, in_session, kind, memories)
                VALUES (NEW.space, CAST(NEW.session_id IS NOT NULL AS integer), NEW.kind, 1)
                ON CONFLICT (space, in_session, kind) DO UPDATE SET memories = held.memories + 1;
        END IF;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        IF OLD.forgotten_at IS NULL AND OLD.replaced_at IS NULL THEN
            UPDATE {part}.memory_counts SET memories = memories - 1 WHERE space = OLD.space
                AND in_session = CAST(OLD.session_id IS NOT NULL AS integer) AND kind = OLD.kind;
            DELETE FROM {part}.memory_counts WHERE memories < 1 AND space = OLD.space
                AND in_session = CAST(OLD.session_id IS NOT NULL AS integer) AND kind = OLD.kind;
        END IF;
    END IF;
    RETURN NULL;
END $count$;
CREATE TRIGGER memories_counted AFTER INSERT OR DELETE ON {part}.memories
    FOR EACH ROW EXECUTE FUNCTION {part}.count_memories();
CREATE TRIGGER memories_counted_again
    AFTER UPDATE OF space, session_id, kind, forgotten_at, replaced_at ON {part}.memories
    FOR EACH ROW EXECUTE FUNCTION {part}.count_memories();

-- An agent lists and counts its own memories from this index alone.
CREATE INDEX memories_by_agent ON {part}.memories (space, agent_id, created_at, expires_at)
    WHERE agent_id IS NOT NULL AND forgotten_at IS NULL AND replaced_at IS NULL;

-- The new table gets row level security where the others have it.
DO $$ BEGIN
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = '{schema}.memories'::regclass) THEN
        PERFORM {schema}.set_row_security(true);
    END IF;
END $$;
