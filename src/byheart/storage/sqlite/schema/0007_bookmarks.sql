-- Bookmarks: how far a file that grows was read, so that only what is new is read again.

CREATE TABLE bookmarks (
    space         TEXT NOT NULL,
    path          TEXT NOT NULL,                  -- absolute
    mark          TEXT NOT NULL,                  -- JSON: the place, and what must be known to go on
    put_at        INTEGER NOT NULL,
    PRIMARY KEY (space, path)
) STRICT;
