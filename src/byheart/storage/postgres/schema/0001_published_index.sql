-- A copy of each space's index file, for servers that have no file yet. The tables do not refer to
-- `spaces`: the lock on the row of a space that is written would make savers and publishers wait for
-- each other. TOAST does not compress the parts again, and dead parts are removed early, because a copy
-- is large.
CREATE TABLE {schema}.published_indexes (
    space        text COLLATE "C" PRIMARY KEY,
    label        text COLLATE "C" NOT NULL,
    size_bytes   bigint NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE {schema}.published_index_parts (
    space    text COLLATE "C" NOT NULL,
    part_no  integer NOT NULL,
    bytes    bytea NOT NULL,
    PRIMARY KEY (space, part_no)
) WITH (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.published_index_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
