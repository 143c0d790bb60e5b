"""Keep feedback on memories: the last outcome for each question, and the latest questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from byheart.contracts import MemoryChange, Storage, one_transaction
from byheart.memory import versions
from byheart.model.feedback import Feedback, read_feedback, write_feedback
from byheart.system import clock

# A memory keeps feedback on so many questions: those that it got feedback on last.
MOST_KEPT = 8


def add_feedback(kept: Sequence[Feedback], new: Feedback) -> list[Feedback]:
    """Add feedback to what a memory keeps, the latest last.

    It replaces earlier feedback on a question of the same terms, so that repeating it changes
    nothing. But an outcome that a caller named is not replaced by an echo, which is only a guess.
    """
    same = [each for each in kept if each.question.terms == new.question.terms]
    if new.outcome == "echoed" and any(each.outcome != "echoed" for each in same):
        return list(kept)
    return [*(each for each in kept if each not in same), new][-MOST_KEPT:]


@one_transaction
def give_feedback(storage: Storage, memory_id: str, space: str, feedback: Feedback) -> int:
    """Record feedback on a memory's present text, and count the questions it has feedback on."""
    with storage.writing(space) as writer:
        found = writer.memories.held([memory_id], space)
        held = versions.require_visible(found[0] if found else None, memory_id)
        kept = add_feedback(read_feedback(held.feedback), feedback)
        change = MemoryChange(held.memory_no, {"feedback": write_feedback(kept)})
        writer.memories.change([change])
    return len(kept)


@one_transaction
def note_echoes(
    storage: Storage, memory_ids: Iterable[str], space: str, feedback: Feedback
) -> None:
    """Record that a reply repeated memories; leave out those that are hidden by now."""
    with storage.writing(space) as writer:
        now = clock.now()
        changes = [
            MemoryChange(held.memory_no, {"feedback": write_feedback(kept)})
            for held in writer.memories.held(memory_ids, space)
            if held.is_valid(now)
            for before in [read_feedback(held.feedback)]
            if (kept := add_feedback(before, feedback)) != list(before)
        ]
        if changes:
            writer.memories.change(changes)
