"""Define the verbs about sessions: `store.sessions`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from byheart.conversation.sessions import Sessions
from byheart.memory import notes, transactions
from byheart.memory.references import find_text, identify
from byheart.model import (
    Filter,
    Forgotten,
    Imported,
    Promoted,
    RestoredSession,
    ResumedSession,
    Session,
    SessionStats,
    SessionSummary,
    Transcript,
)
from byheart.model import checks as check
from byheart.model.ids import parse_chunk_id
from byheart.system.forks import RefusedInChild
from byheart.verbs import changing, moving
from byheart.verbs.engine import Engine

Text = str | None


class SessionVerbs(RefusedInChild):
    """List, read, resume and forget whole sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = engine.storage
        self._sessions = Sessions(engine.storage, engine.saver)

    def transcript(
        self,
        session_id: str,
        limit: int = 100,
        offset: int = 0,
        latest: bool = False,
        role: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        space: Text = None,
    ) -> Transcript:
        """Return the turns of a session, oldest first; with `latest`, a page from the end."""
        where = Filter(
            self._engine.space(space),
            session_id=check.check_label("session_id", session_id),
            include_global=False,
            kind=check.check_kinds(kind),
        )
        return self._engine.recorder.transcript(
            where,
            check.check_roles(role),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            check.check_int("offset", offset, 0, check.LARGEST_OFFSET),
            latest=check.check_bool("latest", latest),
        )

    def follow(self, path: str | Path, format: str = "claude-code") -> Imported:
        """Import the lines that were added to a transcript since it was last followed.

        Unreadable lines are skipped and listed. `store.admin.embed_pending` makes the vectors
        later.
        """
        return moving.follow(self._engine, path, format)

    def summarize(
        self, session_id: str, text: Text = None, who: str = "manual", space: Text = None
    ) -> SessionSummary:
        """Set the running summary of a session; without a text, make it from the turns.

        A given summary stays until it is set again; a generated one grows with the session.
        """
        longest = self._engine.settings.max_content_bytes
        return self._engine.recorder.summarize(
            check.check_label("session_id", session_id),
            check.check_optional_text("text", text, longest),
            self._engine.space(space),
            check.check_label("who", who),
        )

    def stats(self, session_id: Text = None, space: Text = None) -> SessionStats:
        """Count the contents of a session, or of all sessions together."""
        name = check.check_optional_label("session_id", session_id)
        return self._sessions.stats(name, self._engine.space(space))

    def resume(
        self,
        session_id: str,
        task_code: Text = None,
        agent_id: Text = None,
        limit: int = 5,
        space: Text = None,
    ) -> ResumedSession:
        """Gather what is needed to continue a session: summary, context, prompts, reports, work.

        With a task, memories of other tasks are left out.
        """
        return self._sessions.resume(
            check.check_label("session_id", session_id),
            check.check_optional_label("task_code", task_code),
            check.check_optional_label("agent_id", agent_id),
            check.check_int("limit", limit, 1, check.LARGEST_LIMIT),
            self._engine.space(space),
        )

    def promote(
        self,
        session_id: Text = None,
        memory_id: str | Sequence[str] | None = None,
        kind: str | Sequence[str] | None = None,
        dry_run: bool = False,
        who: str = "manual",
        space: Text = None,
    ) -> Promoted:
        """Copy a session's memories, or the named ones, to the global memories.

        By default, only lasting memories are copied: no turns, summaries or work in progress.
        """
        return self._sessions.promote(
            check.check_optional_label("session_id", session_id),
            check.check_ids("memory_id", memory_id),
            check.check_kinds(kind),
            self._engine.space(space),
            check.check_label("who", who),
            dry_run=check.check_bool("dry_run", dry_run),
        )

    def forget(
        self,
        session_id: str,
        hard: bool = False,
        dry_run: bool = True,
        reason: Text = None,
        who: str = "manual",
        space: Text = None,
    ) -> Forgotten:
        """Hide a session with everything in it, until it is restored; with `hard`, erase it.

        The call is a dry run that counts, unless `dry_run=False`.
        """
        name = check.check_label("session_id", session_id)
        which = {"session_id": name, "space": space}
        done = changing.forget(self._engine, locals(), which)
        if not done.dry_run:
            where = self._engine.space(space)
            transactions.forget_emissions(self._storage, name, where)
        return done

    def restore(self, session_id: str, who: str = "manual", space: Text = None) -> RestoredSession:
        """Bring back the memories of a session that were forgotten last, all at one time."""
        name, where = check.check_label("session_id", session_id), self._engine.space(space)
        restored = transactions.restore_session(
            self._storage, name, where, check.check_label("who", who)
        )
        return RestoredSession(name, tuple(restored), len(restored))

    def note_shown(
        self, memory_id: str | Sequence[str], session_id: Text = None, space: Text = None
    ) -> None:
        """Note memories that you put into a prompt, so that a reply that repeats them is known.

        `context`, `recall`, `search` and `sessions.resume` note the memories that they return.
        """
        names = check.check_ids("memory_id", memory_id)
        for name in names:
            if "#" in name:
                parse_chunk_id(name)
        session = check.check_optional_label("session_id", session_id)
        self._storage.note(notes.emissions(names, self._engine.space(space), session))

    def of(self, memory_ids: Sequence[str], space: Text = None) -> dict[str, str | None]:
        """Name the session of each memory, text, chunk or file; leave out unknown names."""
        names, where = check.check_ids("memory_ids", memory_ids), self._engine.space(space)
        with self._storage.reading(where) as reader:
            texts = {name: find_text(reader, name, where) for name in names}
            found = reader.states([*texts.values()], where)
        return {name: found[text].session_id for name, text in texts.items() if text in found}

    def identify(
        self, memory_id: str, sessions: Collection[str | None], space: Text = None
    ) -> str | None:
        """Resolve a name or path to the id of its memory, if the memory is in the given sessions.

        Reading by that id reads the same memory, even if another file takes the path meanwhile.
        """
        name = check.check_name("memory_id", memory_id)
        wanted = check.check_sessions("sessions", sessions)
        where = self._engine.space(space)
        with self._storage.reading(where) as reader:
            return identify(reader, name, where, wanted)

    def list(
        self, agent_id: Text = None, limit: int = 20, offset: int = 0, space: Text = None
    ) -> tuple[Session, ...]:
        """List sessions by agent, the latest active first."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        agent = check.check_optional_label("agent_id", agent_id)
        where = self._engine.space(space)
        with self._storage.reading(where) as reader:
            sessions, _ = reader.sessions(where, agent, limit, offset)
        return tuple(sessions)
