"""Define the verbs for people who look at a store: `store.views`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Unpack, get_args

from byheart.contracts import ChangeMark, DayCount, NamedField
from byheart.errors import Do, Hint, InvalidInput
from byheart.memory import versions
from byheart.model import (
    Briefs,
    Changes,
    ChunkPage,
    Day,
    Filter,
    MemoryChunk,
    RenderedMemory,
    SimilarMemories,
    SpaceMap,
    Timeline,
    VersionPage,
)
from byheart.model import checks as check
from byheart.model.memories import FilterFields
from byheart.search.similar import find_nearest
from byheart.startup.late_patterns import late_pattern
from byheart.system.forks import RefusedInChild
from byheart.verbs import reading
from byheart.verbs.engine import Engine

Text = str | None
_MARK = late_pattern(r"([0-9]{1,19})-([0-9]{1,19})")
_MINUTE_MICROS = 60_000_000
_EPOCH, _LAST = date(1970, 1, 1).toordinal(), date.max.toordinal()


class ViewVerbs(RefusedInChild):
    """Show memories as people look at them: in brief, in parts, as HTML, over time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def brief(self, memory_id: str | Sequence[str], space: Text = None) -> Briefs:
        """Fetch memories by id without their texts, forgotten ones too."""
        asked, where = check.check_ids("memory_id", memory_id), self._engine.space(space)
        names = [check.check_label("memory_id", each) for each in asked]
        if memory_id is None:
            raise InvalidInput("memory_id is missing", "give an id, or several")
        if len(names) > check.LARGEST_LIMIT:
            raise InvalidInput(
                f"{len(names):,} ids are too many", f"ask for {check.LARGEST_LIMIT:,} at a time"
            )
        with self._engine.storage.reading(where) as reader:
            found = reader.views.briefs(names, where)
        known = {each.memory_id for each in found}
        return Briefs(tuple(found), tuple(name for name in names if name not in known))

    def chunks(
        self, memory_id: str, limit: int = 50, offset: int = 0, space: Text = None
    ) -> ChunkPage:
        """List the passages into which a memory is divided for searching, in order."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        memory = reading.get_any(self._engine, memory_id, space)
        part = range(offset, offset + limit)
        with self._engine.storage.reading(memory.space) as reader:
            found = reader.chunks_of(memory.memory_id, memory.space, part)
        chunks = tuple(
            MemoryChunk(
                chunk_id=f"{memory.memory_id}#{each.chunk.index}",
                index=each.chunk.index,
                content=each.chunk.content,
                start_char=each.chunk.start_char,
                end_char=each.chunk.end_char,
                start_line=each.chunk.start_line,
                end_line=each.chunk.end_line,
                chunk_type=each.chunk.chunk_type,
                header_path=each.chunk.header_path,
                token_count=each.chunk.token_count,
            )
            for each in found
        )
        has_more = offset + len(chunks) < memory.chunks
        return ChunkPage(memory.memory_id, chunks, memory.chunks, has_more)

    def similar(
        self,
        memory_id: str,
        limit: int = 10,
        threshold: float = 0.5,
        session_id: Text = None,
        space: Text = None,
    ) -> SimilarMemories:
        """Find the memories nearest to one in meaning; with a session, those that it can see."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        least = check.check_number("threshold", threshold, 0, 1)
        session = check.check_optional_label("session_id", session_id)
        memory = reading.get_any(self._engine, memory_id, space)
        where = Filter(memory.space, session_id=session)
        with self._engine.storage.searching(memory.space) as reader:
            found = find_nearest(reader, memory.memory_id, where, least, limit)
        degraded = None
        if not found.has_vectors:
            degraded = Hint(
                f"{memory.memory_id} has no vectors, so it cannot be compared: make them with: ",
                Do("admin.doctor", fix=True),
            )
        return SimilarMemories(memory.memory_id, tuple(found.similar), least, degraded)

    def versions(
        self, memory_id: str, limit: int = 10, offset: int = 0, space: Text = None
    ) -> VersionPage:
        """List the texts that a memory has had, the current one first."""
        name, where = check.check_label("memory_id", memory_id), self._engine.space(space)
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        with self._engine.storage.reading(where) as reader:
            state = reader.states([name], where).get(name)
            found, total = reader.views.versions(name, where, limit, offset)
        if state is None or not state.is_current:
            raise versions.unknown_error(name)
        versions.refuse_forgotten(name, state.forgotten_at)
        return VersionPage(name, tuple(found), total, offset + len(found) < total)

    def render(self, memory_id: str, space: Text = None) -> RenderedMemory:
        """Render a memory's text as HTML without scripts, styles and remote content."""
        # Imported here, because the parser takes long to import, and few processes render.
        from byheart.transfer.rendering import render

        memory = reading.get_any(self._engine, memory_id, space)
        html, cut = render(memory.content, memory.format)
        return RenderedMemory(memory.memory_id, memory.version, memory.format, html, cut)

    def map(self, limit: int = 20_000, **filters: Unpack[FilterFields]) -> SpaceMap:
        """Lay memories out in two dimensions by meaning, and name regions by their telling words.

        The same memories give the same map. It is a hint: two dimensions stand for many.
        """
        # Imported here, because few processes draw a map.
        from byheart.search.space_map import draw_map

        where = self._engine.filter(filters)
        return draw_map(
            self._engine.storage, where, check.check_int("limit", limit, 1, check.MOST_POINTS)
        )

    def timeline(
        self,
        limit: int = 20,
        offset: int = 0,
        utc_offset_minutes: int = 0,
        **filters: Unpack[FilterFields],
    ) -> Timeline:
        """Count memories by day and kind, and list sessions with their first and last moments.

        Days begin at midnight, so many minutes ahead of UTC. `limit` and `offset` choose sessions.
        """
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        check.check_int("offset", offset, 0, check.LARGEST_OFFSET)
        minutes = check.check_int(
            "utc_offset_minutes",
            utc_offset_minutes,
            -check.LARGEST_UTC_OFFSET_MINUTES,
            check.LARGEST_UTC_OFFSET_MINUTES,
        )
        where = self._engine.filter(filters)
        with self._engine.storage.reading(where.space) as reader:
            counts = reader.views.days(where, minutes * _MINUTE_MICROS)
            span = reader.views.span(where)
            lanes, total = reader.views.lanes(where, limit, offset)
        return Timeline(
            days=tuple(_days(counts)),
            sessions=tuple(lanes),
            sessions_total=total,
            has_more=offset + len(lanes) < total,
            memories=sum(each.memories for each in counts),
            first_at=span.first_at,
            last_at=span.last_at,
            as_of=where.as_of,
        )

    def names(
        self, field: NamedField, prefix: str = "", limit: int = 100, **filters: Unpack[FilterFields]
    ) -> tuple[tuple[str, ...], int]:
        """List the ids, sessions, kinds or tags that begin with a prefix, and count them all."""
        check.check_choice("field", field, get_args(NamedField))
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        where = self._engine.filter(filters)
        with self._engine.storage.reading(where.space) as reader:
            found, total = reader.views.names(field, where, prefix, limit)
        return tuple(found), total

    def changes(self, since: Text = None, limit: int = 100, space: Text = None) -> Changes:
        """List the memories that any process changed since a mark; without one, give a mark."""
        check.check_int("limit", limit, 1, check.LARGEST_LIMIT)
        where = self._engine.space(space)
        before = None if since is None else _parse_mark(since)
        with self._engine.storage.reading(where) as reader:
            now = reader.views.mark()
            if before is None or now.change_no < before.change_no:
                return Changes(_spell_mark(now), (), before is not None)
            if now.change_no == before.change_no:
                return Changes(_spell_mark(before), (), False)
            found = reader.views.changed_since(before, where, limit + 1)
        return Changes(_spell_mark(now), tuple(found[:limit]), len(found) > limit)


def _spell_mark(mark: ChangeMark) -> str:
    return f"{mark.change_no}-{mark.memory_no}"


def _parse_mark(text: object) -> ChangeMark:
    found = _MARK.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(
            f"since {check.show(text)} is no mark", "give the mark of the last answer"
        )
    return ChangeMark(int(found[1]), int(found[2]))


def _days(counts: Sequence[DayCount]) -> list[Day]:
    by_day: dict[int, dict[str, int]] = {}
    for each in counts:
        by_day.setdefault(each.day, {})[each.kind] = each.memories
    return [Day(_name(day), sum(kinds.values()), kinds) for day, kinds in by_day.items()]


def _name(day: int) -> str:
    # An offset from UTC may move the first and the last moment out of the calendar.
    return date.fromordinal(min(max(1, _EPOCH + day), _LAST)).isoformat()
