-- The login of a browser is an API key with a short life; a code that is used once becomes a login.
ALTER TABLE {schema}.tokens ADD COLUMN purpose text NOT NULL DEFAULT 'key'
    CHECK (purpose IN ('key', 'login', 'code'));
