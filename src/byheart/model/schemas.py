"""Build JSON Schemas of single values from the same bounds as the checks."""

from __future__ import annotations

from typing import Any

from byheart.model import checks as check

Schema = dict[str, Any]

SLUG = "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$"


def text(description: str, **bounds: Any) -> Schema:
    """Describe a text."""
    return {"type": "string", "description": description, **bounds}


def label(description: str) -> Schema:
    """Describe a short name."""
    return text(description, minLength=1, maxLength=check.LONGEST_LABEL)


def place(description: str) -> Schema:
    """Describe a path or an id."""
    return text(description, minLength=1, maxLength=check.LONGEST_PATH)


def labels(description: str) -> Schema:
    """Describe a list of short names."""
    names = {"type": "string", "minLength": 1, "maxLength": check.LONGEST_LABEL}
    return {
        "type": "array",
        "items": names,
        "maxItems": check.MOST_LABELS,
        "description": description,
    }


def numbers(description: str, most: int) -> Schema:
    """Describe a list of numbers."""
    items = {"type": "number"}
    return {
        "type": "array",
        "items": items,
        "minItems": 1,
        "maxItems": most,
        "description": description,
    }


def whole(description: str, low: int, high: int) -> Schema:
    """Describe a whole number within bounds."""
    return {"type": "integer", "minimum": low, "maximum": high, "description": description}


def number(description: str, low: float, high: float) -> Schema:
    """Describe a number within bounds."""
    return {"type": "number", "minimum": low, "maximum": high, "description": description}


def flag(description: str) -> Schema:
    """Describe a value that is true or false."""
    return {"type": "boolean", "description": description}


def moment(description: str) -> Schema:
    """Describe a date or time."""
    return text(f"{description} ISO 8601; without a zone UTC.")


def time(description: str) -> Schema:
    """Describe a date or time, or a time in words."""
    return text(f"{description} ISO 8601, or 7d, yesterday, last March; UTC.")


def one_or_more(description: str, one: Schema) -> Schema:
    """Describe one value, or a list of them."""
    return {
        "anyOf": [one, {"type": "array", "items": one, "maxItems": check.MOST_LABELS}],
        "description": description,
    }
