"""Name every verb of a store: `save`, `sessions.list` and so on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from byheart import MemoryStore


def every_verb() -> Mapping[str, Callable[..., Any]]:
    """Map the name of each verb, with its group, to its function."""
    owners = {"": MemoryStore} | {
        f"{name}.": of for name, of in get_type_hints(MemoryStore).items()
    }
    return {
        f"{group}{name}": function
        for group, owner in owners.items()
        for name, function in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
    }
