-- Emoji are no letters of the words beside them: keyword entries of texts that have any are made anew
-- (`migrations.py`). The table is as it was.
SELECT 1;
