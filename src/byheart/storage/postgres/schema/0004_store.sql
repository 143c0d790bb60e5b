-- Trust: memories that wait for review, and whose words an API key may save.
ALTER TABLE {schema}.memories ADD COLUMN untrusted_at bigint;
ALTER TABLE {schema}.tokens ADD COLUMN voice text NOT NULL DEFAULT 'agent'
    CHECK (voice IN ('user', 'agent', 'stranger'));
