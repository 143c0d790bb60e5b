-- The counts of all processes. A row of a count belongs to one slot, and a process writes to one
-- slot, so that processes seldom wait for one another; readers add the slots up.
CREATE TABLE {schema}.ledger_counts (
    space text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    bucket integer NOT NULL,
    slot smallint NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (space, name, kind, bucket, slot)
) WITH (fillfactor = 70);

CREATE TABLE {schema}.ledger_latest (
    kind text NOT NULL,
    slot smallint NOT NULL,
    value double precision NOT NULL,
    written timestamptz NOT NULL,
    PRIMARY KEY (kind, slot)
) WITH (fillfactor = 70);

-- A query is kept as bytes: text cannot hold a NUL character.
CREATE TABLE {schema}.ledger_slowest (
    space text NOT NULL,
    kind text NOT NULL,
    elapsed_ms double precision NOT NULL,
    at bigint NOT NULL,
    query bytea NOT NULL
);
CREATE INDEX ledger_slowest_by_kind ON {schema}.ledger_slowest (space, kind, elapsed_ms);
-- ANALYZE would copy queries into the statistics, where nothing erases them.
ALTER TABLE {schema}.ledger_slowest ALTER COLUMN query SET STATISTICS 0;

CREATE TABLE {schema}.ledger_moments (
    space text NOT NULL,
    name text NOT NULL,
    at bigint NOT NULL,
    host text NOT NULL DEFAULT '',
    PRIMARY KEY (space, name)
);

CREATE TABLE {schema}.ledger_benches (
    space text NOT NULL,
    at bigint NOT NULL,
    run text NOT NULL,
    PRIMARY KEY (space, at)
);
