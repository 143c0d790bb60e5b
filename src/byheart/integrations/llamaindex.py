"""Search memories as a LlamaIndex retriever, and keep chat memory."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from byheart.integrations.passages import find_passages
from byheart.integrations.turns import Turn, Turns
from byheart.store import MemoryStore


class ByheartRetriever(BaseRetriever):
    """Find passages; further arguments are the filters of `MemoryStore.search`."""

    def __init__(self, store: MemoryStore, similarity_top_k: int = 10, **filters: Any) -> None:
        super().__init__()
        self._store = store
        self._limit = similarity_top_k
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.chunk_id,
                    text=hit.chunk_content,
                    metadata={"memory_id": hit.memory_id, "kind": hit.kind, "title": hit.title},
                ),
                score=hit.score,
            )
            for hit in find_passages(self._store, query, self._limit, self._filters)
        ]


class ByheartMemory(BaseMemory):
    """Keep the messages of one session."""

    _turns: Turns = PrivateAttr()

    def __init__(self, store: MemoryStore, session_id: str) -> None:
        super().__init__()
        self._turns = Turns(store, session_id, "llamaindex")

    @classmethod
    def from_defaults(cls, **given: Any) -> ByheartMemory:
        """Make the memory of a `store` and a `session_id`."""
        return cls(given["store"], given["session_id"])

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Return the messages in order."""
        return self.get_all()

    def get_all(self) -> list[ChatMessage]:
        """Return the messages in order."""
        return [ChatMessage.model_validate(each) for each in self._turns.messages()]

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        role = message.role.value
        known = role if role in ("user", "assistant", "system", "tool") else "tool"
        self._turns.add([Turn(known, message.content or "", message.model_dump(mode="json"))])

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace all messages."""
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        """Forget the messages."""
        self._turns.clear()
