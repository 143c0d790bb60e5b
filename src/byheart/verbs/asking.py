"""Answer questions: search, recall, context and reminders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from byheart.contracts import Reader, Vectors
from byheart.conversation.context import LARGEST_TOP_K, PromptRequest, Reminder
from byheart.conversation.prompt import RecallText
from byheart.errors import Do, Hint, InvalidInput, join_hints
from byheart.memory import notes
from byheart.model import (
    FUSIONS,
    GRANULARITIES,
    MODES,
    ChunkHit,
    ContextAnswer,
    Filter,
    IndexState,
    Mode,
    RecallAnswer,
    ReceiptVerb,
    SearchAnswer,
)
from byheart.model import checks as check
from byheart.model.compat_names import translate
from byheart.model.filters import make_filter
from byheart.model.memories import ContextFilters
from byheart.search import RecallRequest, SearchRequest, Weights, find, find_conflicts
from byheart.search import recall as recall_memories
from byheart.startup.late_numpy import np
from byheart.system import clock
from byheart.verbs.engine import Engine

Given = Mapping[str, Any]


def search(engine: Engine, given: Given) -> SearchAnswer:
    """Find the hits of a query."""
    started = time.perf_counter()
    # Check also values that a compatibility name overrules.
    check.check_choice("mode", given["mode"], MODES)
    check.check_int("limit", given["limit"], 1, check.LARGEST_LIMIT)
    request = _search_request(engine, translate("search", given))
    with engine.asking(request, vector=_own_vector(given, request)) as (request, asked):
        hits, more, judgement, times, not_reranked = find(
            request, asked.reader, asked.vector, asked.unrelated, engine.reranking
        )
        state = _state(asked.reader, request.where)
    if request.query:
        given_out = [hit.chunk_id if isinstance(hit, ChunkHit) else hit.text_id for hit in hits]
        where = request.where
        engine.storage.note(notes.emissions(given_out, where.space, where.session_id))
    elapsed_ms = (time.perf_counter() - started) * 1000
    looked = f"{request.mode if request.query else 'listing'}/{request.granularity}"
    verdict = judgement.verdict if request.query else None  # a listing has no verdict
    engine.observer.searched(request.where.space, looked, request.query, elapsed_ms, verdict)
    # A listing needs no vectors.
    used: Mode = request.mode if request.query else "fts"
    return SearchAnswer(
        query=request.query,
        mode=request.mode,
        granularity=request.granularity,
        results=tuple(hits),
        total_results=len(hits),
        has_more=more,
        degraded=engine.degraded(asked.degraded, used, state),
        index=state,
        elapsed_ms=round(elapsed_ms, 3),
        verdict=judgement.verdict,
        confidence=judgement.confidence,
        remark=join_hints("; ", (asked.remark, not_reranked)),
        grounds=judgement.grounds if request.explain else None,
        times=times,
        conflicts=find_conflicts(hits) if verdict not in (None, "none") else (),
    )


def _search_request(engine: Engine, given: Given) -> SearchRequest:
    granularity = check.check_choice("granularity", given["granularity"], GRANULARITIES)
    text = check.check_query(given["query"])
    if not text and granularity != "coarse":
        raise InvalidInput(
            "the query is empty",
            Hint("ask for something, or list memories with: ", Do("list")),
        )
    mode = given["mode"]
    return SearchRequest(
        query=text,
        where=engine.filter(given["filters"]),
        limit=check.check_int("limit", given["limit"], 1, check.LARGEST_LIMIT),
        offset=check.check_int("offset", given["offset"], 0, check.LARGEST_OFFSET),
        mode=_raw_mode(mode) if given["raw"] else check.check_choice("mode", mode, MODES),
        fusion=check.check_choice("fusion", given["fusion"], FUSIONS),
        granularity=granularity,
        raw=check.check_bool("raw", given["raw"]),
        explain=check.check_bool("explain", given["explain"]),
        snippet_chars=engine.settings.snippet_chars,
        feedback_half_life_days=engine.settings.feedback_half_life_days,
        time_weight=_time_weight(engine, given),
    )


def _own_vector(given: Given, request: SearchRequest) -> Vectors | None:
    """Check the vector that the caller has made of the query."""
    numbers = check.check_vector("vector", given["vector"])
    if numbers is None:
        return None
    if request.mode == "fts" or not request.query:
        needed = "mode=hybrid or mode=vector" if request.query else "a query"
        raise InvalidInput(f"vector needs {needed}", f"give {needed}, or leave vector out")
    return np.array(numbers, np.float32)


def _time_weight(engine: Engine, given: Given) -> float:
    return engine.settings.time_weight if check.check_bool("times", given["times"]) else 0.0


def _raw_mode(mode: object) -> Mode:
    if check.check_choice("mode", mode, MODES) == "vector":
        raise InvalidInput("raw queries have no meaning for vectors", "use mode=fts")
    return "fts"


def _state(reader: Reader, where: Filter) -> IndexState:
    return reader.index.state(where.space, where.session_id, include_global=where.include_global)


def recall(engine: Engine, given: Given, filters: Given) -> RecallAnswer:
    """Return the memories that matter most for a query."""
    given = _with_settings(given, {"max_tokens": engine.settings.recall_max_tokens})
    started = time.perf_counter()
    mode = given["mode"]
    question = SearchRequest(
        query=check.check_query(given["query"]),
        where=make_filter(filters, engine.settings.space),
        limit=check.check_int("limit", given["limit"], 1, check.LARGEST_LIMIT),
        offset=check.check_int("offset", given["offset"], 0, check.LARGEST_OFFSET),
        mode=_raw_mode(mode) if given["raw"] else check.check_choice("mode", mode, MODES),
        raw=check.check_bool("raw", given["raw"]),
        explain=check.check_bool("explain", given["explain"]),
        feedback_half_life_days=engine.settings.feedback_half_life_days,
        time_weight=_time_weight(engine, given),
    )
    if not question.query:
        raise InvalidInput("the query is empty", "say what is to be recalled")
    max_tokens = check.check_int("max_tokens", given["max_tokens"], 1, check.MOST_TOKENS)
    request = RecallRequest(question, max_tokens, Weights(*engine.settings.recall_weights))
    # Load the token counter before the view is opened, which then says whether it is the right one.
    engine.vectorizer.likely_tokens().token_starts(question.query)
    with engine.asking(question) as (question, asked):
        request = replace(request, question=question)
        tokens = engine.vectorizer.tokens(asked.reader.models.read())
        now = clock.now()
        answer, accessed = recall_memories(
            request, asked.reader, asked.vector, tokens, RecallText(), now, asked.unrelated
        )
        state = _state(asked.reader, question.where)
    where = question.where
    if where.as_of is None and answer.details:
        ids = [each.id for each in answer.details]
        engine.storage.note(
            [
                *notes.accesses(accessed, where.space),
                *notes.emissions(ids, where.space, where.session_id),
            ]
        )
    elapsed_ms = (time.perf_counter() - started) * 1000
    engine.observer.searched(where.space, "recall", question.query, elapsed_ms, answer.verdict)
    degraded = engine.degraded(asked.degraded, question.mode, state)
    remark = join_hints("; ", (asked.remark, answer.remark))
    return replace(answer, index_state=state, degraded=degraded, remark=remark)


def context(engine: Engine, given: Given, filters: Given) -> ContextAnswer:
    """Put together the context that a session asks for."""
    settings = engine.settings
    usual = {
        "max_tokens": settings.context_max_tokens,
        "recent": settings.context_recent,
        "top_k": settings.context_top_k,
    }
    given = _with_settings(given, usual)
    started = time.perf_counter()
    where = _of_session(engine, given, filters, include_global=given["include_global"])
    query = given["query"]
    request = _prompt_request(
        given,
        where,
        query=None if query is None else check.check_query(query) or None,
        recent=check.check_int("recent", given["recent"], 0, check.LARGEST_LIMIT),
    )
    preview = check.check_bool("preview", given["preview"])
    return _prompted(engine, replace(request, preview=preview), "context", started)


def remind(engine: Engine, given: Given, filters: Given) -> ContextAnswer:
    """Put together memories that a session should know, without being asked."""
    started = time.perf_counter()
    where = _of_session(engine, given, filters)
    engine.storage.settle()
    request = _prompt_request(given, where, query=check.check_query(given["query"]), recent=0)
    reminder = Reminder(
        since=check.check_time("since", given["since"]),
        least_similarity=check.check_number("min_similarity", given["min_similarity"], 0, 1),
        max_chars=check.check_int("max_chars", given["max_chars"], 1, check.MOST_TOKENS),
    )
    return _prompted(engine, replace(request, reminder=reminder), "remind", started)


def _with_settings(given: Given, usual: Given) -> Given:
    """Put the values of settings in place of arguments that were not given."""
    missing = {name: value for name, value in usual.items() if given[name] is None}
    return {**given, **missing}


def _of_session(engine: Engine, given: Given, filters: Given, **more: object) -> Filter:
    check.check_names(filters, tuple(ContextFilters.__annotations__), "filter")
    session = check.check_label("session_id", given["session_id"])
    return make_filter({**filters, "session_id": session, **more}, engine.settings.space)


def _prompt_request(given: Given, where: Filter, query: str | None, recent: int) -> PromptRequest:
    task = check.check_optional_label("include_task", given["include_task"])
    return PromptRequest(
        where=where,
        also=None if task is None else replace(where, session_id=None, task_code=task),
        query=query,
        mode=check.check_choice("mode", given["mode"], MODES),
        max_tokens=check.check_int("max_tokens", given["max_tokens"], 1, check.MOST_TOKENS),
        recent=recent,
        top_k=check.check_int("top_k", given["top_k"], 0, LARGEST_TOP_K),
    )


def _prompted(
    engine: Engine, request: PromptRequest, verb: ReceiptVerb, started: float
) -> ContextAnswer:
    answer, state = engine.prompter.context(request, verb)
    elapsed_ms = (time.perf_counter() - started) * 1000
    space, verdict = request.where.space, answer.verdict
    engine.observer.searched(space, "context", answer.query, elapsed_ms, verdict)
    degraded = engine.degraded(answer.degraded, answer.mode, state)
    return replace(answer, degraded=degraded, elapsed_ms=round(elapsed_ms, 3))
