"""What the rows of receipts promise, run on each implementation."""

from datetime import UTC, datetime, timedelta

from byheart.contracts import (
    GivenReceipt,
    OldReceipts,
    Reader,
    ReceiptReader,
    ReceiptRows,
    Storage,
    Writer,
)
from byheart.memory import transactions
from byheart.model import ReceiptSummary
from tests.contracts.covering import covers
from tests.contracts.drafts import draft

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=99)


def note(storage: Storage, number: int, *memories: tuple[str, bool], space: str = "space") -> None:
    at = NOON + timedelta(minutes=number)
    session = "even" if number % 2 == 0 else "odd"
    summary = ReceiptSummary(
        f"rcp_{number}", "context", session, f"question {number}", "hybrid", at, 100, 42, 1, 1
    )
    storage.note([GivenReceipt(summary, space, memories, b"body", at)])
    storage.settle()


@covers(Reader.receipts, ReceiptReader.find, ReceiptReader.get)
def test_receipts_are_found_by_session_and_by_memory_until_they_are_old(storage: Storage) -> None:
    one, two = (
        each.memory_id for each in transactions.write(storage, [draft("one"), draft("two")], None)
    )
    for number in range(4):
        note(storage, number, (one, True), (two, number == 3))
    with storage.reading("space") as reader:
        found, total = reader.receipts.find("space", LONG_AGO, None, None, 2, 1)
        even, _ = reader.receipts.find("space", LONG_AGO, "even", None, 9, 0)
        with_two, _ = reader.receipts.find("space", LONG_AGO, None, two, 9, 0)
        lately, _ = reader.receipts.find("space", NOON + timedelta(minutes=2), None, one, 9, 0)
        elsewhere = reader.receipts.find("other", LONG_AGO, None, None, 9, 0)
        row = reader.receipts.get("rcp_1", "space", LONG_AGO)
        assert reader.receipts.get("rcp_1", "other", LONG_AGO) is None
        assert reader.receipts.get("rcp_1", "space", NOON + timedelta(minutes=2)) is None
    assert total == 4
    assert [each.receipt_id for each in found] == ["rcp_2", "rcp_1"]
    assert [each.receipt_id for each in even] == ["rcp_2", "rcp_0"]
    assert [each.receipt_id for each in with_two] == ["rcp_3"]
    assert [each.receipt_id for each in lately] == ["rcp_3", "rcp_2"]
    assert elsewhere == ([], 0)
    assert row is not None
    assert row.body == b"body"
    assert (row.summary.query, row.summary.at) == ("question 1", NOON + timedelta(minutes=1))


@covers(Writer.receipts, ReceiptRows.forget_session, ReceiptRows.remove_if)
def test_receipts_are_removed_by_session_question_memory_and_age(storage: Storage) -> None:
    one, two = (
        each.memory_id for each in transactions.write(storage, [draft("one"), draft("two")], None)
    )
    for number in range(8):
        note(storage, number, (one if number < 7 else two, number == 0))

    def left() -> list[str]:
        with storage.reading("space") as reader:
            found, _ = reader.receipts.find("space", LONG_AGO, None, None, 99, 0)
        return [each.receipt_id for each in found]

    storage.note([OldReceipts("space", NOON + timedelta(minutes=2))])
    storage.settle()
    assert left() == ["rcp_7", "rcp_6", "rcp_5", "rcp_4", "rcp_3", "rcp_2"]
    with storage.writing("space") as writer:
        assert writer.receipts.remove_if("space", lambda query: query == "question 6") == 1
        assert writer.receipts.remove_if("other", lambda query: True) == 0
        writer.receipts.forget_session("space", "even")
        writer.receipts.forget_session("other", "odd")
    assert left() == ["rcp_7", "rcp_5", "rcp_3"]
    with storage.writing("space") as writer:
        [row] = writer.memories.texts(one, "space")
        writer.memories.remove_text(row.memory_no)
    assert left() == ["rcp_7"], "receipts go with every memory that they name"


def test_a_receipt_that_names_an_erased_memory_is_not_stored(storage: Storage) -> None:
    note(storage, 1, ("mem_gone", True))
    with storage.reading("space") as reader:
        assert reader.receipts.find("space", LONG_AGO, None, None, 9, 0) == ([], 0)
