-- Bookmarks: how far a file that grows was read, so that only what is new is read again.

CREATE TABLE bookmarks (
    space         TEXT NOT NULL,
    path          TEXT NOT NULL,                  -- absolute
    put_at        INTEGER NOT NULL,               -- before `mark`: SQLite reads a row from its front
    mark          TEXT NOT NULL,                  -- JSON: the place, and what must be known to go on
    PRIMARY KEY (space, path)
) STRICT;
