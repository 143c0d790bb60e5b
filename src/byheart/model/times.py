"""Convert times to and from the form of the store: microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from byheart.model.damage import DamagedRow
from byheart.system import clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Convert a moment to microseconds exactly (floats would lose the last digits)."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Convert microseconds to a moment in UTC."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except (OverflowError, TypeError) as error:
        raise DamagedRow(f"{micros!r} is no time") from error


def now_micros() -> int:
    """Give the present moment in microseconds."""
    return to_micros(clock.now())
