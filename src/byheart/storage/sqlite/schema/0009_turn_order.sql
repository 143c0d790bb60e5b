-- The order of a session no longer depends on the clock, and neither does what is erased.

-- The place of a memory in its session; earlier texts have that of the current one. The numbers are
-- far apart, so that a turn can be put between two others (turn_order.py).
ALTER TABLE memories ADD COLUMN turn_no INTEGER;              -- NULL: scope global
UPDATE memories SET turn_no = ordered.place FROM (
    SELECT memory_no, 1048576 * row_number() OVER (
        PARTITION BY space, session_id ORDER BY created_at, memory_id) AS place
    FROM memories WHERE session_id IS NOT NULL AND replaced_at IS NULL) AS ordered
WHERE ordered.memory_no = memories.memory_no;
UPDATE memories SET turn_no = (SELECT current.turn_no FROM memories current
    WHERE current.memory_id = memories.version_of)
WHERE version_of IS NOT NULL AND session_id IS NOT NULL;

DROP INDEX memories_by_turn;
CREATE INDEX memories_by_turn ON memories (space, session_id, turn_no)
    WHERE session_id IS NOT NULL AND replaced_at IS NULL;

-- When pruning first noticed that a memory may go: in the time that the store has seen pass
-- (pruning.py), not in that of the clock.
ALTER TABLE memories ADD COLUMN lapsed_at INTEGER;
DROP INDEX memories_by_expiry;
CREATE INDEX memories_by_expiry ON memories (expires_at)
    WHERE expires_at IS NOT NULL AND lapsed_at IS NULL AND version_of IS NULL;
CREATE INDEX memories_lapsed ON memories (lapsed_at) WHERE lapsed_at IS NOT NULL;
CREATE INDEX memories_lapsed_by_expiry ON memories (expires_at)
    WHERE expires_at IS NOT NULL AND lapsed_at IS NOT NULL;
