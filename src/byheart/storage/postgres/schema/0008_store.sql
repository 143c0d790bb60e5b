-- Items of the review queue that somebody decided to keep, a row for each memory of an item.
-- An item names the versions of its memories, so a changed memory is reviewed again.
CREATE TABLE {schema}.kept_items (
    part smallint NOT NULL, space text COLLATE "C" NOT NULL, item_id text COLLATE "C" NOT NULL,
    memory_id text COLLATE "C" NOT NULL, at bigint NOT NULL, who text NOT NULL
) PARTITION BY LIST (part);
