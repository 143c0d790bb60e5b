-- Receipts of contexts: what was put into a prompt, what was left out and why, for a settable time.
-- `body` is compressed JSON. A receipt is removed with any memory that it names.
CREATE TABLE {schema}.receipts (
    part smallint NOT NULL, receipt_id text COLLATE "C" NOT NULL, space text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL, verb text COLLATE "C" NOT NULL, query text NOT NULL,
    mode text COLLATE "C" NOT NULL, at bigint NOT NULL, max_tokens bigint NOT NULL,
    used_tokens bigint NOT NULL, items bigint NOT NULL, left_out bigint NOT NULL, body bytea NOT NULL
) PARTITION BY LIST (part);
CREATE TABLE {schema}.receipt_memories (
    part smallint NOT NULL, receipt_id text COLLATE "C" NOT NULL, memory_id text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL, is_used bigint NOT NULL
) PARTITION BY LIST (part);
