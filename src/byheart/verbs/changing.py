"""Change, replace, pin, forget and restore single memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byheart.errors import InvalidInput
from byheart.memory import transactions
from byheart.memory.feedback import give_feedback
from byheart.model import FeedbackResult, Forgotten, Memory, SaveResult
from byheart.model import checks as check
from byheart.model.feedback import OUTCOMES, Feedback
from byheart.search.feedback import describe_question
from byheart.system import clock
from byheart.verbs.engine import Engine

Text = str | None


def update(
    engine: Engine,
    memory_id: str,
    space: Text,
    fields: Mapping[str, Any],
    expected_version: int | None,
    who: str,
) -> SaveResult:
    """Change the given fields of a memory."""
    if expected_version is not None:
        check.check_int("expected_version", expected_version, 1, check.LARGEST_VERSION)
    name = check.check_label("memory_id", memory_id)
    author, where = check.check_label("who", who), engine.space(space)
    result = engine.changer.update(name, where, fields, expected_version, author)
    engine.observer.saved(where, result.status)
    return result


def supersede(
    engine: Engine, memory_id: str, by: Text, reason: Text, who: str, space: Text
) -> Memory:
    """Mark a memory as superseded by another one."""
    name, where = check.check_label("memory_id", memory_id), engine.space(space)
    return transactions.supersede(
        engine.storage,
        name,
        check.check_optional_label("by", by),
        transactions.find_closing(engine.storage, name, where),
        where,
        check.check_label("who", who),
        check.check_optional_text("reason", reason, check.LONGEST_SUMMARY),
    )


def feedback(
    engine: Engine, memory_id: str, query: str, outcome: str, space: Text
) -> FeedbackResult:
    """Record what came of a memory that was given out for a question."""
    name, where = check.check_label("memory_id", memory_id), engine.space(space)
    known = check.check_choice("outcome", outcome, OUTCOMES)
    text = check.check_query(query)
    if not text:
        raise InvalidInput("the query is empty", "give the question that the memory was found for")
    asked = describe_question(text, engine.vectorizer.embed_question(text))
    at = clock.now()
    questions = give_feedback(engine.storage, name, where, Feedback(known, at, asked))
    return FeedbackResult(name, known, at, questions)


def pin(engine: Engine, memory_id: str, who: str, space: Text, *, pinned: bool) -> Memory:
    """Pin a memory, or unpin it."""
    name = check.check_label("memory_id", memory_id)
    return transactions.pin(
        engine.storage, name, engine.space(space), check.check_label("who", who), pinned=pinned
    )


def forget(engine: Engine, given: Mapping[str, Any], filters: Mapping[str, Any]) -> Forgotten:
    """Hide or erase the memories that are named, or that the filters leave."""
    dry_run = given["dry_run"]
    return engine.forgetter.forget(
        check.check_ids("memory_id", given.get("memory_id")),
        filters,
        given.get("older_than"),
        hard=check.check_bool("hard", given["hard"]),
        dry_run=None if dry_run is None else check.check_bool("dry_run", dry_run),
        who=check.check_label("who", given["who"]),
        reason=check.check_optional_text("reason", given["reason"], check.LONGEST_SUMMARY),
    )


def restore(engine: Engine, memory_id: str, who: str, space: Text) -> Memory:
    """Bring back a forgotten memory."""
    name = check.check_label("memory_id", memory_id)
    author = check.check_label("who", who)
    return transactions.restore(engine.storage, name, engine.space(space), author)
