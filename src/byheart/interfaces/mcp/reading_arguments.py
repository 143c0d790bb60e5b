"""Read arguments as models write them: a number or a list may come as text, or empty."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from byheart.errors import InvalidInput

_FLAGS = {"true": True, "false": False}


def read_arguments(given: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Convert texts to the type of their schema.

    A text that should be an object and is no JSON is refused; all others are checked later.
    """
    return {
        name: _read(name, value, schemas.get(name, {}).get("type"))
        if isinstance(value, str)
        else value
        for name, value in given.items()
    }


def leave_out_empty(
    given: Mapping[str, Any], required: Collection[str], *, all_sent: bool
) -> dict[str, Any]:
    """Leave out empty values of arguments that are optional.

    In OpenAI's strict mode a model must send every argument, so it sends an empty value for one
    that it does not need. A blank text says nothing anywhere. An empty list or a zero may be meant
    where a model chose to send it, so they are left out only if the model sent all arguments.
    """
    return {
        name: value
        for name, value in given.items()
        if name in required or not _is_empty(value, all_sent=all_sent)
    }


def _is_empty(value: object, *, all_sent: bool) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return all_sent and not isinstance(value, bool) and value in (0, [], {})


def _read(name: str, text: str, kind: object) -> Any:
    word = text.strip()
    if isinstance(kind, list):  # a type beside null: an update clears fields
        [kind, *_] = [each for each in kind if each != "null"]
    if kind == "boolean":
        return _FLAGS.get(word.lower(), text)
    if kind == "object":
        return _read_object(name, word)
    if kind == "array" and not word.startswith("["):
        return [text]
    if kind in ("integer", "number", "array"):
        with suppress(ValueError, RecursionError):
            return json.loads(word)
    return text


def _read_object(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{name} is not JSON: {error}", 'give an object, as in: {"key": "value"}'
        ) from error
