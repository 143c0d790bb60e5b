"""Stores of retrieval sets: documents are saved, and the turns of conversations logged.

A document of a conversation is logged as its speaker said it, at its date, and the conversations of
a set are logged interleaved: a turn of each, then the next of each. A question about a conversation
is asked within its session, and at its own date or a day after the conversation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import stopped_clock
from dates import date_documents, date_questions, order_in_turn
from measures import DEPTH
from sets import Document, Question, RetrievalSet, find_sets, read_set, sample_set

import byheart

# Roles at the beginnings of lines, where a document holds several turns.
_ROLE = re.compile(r"(?:^|\n)(user|assistant): ")
_PAUSE = timedelta(milliseconds=10)
# Several turns of a session may be found before ten sessions are.
_TURNS_PER_SESSION = 3


class FilledStore(NamedTuple):
    """Hold the store of a set, the document of each memory, and when each question is asked."""

    store: byheart.MemoryStore
    names: Mapping[str, str]
    moments: Mapping[str, datetime]
    has_several_memories_per_document: bool

    def search(self, question: Question, **how: Any) -> byheart.SearchAnswer:
        """Search at the moment of the question, within its session if it has one."""
        scope = {"session_id": question.group, "include_global": False} if question.group else {}
        with stopped_clock.stop_at(self.moments.get(question.name)):
            return self.store.search(question.text, **scope, **how)

    def find(self, question: Question, **how: Any) -> list[str]:
        """Name the first documents found, best first."""
        limit = DEPTH * (_TURNS_PER_SESSION if self.has_several_memories_per_document else 1)
        limit = how.pop("limit", limit)
        return self.name_documents(self.search(question, limit=limit, **how))[:DEPTH]

    def name_documents(self, answer: byheart.SearchAnswer) -> list[str]:
        """Name the documents of an answer; the running summary of a session is no document."""
        ids = (hit.memory_id for hit in answer.results)
        return list(dict.fromkeys(self.names.get(each, each) for each in ids))


def read_samples(
    data: Path, names: Sequence[str] | None, questions: int | None, sessions: int | None
) -> Iterator[RetrievalSet]:
    """Read sets, with so many questions of each at most.

    Of a set whose documents are whole sessions, so many are read, among them all that are wanted.
    """
    for folder in find_sets(data, names):
        whole = read_set(folder)
        is_of_sessions = is_said(whole) and not any(each.group for each in whole.documents)
        documents = sessions if sessions and is_of_sessions else len(whole.documents)
        yield sample_set(whole, documents, questions or len(whole.questions))


def store_path(folder: Path, whole: RetrievalSet) -> Path:
    """Return the path of a set's store; a sample has a store of its own."""
    sample = "" if whole.is_whole else f"-{len(whole.documents)}"
    return folder / f"{whole.name}{'-logged' if is_said(whole) else ''}{sample}.db"


@contextmanager
def open_store(folder: Path, whole: RetrievalSet) -> Iterator[FilledStore]:
    """Open the store of a set, and add what is not in it yet."""
    with byheart.open(store_path(folder, whole), space=whole.name) as store:
        is_dated = any(each.date for each in whole.documents)
        dated = list(date_documents(order_in_turn(whole.documents))) if is_dated else []
        moments = dict(_moments(whole, dated))
        if is_said(whole):
            turns = list(read_turns(dated))
            saved = store.log_many([turn for _, turn in turns])
            names = [name for name, _ in turns]
        else:
            times = {each.name: moment for each, moment in dated}
            items = [_item(each, times.get(each.name)) for each in whole.documents]
            saved = store.save_many(items, _show(len(items)))
            names = [each.name for each in whole.documents]
        known = {each.memory_id: name for each, name in zip(saved, names, strict=True)}
        yield FilledStore(store, known, moments, len(names) > len(whole.documents))


def is_said(whole: RetrievalSet) -> bool:
    """Say whether the documents of a set are turns, or sessions of turns with roles."""
    first = whole.documents[0]
    return bool(first.speaker or _ROLE.match(first.text))


def read_turns(
    dated: list[tuple[Document, datetime]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each turn with the name of its document."""
    for each, moment in dated:
        for at, (role, text) in enumerate(_split(each)):
            yield (
                each.name,
                {
                    "session_id": each.group or each.name,
                    "role": role,
                    "content": text,
                    "created_at": (moment + at * _PAUSE).isoformat(),
                    "client_id": f"{each.name} {at}",
                },
            )


def _split(document: Document) -> Iterator[tuple[str, str]]:
    parts = _ROLE.split(document.text)[1:]
    if not parts:
        yield re.sub(r"\W+", "_", (document.speaker or "user").lower()), document.text
    for role, text in zip(parts[::2], parts[1::2], strict=True):
        if text.strip():
            yield role, text


def _item(document: Document, moment: datetime | None) -> dict[str, Any]:
    item = {
        "content": document.text,
        "title": document.title,
        "session_id": document.group,
    }
    return {**item, "created_at": moment.isoformat()} if moment else item


def _moments(
    whole: RetrievalSet, dated: list[tuple[Document, datetime]]
) -> Iterator[tuple[str, datetime]]:
    """Give the questions that have a date or a conversation the moment at which they are asked."""
    groups = {document.group for document, _ in dated}
    asked = (*whole.questions, *whole.unanswerable)
    with_time = [each for each in asked if each.date or each.group in groups]
    for each, moment in date_questions(with_time, dated):
        yield each.name, moment


def _show(total: int) -> Any:
    def show(progress: byheart.Progress) -> None:
        print(f"\r{progress.memories:,} of {total:,} ", end="", file=sys.stderr, flush=True)

    return show
