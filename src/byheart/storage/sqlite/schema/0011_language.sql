-- The language of a text, as a BCP 47 tag. Texts that are there already have none yet: it is detected
-- when their text changes, or when an update asks for it.
ALTER TABLE memories ADD COLUMN language TEXT NOT NULL DEFAULT 'und';
UPDATE memories SET derived = iif(derived = '', 'language', derived || ',language');
