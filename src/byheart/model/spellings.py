"""Compare the spellings of a name."""

from __future__ import annotations


def spelling_key(name: str) -> str:
    """Give the key under which all spellings of a name are the same."""
    return name.casefold()


def choose_spelling(known: str, said: str) -> str:
    """Choose between two spellings of one name: the longer one, or else the known one."""
    return said if len(said) > len(known) else known
