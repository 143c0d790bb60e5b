-- How many memories a listing has: rows that are neither forgotten nor earlier texts, by space,
-- whether they belong to a session, and kind. Triggers keep the counts right in every transaction.
-- A count of 0 is removed, so that no name outlives what it named.
CREATE TABLE {schema}.memory_counts (
    part smallint NOT NULL, space text COLLATE "C" NOT NULL, in_session integer NOT NULL,
    kind text COLLATE "C" NOT NULL, memories bigint NOT NULL
) PARTITION BY LIST (part);
