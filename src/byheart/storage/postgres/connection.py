"""Give psycopg's connection the few methods that the shared statements use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from byheart.contracts import NUMBER_BITS, Lookup, ServerClocks
from byheart.startup.dataclass_types import dataclass
from byheart.storage.postgres import raw_queries
from byheart.storage.postgres.clock_cache import ClockCache
from byheart.storage.postgres.dialect import translate
from byheart.storage.postgres.prefetched_answers import PrefetchedAnswers, Sent
from byheart.storage.sql.connection import Values

# The column of the number, and whether the number carries the space.
_NUMBERED = {
    "memories": ("memory_no", True),
    "chunks": ("chunk_no", True),
    "entities": ("entity_no", False),
}
_MOST_TAKEN = 1024
# The last number that a sequence has given; 0 if it has given none.
LAST_GIVEN = "(CASE WHEN is_called THEN last_value ELSE last_value - 1 END)"
_STREAMED_ROWS = 500
_ANY_PART, _NO_SPACE = 0, "-1"


@dataclass(frozen=True, slots=True)
class Space:
    """A space, by its number and the part that its rows are in."""

    space_no: int
    part: int

    @property
    def numbers(self) -> range:
        """Give the range of the numbers of its rows."""
        return range(self.space_no << NUMBER_BITS, (self.space_no + 1) << NUMBER_BITS)


class PostgresConnection:
    """A connection within a transaction of one space, or of the whole store.

    Statements are sent in a pipeline: only a statement whose answer is read waits for the server.
    """

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        pipeline: psycopg.Pipeline,
        schema: str,
        parts: int,
        space: Space | None,
        clock_cache: ClockCache | None = None,
    ) -> None:
        self.raw = raw
        self._pipeline = pipeline
        self._schema = schema
        self._parts = parts
        self._space = space
        self._part = None if space is None else space.part
        self._clock_cache = clock_cache
        self._clocks: ServerClocks | None = None
        self._streams = 0
        self._taken: list[int] = []
        self._asked: psycopg.Cursor[Any] | None = None
        self._chunks: list[int] = []
        self._asked_chunks: list[psycopg.Cursor[Any]] = []
        self._chunks_taken = 0  # and not yet used
        self._taken_at_once = 16
        self._ahead = PrefetchedAnswers()
        self._words = raw_queries.WordWriter(raw)
        self._prefetching = False

    def execute(
        self, statement: str, values: Values = (), *, binary: bool = False
    ) -> psycopg.Cursor[Any]:
        """Run a statement; with `binary`, the server sends values as they are in memory."""
        # The server plans a prepared statement again if it reaches the tables of another part: the
        # comment makes it another statement for each part.
        written = f"{translate(statement)} /* {self._part} */"
        return self.raw.execute(written, values or None, binary=binary)

    def prefetch(self, *calls: Lookup) -> None:
        """Send the first question of each call, without waiting for the answer."""
        before, self._prefetching = self._prefetching, True
        try:
            for call in calls:
                with contextlib.suppress(Sent):
                    call()
        finally:
            self._prefetching = before

    def get(self, statement: str, values: Values = ()) -> Any:
        """Give the first row, the value itself if the row has one column, or `None`."""
        rows = self._sent(statement, values)
        if rows is None:
            return _first(self.execute(statement, values).fetchone())
        return _first(rows[0]) if rows else None

    def all(self, statement: str, values: Values = ()) -> list[Any]:
        """Give all rows."""
        rows = self._sent(statement, values)
        return self.execute(statement, values).fetchall() if rows is None else rows

    def get_many(self, statement: str, values: Iterable[Values]) -> list[Any]:
        """Run a query once for each row of values, all at once; give of each what `get` gives."""
        asked = [tuple(row) for row in values]
        self.prefetch(*(partial(self.get, statement, row) for row in asked))
        return [self.get(statement, row) for row in asked]

    def each(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Give the rows of a short answer one by one."""
        return iter(self.all(statement, values))

    def _sent(self, statement: str, values: Values) -> list[Any] | None:
        """Give the answer to a prefetched question; while prefetching, send the question."""
        if self._prefetching and not self._ahead.is_read(statement, values):
            if not self._ahead.holds(statement, values):
                self._ahead.add(statement, values, self.execute(statement, values))
            raise Sent
        return self._ahead.rows(statement, values)

    def stream(self, statement: str, values: Values = ()) -> Iterator[Any]:
        """Give the rows of an answer of any length, some hundreds at a time."""
        self._streams += 1
        name = f"byheart_{self._streams}"
        self.run(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}", values)
        while True:
            rows = self.all(f"FETCH {_STREAMED_ROWS} FROM {name}")
            yield from rows
            if len(rows) < _STREAMED_ROWS:
                break
        self.run(f"CLOSE {name}")

    def run(self, statement: str, values: Values = ()) -> None:
        """Send a statement; its answer is read with that of a later one."""
        self._change(statement)
        self.execute(statement, values)

    def _change(self, statement: str) -> None:
        if self._prefetching:
            raise Sent  # a prefetched call only asks
        self._ahead.forget(statement)

    def count(self, statement: str, values: Values = ()) -> int:
        """Run a statement, and count the rows that it changed."""
        self._change(statement)
        cursor = self.execute(statement, values)
        self._pipeline.sync()
        return max(0, cursor.rowcount)

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each row of values."""
        self._change(statement)
        for each in values:
            self.execute(statement, each)

    def insert(self, table: str, row: Mapping[str, object]) -> int:
        """Insert a row under a number that was taken before, and give that number."""
        if self._prefetching:
            raise Sent
        column, carries_space = _NUMBERED[table]
        number = self._next_chunk() if table == "chunks" else self._next_number()
        if carries_space:
            assert self._space is not None, "rows are added to a space"
            number |= self._space.numbers.start
        marks = ", ".join("?" * (len(row) + 1))
        self.run(
            f"INSERT INTO {table} ({column}, {', '.join(row)}) VALUES ({marks})",
            (number, *row.values()),
        )
        return number

    def expect_chunks(self, count: int) -> None:
        """Take the numbers of chunks that are about to be inserted, and no more of them."""
        missing = count - self._chunks_taken
        if missing > 0:
            self._chunks_taken += missing
            self._asked_chunks.append(
                self.execute(
                    f"SELECT nextval('{self._schema}.chunk_numbers') FROM generate_series(1, ?)",
                    (missing,),
                )
            )

    def _next_chunk(self) -> int:
        self.expect_chunks(1)
        while not self._chunks:
            rows = self._asked_chunks.pop(0).fetchall()
            self._chunks = [row[0] for row in reversed(rows)]
        self._chunks_taken -= 1
        return int(self._chunks.pop())

    def take_numbers(self) -> None:
        """Ask for numbers; the answer comes with that of the next question."""
        self._asked = self.execute(
            f"SELECT nextval('{self._schema}.numbers') FROM generate_series(1, ?)",
            (self._taken_at_once,),
        )
        self._taken_at_once = min(_MOST_TAKEN, 4 * self._taken_at_once)

    def _next_number(self) -> int:
        """Give a number; many are taken at once, so that inserts need not wait."""
        if not self._taken:
            if self._asked is None:
                self.take_numbers()
            assert self._asked is not None
            self._taken = [row[0] for row in reversed(self._asked.fetchall())]
            self._asked = None
        return int(self._taken.pop())

    def insert_words(self, chunk_no: int, columns: Sequence[str]) -> None:
        """Make a chunk findable by raw queries."""
        self._words.insert(chunk_no, columns)

    def remove_words(self, chunk_nos: Sequence[int]) -> None:
        """Make chunks unfindable by raw queries."""
        self.execute("DELETE FROM chunk_words WHERE chunk_no = ANY(?)", (list(chunk_nos),))

    def parts(self) -> Iterator[None]:
        """Go to each part of the store in turn."""
        for part in range(self._parts):
            self._go_to(part)
            yield
        self._go_to(None if self._space is None else self._space.part)

    def logs(self) -> Iterator[None]:
        """Go to the log of each space in turn."""
        rows = self.all(f"SELECT space_no, part FROM {self._schema}.spaces ORDER BY space_no")
        for space_no, part in rows:
            self._enter(Space(space_no, part))
            yield
        self._enter(self._space)

    def _enter(self, space: Space | None) -> None:
        self._ahead.forget_all()
        self._part = None if space is None else space.part
        self.raw.execute(enter(self._schema, space))

    def _go_to(self, part: int | None) -> None:
        self._ahead.forget_all()
        self._part = part
        self.raw.execute(f"SET LOCAL search_path = {search_path(self._schema, part)}")

    def now_micros(self) -> int:
        """Give the time of the server."""
        return int(
            self.get("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
        )

    def server_clocks(self) -> ServerClocks:
        """Give the clocks of the server: machines that use it may have others.

        A transaction that only reads takes the time that the server told a moment ago, plus the
        time since then, and gives the same time at each call.
        """
        if self._clocks is None and self._clock_cache is not None:
            self._clocks = self._clock_cache.recall()
        if self._clocks is not None:
            return self._clocks
        now, started = self.get(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint), "
            "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint)"
        )
        clocks = ServerClocks(now, now - started, f"postgresql {started}")
        if self._clock_cache is not None:
            self._clock_cache.keep(clocks)
            self._clocks = clocks
        return clocks

    @property
    def numbers(self) -> range:
        """Give the range of the numbers of this space; of a space without rows, an empty one."""
        return range(-1, 0) if self._space is None else self._space.numbers

    def skip_numbers(self, last: int) -> None:
        """Move the sequences behind a number, unless they are there already."""
        self._taken, self._asked = [], None
        self._chunks, self._asked_chunks, self._chunks_taken = [], [], 0
        for name in ("numbers", "chunk_numbers"):
            sequence = f"{self._schema}.{name}"
            self.run(
                f"SELECT setval('{sequence}', ?) FROM {sequence} WHERE {LAST_GIVEN} < ?",
                (last, last),
            )


def _first(row: Any) -> Any:
    return row[0] if row is not None and len(row) == 1 else row


def part_schema(schema: str, part: int) -> str:
    """Name the schema of a part."""
    return f"{schema}_{part:02}"


def search_path(schema: str, part: int | None) -> str:
    """List the schemas that hold the tables of a part, or of the whole store."""
    return schema if part is None else f"{part_schema(schema, part)}, {schema}"


def enter(schema: str, space: Space | None, *settings: str, unknown: bool = False) -> str:
    """Give the statement that binds a transaction to a space, or to the whole store.

    One statement sets everything, with further `settings` as `set_local` writes them. A space that
    is `unknown` has no rows. Its transaction reaches the tables of one part, because a look into
    all parts would take longer and find nothing either.
    """
    part, number = (None, "") if space is None else (space.part, str(space.space_no))
    if unknown:
        part, number = _ANY_PART, _NO_SPACE
    path = set_local("search_path", search_path(schema, part))
    return f"SELECT {', '.join((path, set_local('byheart.space_no', number), *settings))}"


def set_local(name: str, value: object) -> str:
    """Write a call that changes a setting for one transaction."""
    return f"set_config('{name}', '{value}', true)"
