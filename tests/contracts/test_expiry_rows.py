"""What the rows of memories that may be erased promise, run on each implementation."""

from datetime import UTC, datetime, timedelta

from byheart.contracts import (
    Event,
    ExpiryReader,
    ExpiryRows,
    Lapsed,
    Listing,
    MemoryChange,
    Reader,
    Storage,
    TimePassed,
    Writer,
)
from byheart.memory import expiry, transactions
from byheart.memory.expiry import EXPIRED, MISSING_FILE
from byheart.model import Filter
from byheart.storage.sql.backend import Backend
from byheart.storage.sql.connection import Connection
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft

NOW = datetime.now(UTC)
PAST, FUTURE = NOW - timedelta(days=1), NOW + timedelta(days=1)


@covers(Reader.expiry, Writer.expiry, ExpiryReader.time_passed, ExpiryRows.set_time_passed)
def test_the_time_recorded_last_is_read(storage: Storage) -> None:
    for time in (TimePassed(1, 2, 3, "boot"), TimePassed(4, 5, 6, "later boot")):
        with storage.writing("space") as writer:
            writer.expiry.set_time_passed(time)
            assert writer.expiry.time_passed() == time
    with storage.reading() as reader:
        assert reader.expiry.time_passed() == TimePassed(4, 5, 6, "later boot")


@covers(ExpiryReader.server_clocks, Connection.server_clocks)
def test_the_clocks_of_a_server_run_on(storage: Storage, backend: Backend) -> None:
    with storage.reading() as reader:
        first, later = reader.expiry.server_clocks(), reader.expiry.server_clocks()
    with backend.reading(None) as connection:
        last = connection.server_clocks()
    assert (first is None) == (later is None) == (last is None)
    if first is not None and later is not None and last is not None:
        assert first.now <= later.now <= last.now
        assert first.running <= later.running
        assert first.boot == last.boot


@covers(ExpiryReader.unmarked, ExpiryReader.marked, ExpiryReader.marked_too_early)
def test_memories_are_listed_by_cause_and_mark(storage: Storage) -> None:
    made = [
        draft("expired", expires_at=PAST),
        draft("expired too", expires_at=PAST, space="other"),
        draft("expires later", expires_at=FUTURE),
        draft("missing", kind="file"),
        draft("forgotten by a user", kind="file"),
        draft("kept"),
    ]
    transactions.write(storage, made, None)
    with storage.writing(None) as writer:
        rows, memories = writer.expiry, writer.memories
        numbers = [
            held.memory_no
            for each in made
            for held in memories.held([each.memory.memory_id], each.memory.space)
        ]
        lapsed = [
            Lapsed(number, each.memory.memory_id, each.memory.space)
            for number, each in zip(numbers, made, strict=True)
        ]
        assert rows.marked_too_early(NOW, MISSING_FILE) is None, "none has a mark"
    with storage.writing("space") as writer:
        for number, who in ((numbers[3], "workspace"), (numbers[4], "user")):
            event = Event("forget", NOW, who)
            writer.memories.change([MemoryChange(number, {"forgotten_at": NOW}, event)])
    with storage.writing(None) as writer:
        rows, memories = writer.expiry, writer.memories

        def change(number: int, fields: dict[str, object]) -> None:
            memories.change([MemoryChange(number, fields, indexed=False)])

        assert set(rows.unmarked(EXPIRED, NOW, 9)) == {*lapsed[:2]}
        assert len(rows.unmarked(EXPIRED, NOW, 1)) == 1
        assert rows.unmarked(MISSING_FILE, NOW, 9) == lapsed[3:4]
        for number, mark in ((numbers[0], 20), (numbers[1], 10), (numbers[3], 10)):
            change(number, {"lapsed_at": mark})
        assert rows.unmarked(EXPIRED, NOW, 9) == rows.unmarked(MISSING_FILE, NOW, 9) == []
        assert rows.marked(EXPIRED, NOW, 9, 9) == []
        assert rows.marked(EXPIRED, NOW, 10, 9) == lapsed[1:2]
        assert rows.marked(EXPIRED, NOW, 20, 9) == [lapsed[1], lapsed[0]], "oldest mark first"
        assert rows.marked(EXPIRED, NOW, 20, 1) == lapsed[1:2]
        assert rows.marked(EXPIRED, NOW, 20, 1, "space") == lapsed[:1], "another one is older"
        assert rows.marked(EXPIRED, NOW, 20, 9, "other") == lapsed[1:2]
        assert rows.marked(MISSING_FILE, NOW, 10, 9) == lapsed[3:4]
        assert rows.marked_too_early(NOW, MISSING_FILE) == []
        change(numbers[2], {"lapsed_at": 10})
        assert rows.marked_too_early(NOW, MISSING_FILE) == lapsed[2:3]
        for number in (numbers[3], numbers[4]):
            change(number, {"lapsed_at": 10, "expires_at": FUTURE})
        assert rows.marked_too_early(NOW, MISSING_FILE) == [lapsed[2], lapsed[4]], (
            "the memory of a missing file may be erased before it expires"
        )


def test_memories_are_erased_with_their_earlier_texts_a_grace_period_after_they_expire(
    storage: Storage,
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    made = [draft("expired", EAST, expires_at=past), draft("valid", NORTH)]
    transactions.write(storage, made, MODEL)
    assert expiry.prune(storage, EXPIRED, timedelta(days=1), 9) == [], "marked only"
    with storage.reading() as reader:
        assert reader.expiry.unmarked(EXPIRED, datetime.now(UTC), 9) == []
        assert reader.expiry.marked_too_early(datetime.now(UTC), MISSING_FILE) == []
        time = reader.expiry.time_passed()
    assert time is not None
    assert expiry.prune(storage, MISSING_FILE, timedelta(0), 9) == []
    assert expiry.prune(storage, EXPIRED, timedelta(0), 9) == [made[0].memory.memory_id]
    with storage.reading() as reader:
        assert reader.expiry.marked_too_early(datetime.now(UTC), MISSING_FILE) is None
        assert reader.count(Listing(Filter("space"))) == 1
    assert all(finding.ok for finding in storage.examine())


def test_no_more_memories_are_erased_at_once_than_allowed_in_all_spaces(storage: Storage) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    spaces = ("other", "other", "space", "space", "space")
    made = [draft(f"{n}", expires_at=past, space=space) for n, space in enumerate(spaces)]
    transactions.write(storage, made, None)
    assert len(expiry.prune(storage, EXPIRED, timedelta(0), 3)) == 3
    assert len(expiry.prune(storage, EXPIRED, timedelta(0), 9)) == 2
