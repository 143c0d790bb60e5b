-- Tokens: who may come in over the network, and how far. Of the secret only its SHA-256 is kept.
CREATE TABLE tokens (
    token_id      TEXT PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    access        TEXT NOT NULL CHECK (access IN ('read', 'write')),
    space         TEXT NOT NULL,
    session_id    TEXT,                          -- NULL: not bound to a session
    secret_hash   BLOB NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    last_used_at  INTEGER                        -- noted once a minute at most
) STRICT;
-- A token is looked for by a part of its hash; the whole is compared in constant time.
CREATE INDEX tokens_by_hash ON tokens (substr(secret_hash, 1, 8));
