-- The life of a memory: what its text was before, what took its place, and what must not come back.

-- An earlier text is a row of its own, `<memory_id>@<version>`, that was current from `since_at` until
-- `replaced_at`. It keeps its chunks and vectors, so that a search as of then is a search like any other.
ALTER TABLE memories ADD COLUMN version_of TEXT;              -- NULL: the current text
ALTER TABLE memories ADD COLUMN since_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN replaced_at INTEGER;
ALTER TABLE memories ADD COLUMN superseded_by TEXT;           -- the memory that holds now instead
ALTER TABLE memories ADD COLUMN superseded_at INTEGER;
UPDATE memories SET since_at = created_at;

DROP INDEX memories_same_text;
CREATE UNIQUE INDEX memories_same_text
    ON memories (space, ifnull(session_id, ''), kind, content_hash)
    WHERE forgotten_at IS NULL AND replaced_at IS NULL;
CREATE INDEX memories_by_version ON memories (version_of) WHERE version_of IS NOT NULL;
CREATE INDEX memories_by_path ON memories (space, path) WHERE path IS NOT NULL;
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE history ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE history ADD COLUMN reason TEXT;

-- Texts that were forgotten for good, by their hash alone: neither import nor re-index brings them back.
CREATE TABLE tombstones (
    space         TEXT NOT NULL,
    content_hash  BLOB NOT NULL CHECK (length(content_hash) = 32),
    at            INTEGER NOT NULL,
    PRIMARY KEY (space, content_hash)
) STRICT, WITHOUT ROWID;

-- Other spellings of an entity, so that a merge also holds for what is saved later.
CREATE TABLE entity_aliases (
    space      TEXT NOT NULL,
    key        TEXT NOT NULL,                    -- case-folded name
    name       TEXT NOT NULL,
    entity_no  INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
    PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_aliases_by_entity ON entity_aliases (entity_no);

-- How an embedder of a model is opened again: `{"provider": …, "model": …}`.
ALTER TABLE models ADD COLUMN spec TEXT CHECK (spec IS NULL OR json_valid(spec));
