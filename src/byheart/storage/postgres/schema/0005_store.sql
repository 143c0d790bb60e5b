-- When the statement of a memory is true, whenever it was saved. What was superseded earlier ended then.
ALTER TABLE {schema}.memories ADD COLUMN valid_from bigint;
ALTER TABLE {schema}.memories ADD COLUMN valid_until bigint;
UPDATE {schema}.memories SET valid_until = superseded_at WHERE superseded_at IS NOT NULL;
