"""Statements and rows that every SQL database shares."""
