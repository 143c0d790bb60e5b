-- The memories of a statement are counted together. A trigger for each row changed the same count
-- again and again, and each change went through all earlier ones: 16,000 took half a minute.
DROP TRIGGER memories_counted ON {part}.memories;
DROP TRIGGER memories_counted_again ON {part}.memories;
DROP FUNCTION {part}.count_memories();

CREATE FUNCTION {part}.count_added() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    INSERT INTO {part}.memory_counts AS held (space, in_session, kind, memories)
        SELECT space, CAST(session_id IS NOT NULL AS integer), kind, count(*) FROM added
        WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3
        ON CONFLICT (space, in_session, kind)
            DO UPDATE SET memories = held.memories + excluded.memories;
    RETURN NULL;
END $count$;
CREATE FUNCTION {part}.count_removed() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    UPDATE {part}.memory_counts AS held SET memories = held.memories - gone.memories FROM (
        SELECT space, CAST(session_id IS NOT NULL AS integer) AS in_session, kind,
            count(*) AS memories
        FROM removed WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3) AS gone
        WHERE held.space = gone.space AND held.in_session = gone.in_session
            AND held.kind = gone.kind;
    DELETE FROM {part}.memory_counts
        WHERE memories < 1 AND space IN (SELECT space FROM removed);
    RETURN NULL;
END $count$;
CREATE FUNCTION {part}.count_changed() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    -- Most statements change no count.
    INSERT INTO {part}.memory_counts AS held (space, in_session, kind, memories)
        SELECT space, CAST(session_id IS NOT NULL AS integer), kind, sum(number) FROM (
            SELECT space, session_id, kind, forgotten_at, replaced_at, 1 AS number FROM added
            UNION ALL
            SELECT space, session_id, kind, forgotten_at, replaced_at, -1 FROM removed) AS changed
        WHERE forgotten_at IS NULL AND replaced_at IS NULL GROUP BY 1, 2, 3 HAVING sum(number) <> 0
        ON CONFLICT (space, in_session, kind)
            DO UPDATE SET memories = held.memories + excluded.memories;
    IF FOUND THEN
        DELETE FROM {part}.memory_counts
            WHERE memories < 1 AND space IN (SELECT space FROM removed);
    END IF;
    RETURN NULL;
END $count$;
CREATE TRIGGER memories_counted AFTER INSERT ON {part}.memories
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION {part}.count_added();
CREATE TRIGGER memories_discounted AFTER DELETE ON {part}.memories
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION {part}.count_removed();
CREATE TRIGGER memories_counted_again AFTER UPDATE ON {part}.memories
    REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION {part}.count_changed();
