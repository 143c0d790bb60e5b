-- A hit shows one chunk, and the hash of a memory is that of its whole text: so that a changed
-- passage is noticed without reading the rest, each chunk has a CRC-32 of its own. Chunks whose
-- text no longer fits its memory's hash get none, and count as damaged.
ALTER TABLE chunks ADD COLUMN checksum INTEGER;
