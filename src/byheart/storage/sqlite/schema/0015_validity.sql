-- When the statement of a memory is true, whenever it was saved. What was superseded earlier ended then.
ALTER TABLE memories ADD COLUMN valid_from INTEGER;
ALTER TABLE memories ADD COLUMN valid_until INTEGER;
UPDATE memories SET valid_until = superseded_at WHERE superseded_at IS NOT NULL;
