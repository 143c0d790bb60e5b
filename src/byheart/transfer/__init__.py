"""Import and export memories: JSONL, Markdown folders, files of other programs."""
