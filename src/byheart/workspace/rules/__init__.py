"""Decide which files are ignored."""
