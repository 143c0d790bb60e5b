"""Serve as a LangGraph store: `graph.compile(store=ByheartStore(…))`.

An item is a memory of kind `langgraph-item`. Its tags name every beginning of its namespace, so a
search in a namespace is a filter.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from byheart.errors import InvalidInput
from byheart.model import Memory
from byheart.store import MemoryStore

_KIND = "langgraph-item"
_PAGE = 1000
_DAY_MINUTES = 1440
Namespace = tuple[str, ...]


class ByheartStore(BaseStore):
    """Keep the items of graphs in a store; `search` with a query ranks by meaning and keyword."""

    supports_ttl = True

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations, one after another."""
        return [self._carry_out(each) for each in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _carry_out(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._find(op.namespace, op.key)
            return None if found is None else Item(**_item(found))
        if isinstance(op, PutOp):
            self._put(op)
            return None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise InvalidInput(f"unknown operation {op!r}", "use get, put, search or list_namespaces")

    def _find(self, namespace: Namespace, key: str) -> Memory | None:
        asked = {"namespace": _address(namespace), "key": key}
        found = self._store.list(1, kind=_KIND, metadata=asked).memories
        return found[0] if found else None

    def _put(self, op: PutOp) -> None:
        before = self._find(op.namespace, op.key)
        if op.value is None:
            if before is not None:
                self._store.forget(before.memory_id, reason="deleted by langgraph")
            return
        fields: dict[str, Any] = {
            "metadata": {
                "namespace": _address(op.namespace),
                "path": list(op.namespace),
                "key": op.key,
                "value": dict(op.value),
            },
            "ttl_days": None if op.ttl is None else op.ttl / _DAY_MINUTES,
        }
        # The first line makes the text of each item another one: equal texts are saved once.
        content = f"{' / '.join(op.namespace)} / {op.key}\n\n{_words(op)}"
        if before is not None:
            self._store.update(before.memory_id, content=content, **fields)
            return
        tags = [_address(op.namespace[:end]) for end in range(1, len(op.namespace) + 1)]
        self._store.save(content, _KIND, tags=tags, source="langgraph", origin="agent", **fields)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        tags = [_address(op.namespace_prefix)] if op.namespace_prefix else None
        found = self._ranked(op.query, tags) if op.query else self._all(tags)
        wanted = [
            (each, score) for each, score in found if _matches(each.metadata["value"], op.filter)
        ]
        page = wanted[op.offset : op.offset + op.limit]
        return [SearchItem(**_item(each), score=score) for each, score in page]

    def _ranked(self, query: str, tags: list[str] | None) -> list[tuple[Memory, float | None]]:
        hits = self._store.search(query, _PAGE, granularity="coarse", kind=_KIND, tags=tags).results
        return [(self._store.get(hit.memory_id), hit.score) for hit in hits]

    def _all(self, tags: list[str] | None) -> Iterator[tuple[Memory, float | None]]:
        offset, has_more = 0, True
        while has_more:
            page = self._store.list(_PAGE, offset, kind=_KIND, tags=tags)
            yield from ((each, None) for each in page.memories)
            offset, has_more = offset + _PAGE, page.has_more

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {tuple(each.metadata["path"]) for each, _ in self._all(None)}
        kept = {
            each[: op.max_depth] if op.max_depth else each
            for each in found
            if all(_conforms(each, condition) for condition in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]


def _address(namespace: Iterable[str]) -> str:
    return "ns:" + "/".join(quote(each, safe="") for each in namespace)


def _words(op: PutOp) -> str:
    """Write what can be searched: the fields that `index` names, or the whole value."""
    value = dict(op.value or {})
    if op.index is False:
        return ""
    named = [value[each] for each in op.index or () if each in value]
    return "\n".join(map(_text, named or value.values()))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _item(memory: Memory) -> dict[str, Any]:
    return {
        "namespace": tuple(memory.metadata["path"]),
        "key": memory.metadata["key"],
        "value": memory.metadata["value"],
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_agrees(value.get(name), asked) for name, asked in (wanted or {}).items())


def _agrees(value: Any, asked: Any) -> bool:
    if isinstance(asked, dict) and asked and all(each in _COMPARE for each in asked):
        return all(
            (value is not None or each in ("$eq", "$ne")) and _COMPARE[each](value, other)
            for each, other in asked.items()
        )
    return bool(value == asked)


def _conforms(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(want in ("*", have) for want, have in zip(path, part, strict=True))
