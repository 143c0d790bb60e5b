"""Read quantities: numbers in digits or words, with units that can be converted."""

from __future__ import annotations

import re
from typing import NamedTuple

from byheart.startup.late_patterns import late_pattern

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: float(value) for value, word in enumerate(_ONES.split())} | {
    word: 10.0 * value for value, word in enumerate(_TENS.split(), 2)
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_SUFFIXES = {"k": 1e3, "m": 1e6, "bn": 1e9}
# Each dimension lists its units with their size in the first one's.
_DIMENSIONS: dict[str, dict[str, float]] = {
    "bytes": {
        "byte": 1.0,
        "b": 1.0,
        "kb": 1024.0,
        "kilobyte": 1024.0,
        "kib": 1024.0,
        "mb": 1024.0**2,
        "megabyte": 1024.0**2,
        "mib": 1024.0**2,
        "gb": 1024.0**3,
        "gigabyte": 1024.0**3,
        "gib": 1024.0**3,
        "tb": 1024.0**4,
        "terabyte": 1024.0**4,
    },
    "duration": {
        "second": 1.0,
        "sec": 1.0,
        "s": 1.0,
        "ms": 0.001,
        "millisecond": 0.001,
        "minute": 60.0,
        "min": 60.0,
        "hour": 3600.0,
        "hr": 3600.0,
        "h": 3600.0,
        "day": 86_400.0,
        "week": 604_800.0,
        "month": 2_629_800.0,
        "year": 31_557_600.0,
    },
    "length": {
        "metre": 1.0,
        "meter": 1.0,
        "m": 1.0,
        "cm": 0.01,
        "centimetre": 0.01,
        "centimeter": 0.01,
        "mm": 0.001,
        "km": 1000.0,
        "kilometre": 1000.0,
        "kilometer": 1000.0,
        "mile": 1609.344,
        "foot": 0.3048,
        "feet": 0.3048,
        "inch": 0.0254,
        "inche": 0.0254,
    },
    "mass": {
        "kilo": 1.0,
        "kg": 1.0,
        "kilogram": 1.0,
        "g": 0.001,
        "gram": 0.001,
        "ton": 1000.0,
        "tonne": 1000.0,
        "pound": 0.45359,
        "lb": 0.45359,
    },
    "volume": {"litre": 1.0, "liter": 1.0, "l": 1.0, "ml": 0.001},
    "share": {"%": 1.0, "percent": 1.0},
    "euros": {"€": 1.0, "euro": 1.0, "eur": 1.0},
    "dollars": {"$": 1.0, "dollar": 1.0, "usd": 1.0},
    "pounds sterling": {"£": 1.0, "gbp": 1.0},
    "degrees": {"°": 1.0, "degree": 1.0, "°c": 1.0},
    "power": {"watt": 1.0, "w": 1.0, "kw": 1000.0, "kilowatt": 1000.0},
}
UNITS = {
    unit: (dimension, size)
    for dimension, units in _DIMENSIONS.items()
    for unit, size in units.items()
}
_DIGITS = late_pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(k|m|bn)?$", re.IGNORECASE)


# Two amounts in different units that differ by a smaller share are the same amount.
_SAME_AMOUNT = 0.02


class Quantity(NamedTuple):
    """Hold an amount in the first unit of its dimension; other nouns are dimensions themselves."""

    amount: float
    dimension: str
    unit: str = ""

    def equals(self, other: Quantity) -> bool:
        """Return whether two amounts are the same, allowing for a conversion of units."""
        if self.unit == other.unit or self.dimension != other.dimension:
            return self[:2] == other[:2]
        larger = max(self.amount, other.amount)
        return abs(self.amount - other.amount) <= _SAME_AMOUNT * larger


def read_number(word: str) -> float | None:
    """Read one word as a number: `1,200`, `25k`, `eleven`, `twenty-one`."""
    folded = word.casefold()
    if match := _DIGITS.match(folded):
        suffix = match[1] or ""
        digits = folded.removesuffix(suffix).replace(",", "")
        return float(digits) * _SUFFIXES.get(suffix, 1.0)
    first, _, second = folded.partition("-")
    if first in NUMBER_WORDS and (not second or second in NUMBER_WORDS):
        return NUMBER_WORDS[first] + NUMBER_WORDS.get(second, 0.0)
    return None


def scale_of(word: str) -> float | None:
    """Return the factor that a word after a number means: `3 million`."""
    return _SCALES.get(word.casefold())
