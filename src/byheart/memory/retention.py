"""Retention: how long a memory is kept when the policy is switched on."""

from __future__ import annotations

# (importance at least, days); above all tiers a memory is kept for ever.
_PERMANENT = 10.0
_TIERS = ((8.0, 365), (6.0, 180), (4.0, 90), (2.0, 30))
_LEAST_DAYS = 7


def retention_days(importance: float) -> int | None:
    """Give the days a memory of some importance is kept; `None` is for ever."""
    if importance >= _PERMANENT:
        return None
    return next((days for least, days in _TIERS if importance >= least), _LEAST_DAYS)
