"""Compute how long a memory is kept if the retention policy is on."""

from __future__ import annotations

# Each tier is (least importance, days). A memory of _PERMANENT importance never expires.
_PERMANENT = 10.0
_TIERS = ((8.0, 365), (6.0, 180), (4.0, 90), (2.0, 30))
_LEAST_DAYS = 7


def retention_days(importance: float) -> int | None:
    """Return how many days a memory of this importance is kept; `None` means forever."""
    if importance >= _PERMANENT:
        return None
    return next((days for least, days in _TIERS if importance >= least), _LEAST_DAYS)
