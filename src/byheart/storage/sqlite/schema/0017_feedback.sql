-- What came of giving a text out: a line for each question (model/feedback.py). A new text has none.
ALTER TABLE memories ADD COLUMN feedback TEXT;
