"""Name the statement that sets a value of the whole store."""

from __future__ import annotations

SET_VALUE = (
    "INSERT INTO store (key, value) VALUES (?, ?) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
