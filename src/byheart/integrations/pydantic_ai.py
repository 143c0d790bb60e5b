"""Give a pydantic-ai agent tools to remember and to search: `Agent(…, toolsets=[…])`."""

from __future__ import annotations

from typing import Any

from pydantic_ai.toolsets import FunctionToolset

from byheart.integrations.passages import find_passages
from byheart.store import MemoryStore


def memory_toolset(
    store: MemoryStore, session_id: str | None = None, id: str = "byheart"
) -> FunctionToolset[Any]:
    """Make a toolset over a store; with a session, searches see it and what is global."""

    def memory_save(content: str, tags: list[str] | None = None) -> str:
        """Save one fact that will matter later, in words that stand by themselves.

        Args:
            content: The fact, with names instead of pronouns.
            tags: A few words to group it by.
        """
        saved = store.save(
            content, tags=tags or (), session_id=session_id, origin="agent", source="pydantic-ai"
        )
        return f"{saved.status}: {saved.memory_id}"

    def memory_search(query: str, limit: int = 5) -> list[dict[str, str]]:
        """Find what was saved earlier, by meaning and by keyword, best first.

        Args:
            query: A question, in the words of its answer.
            limit: How many passages to return.
        """
        found = find_passages(store, query, limit, {"session_id": session_id})
        return [{"memory_id": hit.memory_id, "text": hit.chunk_content} for hit in found]

    def memory_recall(topic: str, max_tokens: int = 1000) -> str:
        """Bring what matters most about a topic, within a budget of tokens.

        Args:
            topic: What about.
            max_tokens: The budget.
        """
        return store.recall(topic, max_tokens, session_id=session_id).text

    return FunctionToolset([memory_save, memory_search, memory_recall], id=id)
