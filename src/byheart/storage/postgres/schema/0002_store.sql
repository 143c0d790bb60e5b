-- The worker that has claimed a chunk: a worker whose claim another one took over must not change it.
ALTER TABLE {schema}.pending_vectors ADD COLUMN claimed_by text COLLATE "C";
