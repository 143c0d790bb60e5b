-- A part: the tables of some spaces, with all keys. A space lives in one part, so that keys and
-- references stay within it. `{part}` is the schema of the part, `{number}` its number, `{schema}`
-- the main schema.

CREATE SCHEMA {part};

CREATE TABLE {part}.memories PARTITION OF {schema}.memories (
    part DEFAULT {number}, memory_no DEFAULT {next_no} PRIMARY KEY, memory_id UNIQUE
) FOR VALUES IN ({number});
CREATE UNIQUE INDEX memories_same_text
    ON {part}.memories (space, coalesce(session_id, ''), kind, content_hash)
    WHERE forgotten_at IS NULL AND replaced_at IS NULL AND role IS NULL AND client_id IS NULL;
CREATE INDEX memories_by_time ON {part}.memories (space, created_at);
CREATE INDEX memories_by_session ON {part}.memories (space, session_id, created_at);
CREATE INDEX memories_by_version ON {part}.memories (version_of) WHERE version_of IS NOT NULL;
CREATE INDEX memories_by_path ON {part}.memories (space, path) WHERE path IS NOT NULL;
CREATE UNIQUE INDEX memories_by_client_id ON {part}.memories (space, session_id, client_id)
    WHERE client_id IS NOT NULL AND version_of IS NULL;
CREATE INDEX memories_by_turn ON {part}.memories (space, session_id, turn_no)
    WHERE session_id IS NOT NULL AND replaced_at IS NULL;
CREATE INDEX memories_by_pin ON {part}.memories (space, pinned_at) WHERE pinned_at IS NOT NULL;
CREATE INDEX memories_by_expiry ON {part}.memories (expires_at)
    WHERE expires_at IS NOT NULL AND lapsed_at IS NULL AND version_of IS NULL;
CREATE INDEX memories_lapsed ON {part}.memories (lapsed_at) WHERE lapsed_at IS NOT NULL;
CREATE INDEX memories_hidden_files ON {part}.memories (forgotten_at)
    WHERE forgotten_at IS NOT NULL AND kind = 'file';
CREATE INDEX memories_superseding ON {part}.memories (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE {part}.chunks PARTITION OF {schema}.chunks (
    part DEFAULT {number}, chunk_no PRIMARY KEY,
    UNIQUE (memory_no, chunk_index),
    FOREIGN KEY (memory_no) REFERENCES {part}.memories (memory_no) ON DELETE CASCADE
) FOR VALUES IN ({number});

CREATE TABLE {part}.chunk_words PARTITION OF {schema}.chunk_words (
    part DEFAULT {number}, chunk_no PRIMARY KEY,
    FOREIGN KEY (chunk_no) REFERENCES {part}.chunks (chunk_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX chunk_words_by_word ON {part}.chunk_words USING gin (words);

-- The terms of each space in order, for prefixes: no query can list the entries of a GIN index. A
-- term stays when its last chunk goes; searches leave it out, and erasing removes it.
CREATE TABLE {part}.vocabulary (
    space_no bigint NOT NULL, term text COLLATE "C" NOT NULL, PRIMARY KEY (space_no, term)
);

CREATE TABLE {part}.vectors PARTITION OF {schema}.vectors (
    part DEFAULT {number}, vector_no DEFAULT {next_no} PRIMARY KEY,
    FOREIGN KEY (chunk_no) REFERENCES {part}.chunks (chunk_no) ON DELETE CASCADE,
    FOREIGN KEY (model_no) REFERENCES {schema}.models (model_no)
) FOR VALUES IN ({number});
CREATE UNIQUE INDEX vectors_by_chunk ON {part}.vectors (chunk_no, model_no, window_index);
CREATE INDEX vectors_by_text ON {part}.vectors (text_hash, model_no);

CREATE TABLE {part}.pending_vectors PARTITION OF {schema}.pending_vectors (
    part DEFAULT {number}, chunk_no PRIMARY KEY,
    FOREIGN KEY (chunk_no) REFERENCES {part}.chunks (chunk_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
-- Claims that ended come first, then unclaimed chunks, the oldest of all spaces first: the lower 36
-- bits of a number count.
CREATE INDEX pending_vectors_by_claim
    ON {part}.pending_vectors (claimed_until, (chunk_no & 68719476735));

CREATE TABLE {part}.tags PARTITION OF {schema}.tags (
    part DEFAULT {number}, PRIMARY KEY (tag, memory_no),
    FOREIGN KEY (memory_no) REFERENCES {part}.memories (memory_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX tags_by_memory ON {part}.tags (memory_no);

CREATE TABLE {part}.entities PARTITION OF {schema}.entities (
    part DEFAULT {number}, entity_no DEFAULT nextval('{schema}.numbers') PRIMARY KEY,
    UNIQUE (space, key)
) FOR VALUES IN ({number});
CREATE TABLE {part}.memory_entities PARTITION OF {schema}.memory_entities (
    part DEFAULT {number}, PRIMARY KEY (entity_no, memory_no),
    FOREIGN KEY (entity_no) REFERENCES {part}.entities (entity_no) ON DELETE CASCADE,
    FOREIGN KEY (memory_no) REFERENCES {part}.memories (memory_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX memory_entities_by_memory ON {part}.memory_entities (memory_no);
CREATE TABLE {part}.entity_aliases PARTITION OF {schema}.entity_aliases (
    part DEFAULT {number}, PRIMARY KEY (space, key),
    FOREIGN KEY (entity_no) REFERENCES {part}.entities (entity_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX entity_aliases_by_entity ON {part}.entity_aliases (entity_no);

CREATE TABLE {part}.history PARTITION OF {schema}.history (
    part DEFAULT {number}, history_no DEFAULT nextval('{schema}.numbers') PRIMARY KEY,
    FOREIGN KEY (memory_no) REFERENCES {part}.memories (memory_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX history_by_memory ON {part}.history (memory_no);

CREATE TABLE {part}.changes PARTITION OF {schema}.changes (
    part DEFAULT {number}, change_no DEFAULT {next_no} PRIMARY KEY
) FOR VALUES IN ({number});

CREATE TABLE {part}.tombstones PARTITION OF {schema}.tombstones (
    part DEFAULT {number}, PRIMARY KEY (space, content_hash)
) FOR VALUES IN ({number});

CREATE TABLE {part}.emitted PARTITION OF {schema}.emitted (
    part DEFAULT {number}, PRIMARY KEY (space, session_id, chunk_no),
    FOREIGN KEY (chunk_no) REFERENCES {part}.chunks (chunk_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX emitted_by_chunk ON {part}.emitted (chunk_no);

CREATE TABLE {part}.workspaces PARTITION OF {schema}.workspaces (
    part DEFAULT {number}, workspace_no DEFAULT nextval('{schema}.numbers') PRIMARY KEY,
    UNIQUE (space, root)
) FOR VALUES IN ({number});
CREATE TABLE {part}.workspace_files PARTITION OF {schema}.workspace_files (
    part DEFAULT {number}, PRIMARY KEY (workspace_no, path),
    FOREIGN KEY (workspace_no) REFERENCES {part}.workspaces (workspace_no) ON DELETE CASCADE
) FOR VALUES IN ({number});
CREATE INDEX workspace_files_by_hash ON {part}.workspace_files (file_hash);
CREATE INDEX workspace_files_gone ON {part}.workspace_files (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX workspace_files_by_memory ON {part}.workspace_files (memory_id);

CREATE TABLE {part}.bookmarks PARTITION OF {schema}.bookmarks (
    part DEFAULT {number}, PRIMARY KEY (space, path)
) FOR VALUES IN ({number});
