"""Complete what a user types in a client: ids, sessions, kinds and tags."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as types

from byheart.contracts import NamedField
from byheart.interfaces.operations import OPERATIONS, Grant, narrow
from byheart.store import MemoryStore

# The protocol allows no more.
_MOST_VALUES = 100
# The arguments of prompts and of resource templates that are names of something.
_NAMED: Mapping[str, NamedField] = {
    "memory_id": "memory_id",
    "session_id": "session_id",
    "kind": "kind",
    "tag": "tag",
}


def complete(
    store: MemoryStore, grant: Grant, argument: types.CompletionArgument
) -> types.CompleteResult:
    """List names that begin as the user typed, the latest first, within what the grant may see."""
    field = _NAMED.get(argument.name)
    if field is None:
        return types.CompleteResult(completion=types.Completion(values=[]))
    scope = narrow(store, OPERATIONS["list"], {}, grant)
    found, total = store.views.names(field, argument.value, _MOST_VALUES, **scope)
    more = total > len(found)
    return types.CompleteResult(
        completion=types.Completion(values=list(found), total=total, has_more=more)
    )
