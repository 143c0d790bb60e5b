"""Serve as a LangGraph store: `graph.compile(store=ByheartStore(…))`.

An item is a memory of kind `langgraph-item`. Its tags name every beginning of its namespace, so
that a search in a namespace is a filter, and the item itself, so that an index finds it.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
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
    get_text_at_path,
    tokenize_path,
)

from byheart.errors import InvalidInput
from byheart.model import Memory
from byheart.model.checks import LONGEST_LABEL
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
        # A tag is found by an index; metadata would be compared in every item.
        found = self._store.list(2, kind=_KIND, tags=[_tag("item:", (*namespace, key))]).memories
        return next(filter(_is_item, found), None)

    def _put(self, op: PutOp) -> None:
        before = self._find(op.namespace, op.key)
        if op.value is None:
            if before is not None:
                self._store.forget(before.memory_id, reason="deleted by langgraph")
            return
        fields: dict[str, Any] = {
            "metadata": {
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
        tags = [_tag("ns:", op.namespace[:end]) for end in range(1, len(op.namespace) + 1)]
        tags.append(_tag("item:", (*op.namespace, op.key)))
        self._store.save(content, _KIND, tags=tags, source="langgraph", origin="agent", **fields)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        tags = [_tag("ns:", op.namespace_prefix)] if op.namespace_prefix else None
        last = op.offset + op.limit
        if op.query:
            found = self._ranked(op.query, tags, _PAGE if op.filter else max(1, min(last, _PAGE)))
        else:
            found = self._all(tags)
        wanted = (pair for pair in found if _agrees(pair[0].metadata["value"], op.filter or {}))
        page = islice(wanted, op.offset, last)
        return [SearchItem(**_item(each), score=score) for each, score in page]

    def _ranked(
        self, query: str, tags: list[str] | None, limit: int
    ) -> Iterator[tuple[Memory, float | None]]:
        hits = self._store.search(query, limit, granularity="coarse", kind=_KIND, tags=tags).results
        found = ((self._store.get(hit.memory_id), hit.score) for hit in hits)
        return (pair for pair in found if _is_item(pair[0]))

    def _all(self, tags: list[str] | None) -> Iterator[tuple[Memory, float | None]]:
        offset, has_more = 0, True
        while has_more:
            page = self._store.list(_PAGE, offset, kind=_KIND, tags=tags)
            yield from ((each, None) for each in filter(_is_item, page.memories))
            offset, has_more = offset + _PAGE, page.has_more

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {tuple(each.metadata["path"]) for each, _ in self._all(None)}
        kept = {
            each[: op.max_depth] if op.max_depth else each
            for each in found
            if all(_conforms(each, condition) for condition in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]


def _tag(beginning: str, names: Iterable[str]) -> str:
    """Write a namespace or a key in it as a tag; a digest stands for one that is too long."""
    tag = beginning + "/".join(quote(each, safe="") for each in names)
    if len(tag) <= LONGEST_LABEL:
        return tag
    return f"{beginning}sha256:{sha256(tag.encode()).hexdigest()}"


def _is_item(memory: Memory) -> bool:
    """Tell whether this adapter wrote a memory: anybody may save one of its kind."""
    return {"path", "key", "value"} <= memory.metadata.keys()


def _words(op: PutOp) -> str:
    """Write what can be searched: the fields that `index` names, or the whole value."""
    value = dict(op.value or {})
    if op.index is False:
        return ""
    named = [
        text for path in op.index or () for text in get_text_at_path(value, tokenize_path(path))
    ]
    return "\n".join(named or map(_text, value.values()))


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


def _agrees(value: Any, asked: Any) -> bool:
    """Tell whether a value is what a filter asks for, as LangGraph's own stores do."""
    if isinstance(asked, Mapping):
        if any(str(each).startswith("$") for each in asked):
            return all(_compare(each, value, other) for each, other in asked.items())
        return isinstance(value, Mapping) and all(
            _agrees(value.get(name), other) for name, other in asked.items()
        )
    if isinstance(asked, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(asked)
            and all(map(_agrees, value, asked))
        )
    return bool(value == asked)


def _compare(name: str, value: Any, other: Any) -> bool:
    compare = _COMPARE.get(name)
    if compare is None:
        raise InvalidInput(f"unknown operator {name!r}", f"use one of {', '.join(_COMPARE)}")
    try:
        return bool(compare(value, other))
    except TypeError:  # values of two kinds, or none: neither is greater
        return False


def _conforms(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(want in ("*", have) for want, have in zip(path, part, strict=True))
