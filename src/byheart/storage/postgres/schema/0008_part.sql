CREATE TABLE {part}.kept_items PARTITION OF {schema}.kept_items (
    part DEFAULT {number}, PRIMARY KEY (space, item_id, memory_id)
) FOR VALUES IN ({number});
CREATE INDEX kept_items_by_memory ON {part}.kept_items (memory_id);
-- The new table gets row level security where the others have it.
DO $$ BEGIN
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = '{schema}.memories'::regclass) THEN
        PERFORM {schema}.set_row_security(true);
    END IF;
END $$;
