"""Search memories as a LangChain retriever, and keep chat histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from byheart.integrations.passages import find_passages
from byheart.integrations.turns import Turn, Turns
from byheart.store import MemoryStore

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


class ByheartRetriever(BaseRetriever):
    """Find `k` passages, or as many as `invoke(…, k=…)` says.

    `filters` are the filters of `MemoryStore.search`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    store: MemoryStore
    k: int = 10
    filters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (the framework names it)
        k: int | None = None,
    ) -> list[Document]:
        return [
            Document(
                page_content=hit.chunk_content,
                id=hit.chunk_id,
                metadata={
                    "memory_id": hit.memory_id,
                    "score": hit.score,
                    "similarity": hit.similarity,
                    "kind": hit.kind,
                    "title": hit.title,
                    "path": hit.path,
                    "created_at": hit.created_at.isoformat(),
                },
            )
            for hit in find_passages(self.store, query, self.k if k is None else k, self.filters)
        ]


class ByheartChatHistory(BaseChatMessageHistory):
    """Keep the messages of one session."""

    def __init__(self, store: MemoryStore, session_id: str) -> None:
        self._turns = Turns(store, session_id, "langchain")

    @property
    def messages(self) -> list[BaseMessage]:
        """Return the messages in order."""
        found: list[BaseMessage] = messages_from_dict(self._turns.messages())
        return found

    @messages.setter
    def messages(self, messages: list[BaseMessage]) -> None:
        self.clear()
        self.add_messages(messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end."""
        self._turns.add(
            Turn(_ROLES.get(each.type, "tool"), str(each.text), message_to_dict(each))
            for each in messages
        )

    def clear(self) -> None:
        """Forget the messages."""
        self._turns.clear()
