"""Keep the history of an agent of the OpenAI Agents SDK: `Runner.run(agent, text, session=…)`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import resolve_session_limit

from byheart.integrations.turns import Turn, Turns
from byheart.store import MemoryStore


class ByheartSession(SessionABC):
    """Keep the items of a conversation as turns of a session, across runs and processes.

    `SessionSettings(limit=…)` bounds how many of the latest items a run is given.
    """

    def __init__(
        self,
        store: MemoryStore,
        session_id: str,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._turns = Turns(store, session_id, "openai-agents")

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items in order, or the latest of them."""
        latest = resolve_session_limit(limit, self.session_settings)
        return await asyncio.to_thread(self._turns.messages, latest)

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end."""
        turns = [Turn(_role(each), _text(each), each) for each in items]
        await asyncio.to_thread(self._turns.add, turns)

    async def pop_item(self) -> Any | None:
        """Take the latest item away and return it."""
        return await asyncio.to_thread(self._turns.pop)

    async def clear_session(self) -> None:
        """Forget all items."""
        await asyncio.to_thread(self._turns.clear)


def _role(item: dict[str, Any]) -> str:
    role = item.get("role")
    if role in ("user", "assistant", "system"):
        return str(role)
    return "system" if role == "developer" else "tool"


def _text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(each.get("text", "")) for each in content).strip()
    return json.dumps(item, ensure_ascii=False)
