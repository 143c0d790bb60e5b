-- A copy of an index is a head and named parts, which stay in the next copy; the head has no name.
DELETE FROM {schema}.published_indexes;
DELETE FROM {schema}.published_index_parts;
ALTER TABLE {schema}.published_index_parts
    ADD COLUMN name text COLLATE "C" NOT NULL,
    DROP CONSTRAINT published_index_parts_pkey,
    ADD PRIMARY KEY (space, name, part_no);
