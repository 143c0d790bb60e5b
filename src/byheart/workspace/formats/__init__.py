"""Extract the text of files."""
