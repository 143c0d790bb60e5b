"""Read arguments as models write them: a number or a list may come as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_FLAGS = {"true": True, "false": False}


def read_arguments(given: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Convert texts to the type of their schema; a text that cannot be read is refused later."""
    return {
        name: _read(value, schemas.get(name, {}).get("type")) if isinstance(value, str) else value
        for name, value in given.items()
    }


def _read(text: str, kind: object) -> Any:
    word = text.strip()
    if kind == "boolean":
        return _FLAGS.get(word.lower(), text)
    if kind == "array" and not word.startswith("["):
        return [text]
    if kind in ("integer", "number", "array", "object"):
        with suppress(ValueError, RecursionError):
            return json.loads(word)
    return text
