"""Keep the messages of another framework as turns of a session, and give them back unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from byheart.store import MemoryStore

# The keys of a turn's metadata: the framework, and its own form of the message.
_FRAMEWORK, _MESSAGE = "framework", "message"
_PAGE = 1000


class Turn(NamedTuple):
    """Hold a message: whose it is, its words, and the framework's own form of it."""

    role: str
    text: str
    message: Any


class Turns:
    """Hold the messages of one framework in one session, the oldest first."""

    def __init__(self, store: MemoryStore, session_id: str, framework: str) -> None:
        self._store = store
        self._session_id = session_id
        self._framework = framework

    def add(self, turns: Iterable[Turn]) -> None:
        """Add messages; the words of each one can then be searched."""
        for each in turns:
            kept = {_FRAMEWORK: self._framework, _MESSAGE: each.message}
            self._store.log(
                self._session_id, each.role, each.text or f"({each.role})", metadata=kept
            )

    def messages(self, latest: int | None = None) -> list[Any]:
        """Return the messages in their own form, or the latest of them."""
        found = [message for _, message in islice(self._from_end(), latest)]
        return found[::-1]

    def pop(self) -> Any | None:
        """Forget the latest message and return it."""
        for memory_id, message in self._from_end():
            self._store.forget(memory_id, reason=f"taken back by {self._framework}")
            return message
        return None

    def clear(self) -> None:
        """Forget all messages; they can be restored."""
        ids = [memory_id for memory_id, _ in self._from_end()]
        for each in ids:
            self._store.forget(each, reason=f"cleared by {self._framework}")

    def _from_end(self) -> Iterator[tuple[str, Any]]:
        """Go through the framework's own turns, the latest first; others may be between them."""
        offset, has_more = 0, True
        while has_more:
            page = self._store.sessions.transcript(self._session_id, _PAGE, offset, latest=True)
            for turn in reversed(page.turns):
                if turn.metadata.get(_FRAMEWORK) == self._framework:
                    yield turn.memory_id, turn.metadata[_MESSAGE]
            offset, has_more = offset + _PAGE, page.has_more
