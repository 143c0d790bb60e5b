-- The postings of large spaces, in runs (index/posting_runs.py). `block` is compressed by us: TOAST
-- shall not try again. `members` has the chunks of a run. Runs of another store, which was here
-- before, are of no use.
CREATE TABLE {part}.posting_runs (
    space_no bigint NOT NULL, run_no bigint NOT NULL DEFAULT nextval('{schema}.numbers'),
    store_id text NOT NULL, chunks integer NOT NULL, last_chunk_no bigint NOT NULL, members bytea NOT NULL,
    retired_at timestamptz, PRIMARY KEY (space_no, run_no)
);
CREATE TABLE {part}.posting_blocks (
    space_no bigint NOT NULL, run_no bigint NOT NULL, key bigint NOT NULL, block bytea NOT NULL,
    PRIMARY KEY (space_no, run_no, key)
);
ALTER TABLE {part}.posting_blocks ALTER COLUMN block SET STORAGE EXTERNAL;
-- The new tables get row level security where the others have it.
DO $$ BEGIN
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = '{schema}.memories'::regclass) THEN
        PERFORM {schema}.set_row_security(true);
    END IF;
END $$;
