"""Check a filter by metadata: keys and the values that they must have."""

from __future__ import annotations

import json
from collections.abc import Mapping

from byheart.errors import InvalidInput
from byheart.model import checks as check

_LARGEST_WHOLE = 2**63 - 1


def check_pairs(value: object) -> tuple[tuple[str, str], ...]:
    """Accept an object of simple values; give its keys in order, with their values as JSON.

    Numbers that are equal are written alike: 2.0 as 2.
    """
    pairs = check.check_metadata(value)
    if len(pairs) > check.MOST_LABELS:
        raise InvalidInput(
            f"metadata has {len(pairs)} keys; at most {check.MOST_LABELS} are allowed",
            "filter by the keys that differ most",
        )
    return tuple((key, _to_json(key, pairs[key])) for key in sorted(pairs))


def _to_json(key: str, value: object) -> str:
    if isinstance(value, Mapping | list):
        raise InvalidInput(
            f"a filter cannot compare the metadata key {check.show(key)} with a list or an object",
            "give a text, a number, true, false or null",
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        raise InvalidInput(
            f"the number for the metadata key {check.show(key)} is too large",
            "give whole numbers of at most 64 bits",
        )
    return json.dumps(value, ensure_ascii=False)
