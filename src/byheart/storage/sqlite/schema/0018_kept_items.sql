-- Items of the review queue that somebody decided to keep, a row for each memory of an item.
-- An item names the versions of its memories, so a changed memory is reviewed again.
CREATE TABLE kept_items (
    space      TEXT NOT NULL,
    item_id    TEXT NOT NULL,
    memory_id  TEXT NOT NULL,
    at         INTEGER NOT NULL,
    who        TEXT NOT NULL,
    PRIMARY KEY (space, item_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_items_by_memory ON kept_items (memory_id);
