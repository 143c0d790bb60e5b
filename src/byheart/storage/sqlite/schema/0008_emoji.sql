-- Emoji are no letters of the words beside them. The keyword entries of a store that has any are outdated:
-- they are written again after all schema changes (`rebuild_outdated_words` in `repairs.py`).
INSERT INTO store SELECT 'words_outdated', 'emoji' WHERE EXISTS (
    SELECT 1 FROM chunks
    WHERE content GLOB '*[' || char(11008) || '-' || char(11263) || char(126976) || '-' || char(129791) || ']*'
) OR EXISTS (
    SELECT 1 FROM memories
    WHERE title GLOB '*[' || char(11008) || '-' || char(11263) || char(126976) || '-' || char(129791) || ']*'
        OR summary GLOB '*[' || char(11008) || '-' || char(11263) || char(126976) || '-' || char(129791) || ']*'
);
