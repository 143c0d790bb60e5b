CREATE TABLE {part}.receipts PARTITION OF {schema}.receipts (
    part DEFAULT {number}, PRIMARY KEY (receipt_id)
) FOR VALUES IN ({number});
CREATE INDEX receipts_by_time ON {part}.receipts (space, at);
CREATE INDEX receipts_by_session ON {part}.receipts (space, session_id, at);
CREATE TABLE {part}.receipt_memories PARTITION OF {schema}.receipt_memories (
    part DEFAULT {number}, PRIMARY KEY (receipt_id, memory_id),
    FOREIGN KEY (receipt_id) REFERENCES {part}.receipts (receipt_id) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX receipt_memories_by_memory ON {part}.receipt_memories (memory_id);
-- The new tables get row level security where the others have it.
DO $$ BEGIN
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = '{schema}.memories'::regclass) THEN
        PERFORM {schema}.set_row_security(true);
    END IF;
END $$;
