"""Report rows that differ from what was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DamagedRow(ValueError):
    """Report that a row holds a value that was never written."""


# The errors that code raises when it reads damaged rows.
UNEXPECTED = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


@contextmanager
def only_sound_rows() -> Iterator[None]:
    """Report any failure to read rows as damage to these rows."""
    try:
        yield
    except DamagedRow:
        raise
    except UNEXPECTED as error:
        raise DamagedRow(f"rows are not as they were written: {error}") from error
