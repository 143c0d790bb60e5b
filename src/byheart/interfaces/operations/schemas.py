"""Describe the nouns as JSON Schema, in the form that `to_wire` gives them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}


def describe(kind: Any, defined: dict[str, Schema], place: str = "#/$defs/") -> Schema:
    """Describe a type; add its nouns to `defined`, and refer to them by name."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [describe(each, defined, place) for each in inner]}
    if origin in (tuple, list):
        return {"type": "array", "items": describe(inner[0], defined, place)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": describe(inner[1], defined, place)}
    if is_dataclass(kind) and isinstance(kind, type):
        return _refer(kind, defined, place)
    raise TypeError(f"no JSON Schema for {kind!r}")


def _refer(noun: type, defined: dict[str, Schema], place: str) -> Schema:
    name = noun.__name__
    if name not in defined:
        defined[name] = {}  # named before it is described, because nouns may contain one another
        hints = get_type_hints(noun)
        properties = {
            each.name: describe(hints[each.name], defined, place) for each in fields(noun)
        }
        defined[name] = {
            "type": "object",
            "description": (noun.__doc__ or "").partition("\n")[0],
            "properties": properties,
            "required": list(properties),
        }
    return {"$ref": f"{place}{name}"}
