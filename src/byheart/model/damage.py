"""Rows that are not as they were written: how reading code reports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DamagedRow(ValueError):
    """Say that a row holds a value that was never written."""


# The errors that code raises when it reads rows which are not as they were written.
UNEXPECTED = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


@contextmanager
def only_sound_rows() -> Iterator[None]:
    """Report any failure to read rows as damage to them."""
    try:
        yield
    except DamagedRow:
        raise
    except UNEXPECTED as error:
        raise DamagedRow(f"rows are not as they were written: {error}") from error
