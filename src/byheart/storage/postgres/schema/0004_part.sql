CREATE INDEX memories_untrusted ON {part}.memories (space, untrusted_at)
    WHERE untrusted_at IS NOT NULL;
