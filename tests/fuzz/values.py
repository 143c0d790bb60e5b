"""Values for the arguments of operations, derived from their JSON schemas."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

# Texts that no schema describes; each may say anything or names something of the store.
_TEXTS: Mapping[str, Sequence[str]] = {
    "clear": ("title", "summary"),
    "query": ("harbour", "when does the pump stop?", '"night shift" OR pump*'),
    "content": ("The harbour crane was painted green in spring.",),
    "text": ("The crew met and decided to wait for the tide.",),
    "session_id": ("s1", "s-unknown"),
    "agent_id": ("agent-1",),
    "task_code": ("T-7",),
    "language": ("de", "pt-BR"),
    "include_task": ("T-7",),
    "source_label": ("manual",),
    "path": ("notes/3.md", "notes/*.md"),
    "title": ("Harbour notes",),
    "summary": ("The harbour in short.",),
    "source": ("import",),
    "reason": ("no longer true",),
    "client_id": ("turn-1",),
    "who": ("tester",),
    "name": ("Harbour",),
    "names": ("Harbour",),
    "new_name": ("Port",),
    "into": ("Port",),
    "prefix": ("H",),
    "output_path": ("out/harbour.md",),
    "space": ("default",),
    "kind": ("note", "report"),
    "role": ("user", "assistant"),
    "older_than": ("2020-01-01",),
    "session_iter": ("v1",),
    "origin": ("user", "agent"),
    "item_id": ("rev_unknown",),
    **dict.fromkeys(("tags", "entities"), ("harbour",)),
    **dict.fromkeys(
        ("created_after", "created_before", "as_of", "created_at"),
        ("2020-01-01", "2031-05-06T07:08:09Z"),
    ),
    "expires_at": ("2090-01-01",),
    "valid_from": ("2020-01-01",),
    "valid_until": ("2090-01-01",),
}
# Replaced by ids that exist; the tests hand them in.
_IDS = ("superseded_by", "memory_id", "chunk_id", "id", "by", "keep", "others", "after")
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 10**30, 1.5, -0.0, 1e308, "", " ", "x", "mem_1#0", "a@b#c"),
    *("2026-01-01", "v2", "%", '"', "'; DROP TABLE memories;--", "\x00", "\ud83d\ude00", "漢字"),
    *("NaN", "a" * 300, "../../etc/passwd", "\u202e", "*", "NEAR(", "9999-12-31", "0001-01-01"),
    *([], [None], ["a", 1], [[]], {}, {"a": {"b": []}}, "y" * 5_000, ["t"] * 200, [{"x": 1}]),
)


def valid_values(name: str, schema: Schema, ids: Sequence[str]) -> list[Any]:
    """Give values that the schema of an argument allows, its bounds among them.

    A text argument without a sample raises `KeyError`: add one to `_TEXTS`.
    """
    if name in _IDS and schema.get("type") != "array":
        listed = any(each.get("type") == "array" for each in schema.get("anyOf", ()))
        return [ids[0], *([list(ids[:2])] if listed else [])]
    if "anyOf" in schema:
        return [
            value
            for each in schema["anyOf"]
            if each.get("type") != "null"
            for value in valid_values(name, each, ids)
        ]
    if "enum" in schema:
        return list(schema["enum"])
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind == "boolean":
        return [False, True]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1_000_000)
        # A limit of all there is makes an answer of megabytes: the middle is a usual number.
        return [low, min(high, low + 3), *([] if high > 100_000 else [high])]
    if kind == "array":
        one = valid_values(name, schema["items"], ids)
        return [one, one[:1]]
    if kind == "object":
        if "additionalProperties" in schema:
            return [{}, {"dock": 1}, {"dock": None, "crane": "x"}]
        return [{}, {"where": {"dock": [1, None, "x"]}}]
    return list(_TEXTS[name])


def hostile_value(chance: random.Random) -> Any:
    """Give a value that hardly any argument allows, or a combination of such values."""
    value = chance.choice(HOSTILE)
    roll = chance.random()
    if roll < 0.1:
        return [value, chance.choice(HOSTILE)]
    if roll < 0.2:
        return {str(chance.choice(HOSTILE))[:50]: value}
    if roll < 0.3:
        return "".join(chr(chance.choice((0x20, 0x7F, 0x3B1, 0x2028, 0x1F600))) for _ in range(9))
    return value
