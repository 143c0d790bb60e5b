"""Define the statements and rows that every SQL database shares."""
