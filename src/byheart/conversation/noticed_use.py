"""Notice that a reply uses memories: it repeats sentences that were given out for its question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

from byheart.contracts import Listing, Storage, Vectors
from byheart.memory.feedback import note_echoes
from byheart.memory.save_requests import SaveRequest
from byheart.model.feedback import Feedback
from byheart.model.filters import of_session
from byheart.search.feedback import describe_question
from byheart.system import clock

EmbedQuestion: TypeAlias = "Callable[[str], Vectors | None]"


class Use(NamedTuple):
    """Hold the place of a reply in a batch of turns, and the memories that it repeats."""

    at: int
    memory_ids: Collection[str]


class UseRecorder:
    """Record the memories that replies repeat as feedback on the questions of their sessions."""

    def __init__(self, storage: Storage, embed_question: EmbedQuestion) -> None:
        self._storage = storage
        self._embed_question = embed_question

    def record(self, turns: Sequence[SaveRequest], uses: Sequence[Use]) -> None:
        """Record what replies repeat; their question is the last turn of the user before them."""
        for use in uses:
            space, session_id = turns[use.at].space, turns[use.at].session_id
            said = [
                each.content
                for each in turns[: use.at]
                if each.role == "user" and (each.space, each.session_id) == (space, session_id)
            ]
            question, question_id = (said[-1], None) if said else self._stored(space, session_id)
            used = [each for each in use.memory_ids if each != question_id]
            if not question.strip() or not used:
                continue
            asked = describe_question(question, self._embed_question(question))
            note_echoes(self._storage, used, space, Feedback("echoed", clock.now(), asked))

    def _stored(self, space: str, session_id: str | None) -> tuple[str, str | None]:
        """Find the last turn of the user in a session: its text and its id."""
        with self._storage.reading(space) as reader:
            own = of_session(session_id, space)
            found = reader.memories(Listing(own, "said last", 1, roles=("user",)))
        return (found[0].content, found[0].memory_id) if found else ("", None)
