"""Record the turns of sessions, and keep a running summary of each session.

A turn is saved like any memory, but the same words said twice are two turns. The running summary is
one memory per session; its earlier versions are in its history.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from byheart.contracts import Listing, Storage
from byheart.contracts.reader import Order
from byheart.conversation.noticed_use import EmbedQuestion, Use, UseRecorder
from byheart.conversation.prompt import (
    Emitted,
    extract_summary,
    find_quotations,
    read_identity_files,
)
from byheart.conversation.running_summary import find_summary
from byheart.errors import Conflict, InvalidInput, NotFound, StoreError
from byheart.memory import transactions, versions
from byheart.memory.save_requests import SaveRequest, check_request, look_for_secrets
from byheart.memory.saving import OnEmbedded, Saver
from byheart.model import Filter, Memory, SaveResult, SessionSummary, Transcript, Turn
from byheart.model import checks as check
from byheart.model.fields import BY_NAME, LOG_FIELDS, SAVE_FIELDS
from byheart.model.filters import of_session
from byheart.model.memories import RUNNING_SUMMARY_ID
from byheart.settings import Settings

# The fields of a turn that a save does not have.
_OWN_FIELDS = tuple(BY_NAME[name] for name in LOG_FIELDS if name not in SAVE_FIELDS)
SUMMARY_KIND = "session_summary"
# The roles that a summary is made of, and how many turns at most; tool outputs are left out.
_SUMMARIZED_ROLES, _SUMMARIZED_TURNS = ("user", "assistant"), 12

Update = Callable[[str, str, Mapping[str, Any], int | None, str], SaveResult]


def check_turn(given: Mapping[str, Any], settings: Settings) -> SaveRequest:
    """Accept the fields of `log`, or refuse them before anything is written."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"an item must be an object with the fields of log, not {type(given).__name__}",
            'give {"session_id": "…", "role": "user", "content": "…"}',
        )
    check.check_names(given, LOG_FIELDS, "field")
    fields = {name: value for name, value in given.items() if name in SAVE_FIELDS}
    check.check_label("session_id", fields.get("session_id"))
    request = check_request({"kind": "message", **fields, "source": "log"}, settings, blank=True)
    own = {
        field.name: field.check(field.name, given.get(field.name))
        for field in _OWN_FIELDS
        if field.check is not None
    }
    return replace(request, **own)


def check_logged(given: Mapping[str, Any], settings: Settings) -> SaveRequest:
    """Accept the fields of `log`, and look for secrets in them."""
    return look_for_secrets(check_turn(given, settings), settings)


