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
from byheart.model import Filter
from tests.contracts.covering import covers
from tests.contracts.drafts import EAST, MODEL, NORTH, draft

NOW = datetime.now(UTC)
PAST, FUTURE = NOW - timedelta(days=1), NOW + timedelta(days=1)


@covers(Reader.expiry, Writer.expiry, ExpiryReader.time_passed, ExpiryRows.set_time_passed)
def test_the_time_recorded_last_is_read(storage: Storage) -> None:
    for time in (TimePassed(1, 2, 3, "boot"), TimePassed(4, 5, 6, "later boot")):
        with storage.writing() as writer:
            writer.expiry.set_time_passed(time)
            assert writer.expiry.time_passed() == time
    with storage.reading() as reader:
        assert reader.expiry.time_passed() == TimePassed(4, 5, 6, "later boot")


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
    with storage.writing() as writer:
        rows, memories = writer.expiry, writer.memories
        numbers = [
            held.memory_no
            for each in made
            for held in memories.held([each.memory.memory_id], each.memory.space)
        ]
        lapsed = [
            Lapsed(number, each.memory.memory_id)
            for number, each in zip(numbers, made, strict=True)
        ]
        assert rows.marked_too_early(NOW) is None, "none has a mark"
        for number, who in ((numbers[3], "workspace"), (numbers[4], "user")):
            event = Event("forget", NOW, who)
            memories.change([MemoryChange(number, {"forgotten_at": NOW}, event)])
        assert set(rows.unmarked("expired", NOW, 9)) == {*lapsed[:2]}
        assert len(rows.unmarked("expired", NOW, 1)) == 1
        assert rows.unmarked("missing file", NOW, 9) == lapsed[3:4]
        for number, mark in ((numbers[0], 20), (numbers[1], 10), (numbers[3], 10)):
            memories.change([MemoryChange(number, {"lapsed_at": mark})])
        assert rows.unmarked("expired", NOW, 9) == rows.unmarked("missing file", NOW, 9) == []
        assert rows.marked("expired", NOW, 9, 9) == []
        assert rows.marked("expired", NOW, 10, 9) == lapsed[1:2]
        assert rows.marked("expired", NOW, 20, 9) == [lapsed[1], lapsed[0]], "oldest mark first"
        assert rows.marked("expired", NOW, 20, 1) == lapsed[1:2]
        assert rows.marked("missing file", NOW, 10, 9) == lapsed[3:4]
        assert rows.marked_too_early(NOW) == []
        memories.change([MemoryChange(numbers[2], {"lapsed_at": 10})])
        assert rows.marked_too_early(NOW) == lapsed[2:3]


def test_memories_are_erased_with_their_earlier_texts_a_grace_period_after_they_expire(
    storage: Storage,
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    made = [draft("expired", EAST, expires_at=past), draft("valid", NORTH)]
    transactions.write(storage, made, MODEL)
    assert expiry.prune(storage, "expired", timedelta(days=1), 9) == [], "marked only"
    with storage.reading() as reader:
        assert reader.expiry.unmarked("expired", datetime.now(UTC), 9) == []
        assert reader.expiry.marked_too_early(datetime.now(UTC)) == []
        time = reader.expiry.time_passed()
    assert time is not None
    assert expiry.prune(storage, "missing file", timedelta(0), 9) == []
    assert expiry.prune(storage, "expired", timedelta(0), 9) == [made[0].memory.memory_id]
    with storage.reading() as reader:
        assert reader.expiry.marked_too_early(datetime.now(UTC)) is None
        assert reader.count(Listing(Filter("space"))) == 1
    assert all(finding.ok for finding in storage.examine())
