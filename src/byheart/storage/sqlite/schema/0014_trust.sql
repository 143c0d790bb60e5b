-- Trust: memories that wait for review, and whose words an API key may save.

ALTER TABLE memories ADD COLUMN untrusted_at INTEGER;         -- NULL: trusted
CREATE INDEX memories_untrusted ON memories (space, untrusted_at) WHERE untrusted_at IS NOT NULL;

ALTER TABLE tokens ADD COLUMN voice TEXT NOT NULL DEFAULT 'agent'
    CHECK (voice IN ('user', 'agent', 'stranger'));