class Recorder:
    """Record turns, and keep the running summaries of sessions."""

    def __init__(
        self,
        storage: Storage,
        saver: Saver,
        update: Update,
        embed_question: EmbedQuestion,
        settings: Settings,
    ) -> None:
        self._storage = storage
        self._saver = saver
        self._update = update
        self._settings = settings
        self._uses = UseRecorder(storage, embed_question)

    def keep(
        self, turns: Sequence[SaveRequest], on_embedded: OnEmbedded | None = None
    ) -> list[SaveResult]:
        """Save turns in one transaction; a turn with a known client id is not saved again."""
        heard, uses = self._hear(turns)
        try:
            results = self._saver.save(heard, on_embedded)
        except Conflict:
            # A client id already has another text: save the turns before it, as one by one would.
            self._saver.save(heard[: self._first_conflict(turns)])
            raise
        created = Counter(
            (turn.space, turn.session_id)
            for turn, result in zip(turns, results, strict=True)
            if result.status == "created"
        )
        # The turns are saved: a failure of the summary must not look like a failure to save them.
        with contextlib.suppress(StoreError, Conflict):
            for (space, session_id), count in created.items():
                assert session_id is not None, "every turn belongs to a session"
                self._refresh(session_id, space, count)
            if self._settings.feedback_half_life_days:
                new = [use for use in uses if results[use.at].status == "created"]
                self._uses.record(turns, new)
        return results

    def _first_conflict(self, turns: Sequence[SaveRequest]) -> int:
        known = transactions.known(
            self._storage, [turn.key for turn in turns if turn.client_id is not None]
        )
        given: dict[tuple[str, str | None, str], tuple[str, int]] = {}
        conflicts = (
            _find_conflict(turn, at, known.get(turn.key), given) for at, turn in enumerate(turns)
        )
        return next((at for at, conflict in enumerate(conflicts) if conflict), 0)

    def _hear(self, turns: Sequence[SaveRequest]) -> tuple[Sequence[SaveRequest], list[Use]]:
        """Find the parts of turns that only repeat the prompts of their session.

        Also name the memories that replies repeat.

        A user's own words always count. In a user's turn, only text between our delimiters is
        known to be ours.
        """
        if not self._settings.notice_echoes:
            return turns, []
        nothing, emitted = Emitted(), dict[tuple[str, str | None], Emitted]()
        heard, uses = [], []
        for at, turn in enumerate(turns):
            place = (turn.space, turn.session_id)
            quoted = [text for _, text in find_quotations(turn.content)]
            if place not in emitted and (quoted or turn.role != "user"):
                emitted[place] = self._emitted(*place)
            repeated = nothing if turn.role == "user" else emitted[place]
            echoes = tuple(repeated.find_echoes(turn.content))
            heard.append(replace(turn, echoes=echoes))
            if echoes and turn.role == "assistant":
                uses.append(Use(at, repeated.find_sources(turn.content)))
            for text in quoted:
                emitted[place].add(text)
        return heard, uses

    def _emitted(self, space: str, session_id: str | None) -> Emitted:
        assert session_id is not None, "every turn belongs to a session"
        self._storage.settle()
        with self._storage.reading(space) as reader:
            given = Emitted()
            for memory_id, text in reader.emitted(space, session_id):
                given.add(text, memory_id)
        for file in read_identity_files(self._settings, space):
            given.add(file.text)
        return given

    def until_other_words(
        self, batches: Iterable[Sequence[SaveRequest]]
    ) -> Iterator[Sequence[SaveRequest]]:
        """Give turns to keep, and stop before the first whose client id has another text."""
        number = 0
        given: dict[tuple[str, str | None, str], tuple[str, int]] = {}
        for turns in batches:
            known = transactions.known(
                self._storage, [turn.key for turn in turns if turn.client_id is not None]
            )
            for at, turn in enumerate(turns):
                conflict = _find_conflict(turn, number + at, known.get(turn.key), given)
                if conflict is not None:
                    yield turns[:at]
                    raise conflict
            number += len(turns)
            yield turns

    def transcript(
        self, where: Filter, roles: Sequence[str], limit: int, offset: int, *, latest: bool
    ) -> Transcript:
        """Give a page of what was said in a session."""
        with self._storage.reading(where.space) as reader:
            order: Order = "said last" if latest else "said"
            listing = Listing(where, order, limit, offset, roles)
            found, total = reader.memories(listing), reader.count(listing)
        assert where.session_id is not None, "a transcript is of one session"
        turns = tuple(map(_turn, found))
        return Transcript(where.session_id, turns, total, offset + len(turns) < total)

    def summarize(self, session_id: str, text: str | None, space: str, who: str) -> SessionSummary:
        """Set the running summary of a session, or without a text make it from its turns."""
        where = replace(of_session(session_id, space), trusted=True)
        with self._storage.reading(space) as reader:
            current = find_summary(reader, session_id, space)
            turns = reader.count(Listing(where, roles=()))
            salient = reader.salient_turns(where, _SUMMARIZED_ROLES, _SUMMARIZED_TURNS)
        content = extract_summary(salient) if text is None else text
        if not content:
            raise NotFound(
                f"nothing was said in the session {session_id}",
                "log something first, or give the summary as text",
            )
        about = {"extracted": text is None, "turns": turns}
        result = self._write(session_id, content, about, current, space, who)
        return self._described(session_id, space, result)

    def _refresh(self, session_id: str, space: str, added: int) -> None:
        """Renew the summary each time a session has grown by a certain number of turns."""
        every = self._settings.summary_every_turns
        if not every:
            return
        with self._storage.reading(space) as reader:
            turns = reader.count(Listing(of_session(session_id, space), roles=()))
            if turns // every == max(0, turns - added) // every:
                return
            current = find_summary(reader, session_id, space)
        given = current is not None and not current.metadata.get("extracted")
        forgotten = current is not None and current.forgotten_at is not None
        # An agent's own summary stays until an agent writes again; a forgotten one stays hidden.
        if not given and not forgotten:
            with contextlib.suppress(NotFound):  # nobody but tools has said anything yet
                self.summarize(session_id, None, space, "byheart")

    def _write(
        self,
        session_id: str,
        content: str,
        about: Mapping[str, Any],
        current: Memory | None,
        space: str,
        who: str,
    ) -> SaveResult:
        if current is None:
            request = check_request(
                {
                    "content": content,
                    "kind": SUMMARY_KIND,
                    "session_id": session_id,
                    "space": space,
                    "source": who,
                    "metadata": about,
                },
                self._settings,
            )
            request = look_for_secrets(request, self._settings)
            [result] = self._saver.save([replace(request, client_id=RUNNING_SUMMARY_ID)])
            if result.status == "created":
                return result
            # Another process created the summary first: update that one.
            memory_id = result.memory_id
        else:
            memory_id = current.memory_id
            if current.forgotten_at is not None:
                transactions.restore(self._storage, memory_id, space, who)
            elif _says_the_same(current, content, about):
                about = current.metadata
        change = {"content": content, "metadata": about}
        return self._update(memory_id, space, change, None, who)

    def _described(self, session_id: str, space: str, result: SaveResult) -> SessionSummary:
        with self._storage.reading(space) as reader:
            memory = find_summary(reader, session_id, space)
        assert memory is not None, "it was written just now"
        return SessionSummary(
            session_id=session_id,
            memory_id=memory.memory_id,
            content=memory.content,
            status=result.status,
            version=memory.version,
            extracted=bool(memory.metadata.get("extracted")),
            turns=int(memory.metadata.get("turns", 0)),
            updated_at=memory.updated_at,
        )


