-- Workspaces: folders whose files are memories, and how each file looked when it was read last.

CREATE TABLE workspaces (
    workspace_no  INTEGER PRIMARY KEY AUTOINCREMENT,
    space         TEXT NOT NULL,
    root          TEXT NOT NULL,                  -- absolute, links resolved
    indexed_at    INTEGER,                        -- when a look at the whole of it ended last
    -- Who keeps it fresh: one process at a time, until its heartbeat stops.
    watcher       TEXT,
    beat_at       INTEGER,
    behind        INTEGER NOT NULL DEFAULT 0,     -- changed files not yet looked at
    trouble       TEXT,                           -- why it is looked at now and then instead of watched
    UNIQUE (space, root)
) STRICT;

CREATE TABLE workspace_files (
    workspace_no  INTEGER NOT NULL REFERENCES workspaces (workspace_no) ON DELETE CASCADE,
    path          TEXT NOT NULL,                  -- from the root, with slashes
    memory_id     TEXT,                           -- NULL: there is nothing in it to remember
    size          INTEGER NOT NULL,
    mtime_ns      INTEGER NOT NULL,               -- -1: read so soon after a change that it says nothing
    inode         INTEGER NOT NULL,
    file_hash     BLOB NOT NULL,                  -- of the bytes that were read last
    read_at       INTEGER NOT NULL,               -- who read it later knows better
    trouble       TEXT,                           -- why it could not be read
    may_pass      INTEGER NOT NULL,               -- 1: that may change although the file does not
    gone_at       INTEGER,                        -- when it was found missing, and its memory hidden
    PRIMARY KEY (workspace_no, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX workspace_files_by_hash ON workspace_files (file_hash);
CREATE INDEX memories_hidden_files ON memories (forgotten_at)
    WHERE forgotten_at IS NOT NULL AND kind = 'file';
CREATE INDEX workspace_files_gone ON workspace_files (gone_at) WHERE gone_at IS NOT NULL;
