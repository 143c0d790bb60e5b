-- A recall reads which memories of its space were accessed last, from this index alone.
CREATE INDEX memories_by_access ON memories (space, accessed_at, access_count)
    WHERE accessed_at IS NOT NULL;