def _says_the_same(current: Memory, content: str, about: Mapping[str, Any]) -> bool:
    """Say whether only the number of turns is new, which is no reason for a new version."""
    extracted = bool(current.metadata.get("extracted"))
    return current.content == content and extracted == about["extracted"]


def _turn(memory: Memory) -> Turn:
    assert memory.role is not None, "a turn was said by somebody"
    return Turn(
        memory_id=memory.memory_id,
        role=memory.role,
        kind=memory.kind,
        content=memory.content,
        created_at=memory.created_at,
        client_id=memory.client_id,
        agent_id=memory.agent_id,
        title=memory.title,
        path=memory.path,
        metadata=memory.metadata,
    )


def _find_conflict(
    turn: SaveRequest,
    number: int,
    held: SaveResult | None,
    given: dict[tuple[str, str | None, str], tuple[str, int]],
) -> Conflict | None:
    """Return the error if the client id of a turn has another text, in the store or the list."""
    if turn.client_id is None:
        return None
    name = (turn.space, turn.session_id, turn.client_id)
    text, first = given.setdefault(name, (turn.content_hash, number))
    if held is not None:
        if versions.names_other_text(turn.key, held):
            return versions.other_text_error(turn.key, held, f"item {number}: ")
        return None
    if text == turn.content_hash:
        return None
    return Conflict(
        f"item {number}: client_id {turn.client_id!r} has another text in item {first}",
        "give each turn a client_id of its own",
    )
