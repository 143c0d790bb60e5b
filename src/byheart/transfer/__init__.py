"""How memories come and go: JSONL, Markdown folders, files of other programs."""
